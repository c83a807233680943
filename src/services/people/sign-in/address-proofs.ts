// The proof that an address is a person's own: a code that is mailed there, and counts for who is signed in as that person.
import type { User } from '../../../generated/client.ts'
import type { Db } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'

const purpose = 'address'

type Claim = Pick<User, 'id' | 'email'>

const textOf = ({ id, email }: Claim) => `${id} ${email}`

/** It follows from the address and the platform's key, so nothing is kept of it. */
export function proofCode(vault: Vault, claim: Claim): string {
  return vault.sign(textOf(claim), purpose).toString('base64url')
}

export async function proveAddress(db: Db, vault: Vault, claim: Claim, code: string): Promise<User> {
  const { id, email } = claim
  if (!vault.verify(Buffer.from(code, 'base64url'), textOf(claim), purpose)) throw new Fault('link_not_valid')
  await db.user.updateMany({ where: { id, email, emailProvedAt: null }, data: { emailProvedAt: new Date() } })
  return db.user.findUniqueOrThrow({ where: { id } })
}
