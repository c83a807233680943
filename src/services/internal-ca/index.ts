// The internal CA for connections between edges and runners, created once, with its key sealed.
import { type Database, inTransaction } from '../../platform/database/database.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import { lockInternalCa } from './statements.ts'

/** `certificate` and `key` are PEM. */
export type InternalCa = { id: string; certificate: string; key: string }

/** Opens all CAs, newest first: it signs, and all are trusted. The first process of an installation creates one. */
export async function openInternalCas(
  db: Database,
  vault: Vault,
  create: () => Promise<InternalCa>,
): Promise<InternalCa[]> {
  const read = async (from: Pick<Database, 'internalCa'>) =>
    (await from.internalCa.findMany({ orderBy: { createdAt: 'desc' } })).map(({ id, certificate, key }) => ({
      id,
      certificate,
      key: vault.open(key, placeOf.internalCa(id)).toString(),
    }))
  const existing = await read(db)
  if (existing.length > 0) return existing
  const created = await create()
  return inTransaction(db, async (db) => {
    await lockInternalCa(db, {})
    const existing = await read(db)
    if (existing.length > 0) return existing
    const key = new Uint8Array(vault.seal(created.key, placeOf.internalCa(created.id)))
    await db.internalCa.create({ data: { id: created.id, certificate: created.certificate, key } })
    return [created]
  })
}
