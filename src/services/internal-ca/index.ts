// The authority of the certificates that edges and runners show each other: made once, its key sealed.
import { type Database, inTransaction } from '../../platform/database/database.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { lockInternalCa } from './statements.ts'

/** Both as PEM. */
export type InternalCa = { id: string; certificate: string; key: string }

/** All of them, the newest first: it signs, and all are trusted. The first process of an installation makes one. */
export async function openInternalCas(
  db: Database,
  vault: Vault,
  make: () => Promise<InternalCa>,
): Promise<InternalCa[]> {
  const read = async (from: Pick<Database, 'internalCa'>) =>
    (await from.internalCa.findMany({ orderBy: { createdAt: 'desc' } })).map(({ id, certificate, key }) => ({
      id,
      certificate,
      key: vault.open(key, placeOf.internalCa(id)).toString(),
    }))
  const known = await read(db)
  if (known.length > 0) return known
  const made = await make()
  return inTransaction(db, async (db) => {
    await lockInternalCa(db, {})
    const first = await read(db)
    if (first.length > 0) return first
    const key = new Uint8Array(vault.seal(made.key, placeOf.internalCa(made.id)))
    await db.internalCa.create({ data: { id: made.id, certificate: made.certificate, key } })
    return [made]
  })
}
