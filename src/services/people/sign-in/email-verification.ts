// Email verification: an emailed code proves that the email belongs to the signed-in person.
import type { User } from '../../../generated/client.ts'
import type { Db } from '../../../platform/database/database.ts'
import { Fault } from '../../../platform/errors.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'

const purpose = 'address'

type Claim = Pick<User, 'id' | 'email'>

const textOf = ({ id, email }: Claim) => `${id} ${email}`

/** The code is derived from the email and the platform's key, so it is not stored. */
export function emailVerificationCode(vault: Vault, claim: Claim): string {
  return vault.sign(textOf(claim), purpose).toString('base64url')
}

export async function verifyEmail(db: Db, vault: Vault, claim: Claim, code: string): Promise<User> {
  const { id, email } = claim
  if (!vault.verify(Buffer.from(code, 'base64url'), textOf(claim), purpose)) throw new Fault('link_not_valid')
  await db.user.updateMany({ where: { id, email, emailProvedAt: null }, data: { emailProvedAt: new Date() } })
  return db.user.findUniqueOrThrow({ where: { id } })
}
