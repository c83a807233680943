// ALIAS records with targets outside their zones: the names to look up, and their addresses.
import { enqueue } from '../../../jobs/queue.ts'
import { type Database, type Db, inTransaction } from '../../../platform/database/database.ts'
import { type AliasRow, noteChangedNames, queueOverdueAliases, writeAliasRows } from '../sql/alias-statements.ts'
import { selectRecordPage } from '../sql/zone-statements.ts'

export { type AliasRow, aliasedType } from '../sql/alias-statements.ts'

export type AliasZone = {
  id: string
  name: string
  /** The ALIAS records. */
  aliases: { name: string; type: string; value: string; ttl: number }[]
  known: Map<string, AliasRow>
}

/** Returns null if the zone was deleted. */
export async function readAliasZone(db: Database, id: string): Promise<AliasZone | null> {
  const zone = await db.domain.findUnique({ where: { id }, select: { name: true } })
  if (!zone) return null
  const select = { name: true, type: true, value: true, ttl: true }
  const [aliases, known] = await Promise.all([
    db.dnsRecord.findMany({ where: { domainId: id, type: 'ALIAS' }, select, orderBy: { name: 'asc' } }),
    db.aliasAnswer.findMany({ where: { domainId: id } }),
  ])
  return { id, name: zone.name, aliases, known: new Map(known.map(({ domainId: _id, ...row }) => [row.name, row])) }
}

const pageSize = 2_000

/** All records of a zone, in pages. */
export async function* zoneInPages(db: Database, zoneId: string) {
  let after = { afterName: '', afterId: '' }
  for (;;) {
    const page = await selectRecordPage(db, { zoneId, ...after, limit: pageSize })
    yield page
    const last = page.at(-1)
    if (!last || page.length < pageSize) return
    after = { afterName: last.name, afterId: last.id }
  }
}

export type AliasChanges = {
  rows: AliasRow[]
  /** Names without an outside target any more. */
  gone: string[]
  /** Names whose answers change, which causes a new version of the zone. */
  changed: string[]
  /** When the next lookup is due; null for never. */
  nextAt: Date | null
}

/** `guard` throws if another worker has the job. */
export async function storeAliases(
  db: Database,
  zoneId: string,
  changes: AliasChanges,
  guard: (db: Db) => Promise<void>,
): Promise<void> {
  const { rows, gone, changed, nextAt } = changes
  await inTransaction(db, async (db) => {
    if (rows.length > 0) await writeAliasRows(db, { zoneId, rows })
    if (gone.length > 0) await db.aliasAnswer.deleteMany({ where: { domainId: zoneId, name: { in: gone } } })
    if (changed.length > 0) {
      await db.domain.updateMany({ where: { id: zoneId }, data: { serial: { increment: 1 } } })
      await noteChangedNames(db, { zoneId, names: changed })
    }
    // Lock order everywhere: zone, job.
    await guard(db)
    if (nextAt) await enqueue(db, { kind: 'alias', key: zoneId, payload: { domainId: zoneId }, runAt: nextAt })
  })
}

const overdueMs = 30 * 60_000

/** Queues overdue lookups and returns their number. */
export async function requeueOverdueAliases(db: Database): Promise<number> {
  const queued = await queueOverdueAliases(db, { before: new Date(Date.now() - overdueMs) })
  return queued.length
}
