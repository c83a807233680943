// Changes of existing records: one at a time here, and the write that batches and imports share.
import type { Static } from '@sinclair/typebox'
import { conflict } from '../../dns/conflicts.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { ChangeDnsRecord } from '../../schemas/dns-records.ts'
import { append, eventOf } from '../events/events.ts'
import type { Actor } from '../tokens/actor.ts'
import {
  type DnsRecordView,
  findZoneToChange,
  type RecordPath,
  type RecordRow,
  readRecords,
  viewRecord,
  type Zone,
} from './dns-records.ts'
import { invalidRecord, type RecordDraft, readDraft, recordConflict, refusedPlace } from './record-rules.ts'
import { insertRecordRows } from './statements.ts'

export type Changes = {
  deleted: RecordRow[]
  updated: { before: RecordRow; after: RecordRow }[]
  created: RecordRow[]
}

// Rows in one statement: with all rows of an import of a MiB it would exceed its time limit.
const highestPart = 5_000

function* inParts<T>(items: T[]): Generator<T[]> {
  for (let at = 0; at < items.length; at += highestPart) yield items.slice(at, at + highestPart)
}

/** Writes changes that were checked under the zone's lock, with one event each, and returns the zone's new serial. */
export async function writeChanges(db: Db, actor: Actor, zone: Zone, changes: Changes): Promise<number> {
  const { deleted, updated, created } = changes
  if (deleted.length + updated.length + created.length === 0) return zone.serial
  // Changed records are deleted and inserted: two records that swap values would violate the unique index otherwise.
  const gone = [...deleted, ...updated.map(({ before }) => before)].map((row) => row.id)
  const written = [...updated.map(({ after }) => after), ...created]
  for (const part of inParts(gone)) await db.dnsRecord.deleteMany({ where: { domainId: zone.id, id: { in: part } } })
  for (const part of inParts(written)) await insertRecordRows(db, { zoneId: zone.id, records: part })
  const { serial } = await db.domain.update({
    where: { id: zone.id },
    data: { serial: { increment: 1 } },
    select: { serial: true },
  })
  const event = (type: 'created' | 'updated' | 'deleted') => (row: RecordRow) =>
    eventOf(actor, `dns.record.${type}`, {
      subject: row.id,
      projectId: zone.projectId,
      data: viewRecord(zone.name, row),
    })
  const events = [
    ...deleted.map(event('deleted')),
    ...updated.map(({ after }) => event('updated')(after)),
    ...created.map(event('created')),
  ]
  for (const part of inParts(events)) await append(db, part)
  return serial
}

/** Whether nothing changes, so that nothing is written and the serial stays. */
export function isSameRecord(one: RecordDraft, other: RecordDraft): boolean {
  return one.name === other.name && one.value === other.value && one.ttl === other.ttl && one.comment === other.comment
}

async function findInZone(db: Db, zone: Zone, id: string): Promise<RecordRow> {
  const [row] = await readRecords(db, zone, { id })
  if (!row) throw new Fault('not_found', `There is no record ${id} in ${zone.name}.`)
  return row
}

type RecordChange = { change: Static<typeof ChangeDnsRecord>; precondition: (view: DnsRecordView) => void }

export async function changeRecord(
  db: Db,
  actor: Actor,
  { domain, id }: RecordPath,
  { change, precondition }: RecordChange,
): Promise<DnsRecordView> {
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, domain)
    const before = await findInZone(db, zone, id)
    precondition(viewRecord(zone.name, before))
    const draft = readDraft(zone.name, { ...before, ...change })
    if (Array.isArray(draft)) throw invalidRecord(draft)
    if (isSameRecord(before, draft)) return viewRecord(zone.name, before)
    const beside = await readRecords(db, zone, { name: draft.name })
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
  { domain, id }: RecordPath,
  precondition: (view: DnsRecordView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, domain)
    const row = await findInZone(db, zone, id)
    precondition(viewRecord(zone.name, row))
    await writeChanges(db, actor, zone, { deleted: [row], updated: [], created: [] })
  })
}
