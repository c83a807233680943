// The root of the development CA: one per installation, with its key sealed in the database.
import type { Db } from '../../platform/database/database.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'

/** Both PEM. */
export type Root = { certificate: string; key: string }

export type StoredRoot = {
  certificate: string
  /** Throws if SECRETS_KEY has changed. */
  openKey(): string
}

// A fixed primary key: concurrent processes can insert only one row.
const id = 'root'

/** Finds the certificate of the root, if it exists. */
export async function findRootCertificate(db: Db): Promise<string | null> {
  return (await db.developmentCa.findUnique({ where: { id } }))?.certificate ?? null
}

/** Finds the root or stores the one that `create` returns, unless another process is faster. */
export async function findOrCreateRoot(db: Db, vault: Vault, create: () => Promise<Root>): Promise<StoredRoot> {
  const place = placeOf.developmentCa(id)
  if (!(await db.developmentCa.findUnique({ where: { id } }))) {
    const { certificate, key } = await create()
    const data = { id, certificate, key: Uint8Array.from(vault.seal(key, place)) }
    await db.developmentCa.createMany({ data, skipDuplicates: true })
  }
  const { certificate, key } = await db.developmentCa.findUniqueOrThrow({ where: { id } })
  return { certificate, openKey: () => vault.open(key, place).toString() }
}
