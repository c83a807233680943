// Changes of records that are there: one at a time here, and the write that batches and imports share.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { conflict } from '../dns/conflicts.ts'
import { Fault } from '../errors.ts'
import type { ChangeDnsRecord } from '../schemas/dns-records.ts'
import { invalidRecord, type RecordDraft, readDraft, recordConflict, refusedPlace } from './dns-record-rules.ts'
import { type DnsRecordView, findZone, type RecordRow, recordColumns, viewRecord, type Zone } from './dns-records.ts'
import { append, eventOf } from './events.ts'

export type Changes = {
  deleted: RecordRow[]
  updated: { before: RecordRow; after: RecordRow }[]
  created: RecordRow[]
}

// What one statement may carry: an import of a whole MiB would run into the time limit of a statement otherwise.
const highestPart = 5_000

function* inParts<T>(items: T[]): Generator<T[]> {
  for (let at = 0; at < items.length; at += highestPart) yield items.slice(at, at + highestPart)
}

/** Writes changes that were checked under the zone's lock, with one event each, and returns the zone's new serial. */
export async function writeChanges(db: Db, actor: Actor, zone: Zone, changes: Changes): Promise<number> {
  const { deleted, updated, created } = changes
  if (deleted.length + updated.length + created.length === 0) return zone.serial
  // What changes is taken out and put back: two records that swap values would meet in the unique index otherwise.
  const gone = [...deleted, ...updated.map(({ before }) => before)].map((row) => row.id)
  const written = [...updated.map(({ after }) => after), ...created]
  if (gone.length > 0) await rows(db, sql`DELETE FROM dns_record WHERE id = ANY(${gone}::text[]) RETURNING 1`)
  for (const part of inParts(written)) {
    await rows(
      db,
      sql`INSERT INTO dns_record (id, domain_id, type, name, value, ttl, comment, created_at, updated_at)
          SELECT id, ${zone.id}, type, name, value, ttl, comment, "createdAt", "updatedAt"
          FROM jsonb_to_recordset(${JSON.stringify(part)}::jsonb) AS r(id text, type text, name text, value text,
            ttl int, comment text, "createdAt" timestamptz, "updatedAt" timestamptz) RETURNING 1`,
    )
  }
  const [grown] = await rows<{ serial: number }>(
    db,
    sql`UPDATE domain SET serial = serial + 1 WHERE id = ${zone.id} RETURNING serial`,
  )
  const event = (type: 'created' | 'updated' | 'deleted') => (row: RecordRow) =>
    eventOf(actor, `dns.record.${type}`, row.id, zone.projectId, viewRecord(zone.name, row))
  const events = [
    ...deleted.map(event('deleted')),
    ...updated.map(({ after }) => event('updated')(after)),
    ...created.map(event('created')),
  ]
  for (const part of inParts(events)) await append(db, part)
  return grown!.serial
}

/** Whether a change changes nothing, so that nothing is written and the serial stays. */
export function isSameRecord(one: RecordDraft, other: RecordDraft): boolean {
  return one.name === other.name && one.value === other.value && one.ttl === other.ttl && one.comment === other.comment
}

async function lockRecord(db: Db, zone: Zone, id: string): Promise<RecordRow> {
  const [row] = await rows<RecordRow>(
    db,
    sql`SELECT ${recordColumns} FROM dns_record r WHERE r.domain_id = ${zone.id} AND r.id = ${id}`,
  )
  if (!row) throw new Fault('not_found', `There is no record ${id} in ${zone.name}.`)
  return row
}

export async function changeRecord(
  db: Db,
  actor: Actor,
  path: string,
  id: string,
  change: Static<typeof ChangeDnsRecord>,
  precondition: (view: DnsRecordView) => void,
): Promise<DnsRecordView> {
  return inTransaction(db, async (db) => {
    const zone = await findZone(db, actor, path, true)
    const before = await lockRecord(db, zone, id)
    precondition(viewRecord(zone.name, before))
    const draft = readDraft(zone.name, { ...before, ...change })
    if (Array.isArray(draft)) throw invalidRecord(draft)
    if (isSameRecord(before, draft)) return viewRecord(zone.name, before)
    const beside = await rows<RecordRow>(
      db,
      sql`SELECT ${recordColumns} FROM dns_record r WHERE r.domain_id = ${zone.id} AND r.name = ${draft.name}`,
    )
    const found = conflict({ ...draft, id }, beside)
    const place = found && refusedPlace(found)
    if (place) throw invalidRecord([place])
    if (found) throw recordConflict(found)
    const after: RecordRow = { ...before, ...draft, updatedAt: new Date() }
    await writeChanges(db, actor, zone, { deleted: [], updated: [{ before, after }], created: [] })
    return viewRecord(zone.name, after)
  })
}

export async function deleteRecord(
  db: Db,
  actor: Actor,
  path: string,
  id: string,
  precondition: (view: DnsRecordView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const zone = await findZone(db, actor, path, true)
    const row = await lockRecord(db, zone, id)
    precondition(viewRecord(zone.name, row))
    await writeChanges(db, actor, zone, { deleted: [row], updated: [], created: [] })
  })
}
