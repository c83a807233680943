// The root of the development CA: one for the whole installation, its key sealed in the database.
import type { Db } from '../../platform/database/database.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'

/** Both PEM. */
export type Root = { certificate: string; key: string }

export type StoredRoot = {
  certificate: string
  /** Throws if SECRETS_KEY is another one. */
  openKey(): string
}

// The primary key of the only row: whoever comes second finds it taken.
const id = 'root'

/** The certificate of the root; null while there is none. */
export async function findRootCertificate(db: Db): Promise<string | null> {
  return (await db.developmentCa.findUnique({ where: { id } }))?.certificate ?? null
}

/** The root of the installation; the one that `make` returns where there is none yet, and nobody was faster. */
export async function keepRoot(db: Db, vault: Vault, make: () => Promise<Root>): Promise<StoredRoot> {
  const place = placeOf.developmentCa(id)
  if (!(await db.developmentCa.findUnique({ where: { id } }))) {
    const { certificate, key } = await make()
    const data = { id, certificate, key: Uint8Array.from(vault.seal(key, place)) }
    await db.developmentCa.createMany({ data, skipDuplicates: true })
  }
  const { certificate, key } = await db.developmentCa.findUniqueOrThrow({ where: { id } })
  return { certificate, openKey: () => vault.open(key, place).toString() }
}
