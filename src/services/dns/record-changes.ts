// Changes of existing records: one at a time here, and the write that it shares with batches.
import type { Static } from '@sinclair/typebox'
import { conflict } from '../../dns/conflicts.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { ChangeDnsRecord } from '../../schemas/dns-records.ts'
import { append, eventOf, type NewEvent } from '../events/events.ts'
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
import { setRefusal } from './record-limits.ts'
import { invalidRecord, type RecordDraft, readDraft, recordConflict, refusedPlace } from './record-rules.ts'
import { insertRecordRows } from './statements.ts'
import { deleteRecordRows, growSerial, updateRecordRows } from './zone-statements.ts'

export type Changes = {
  deleted: RecordRow[]
  updated: { before: RecordRow; after: RecordRow }[]
  created: RecordRow[]
}

/** Writes changes that were checked under the zone's lock, with one event each, and returns the zone's new serial. */
export async function writeChanges(db: Db, actor: Actor, zone: Zone, changes: Changes): Promise<number> {
  const { deleted, updated, created } = changes
  if (deleted.length + updated.length + created.length === 0) return zone.serial
  // Records that stay where they are keep their rows. Others are deleted and inserted: two records that swap values would
  // violate the unique index otherwise.
  const [kept, moved] = [updated.filter(staysInPlace), updated.filter((change) => !staysInPlace(change))]
  const ids = [...deleted, ...moved.map(({ before }) => before)].map((row) => row.id)
  const records = [...moved.map(({ after }) => after), ...created]
  const zoneId = zone.id
  try {
    if (ids.length > 0) await deleteRecordRows(db, { zoneId, ids })
    if (kept.length > 0) await updateRecordRows(db, { zoneId, records: kept.map(({ after }) => after) })
    if (records.length > 0) await insertRecordRows(db, { zoneId, records })
  } catch (error) {
    throw setRefusal(error) ?? error
  }
  const [grown] = await growSerial(db, { zoneId })
  await append(db, eventsOfChanges(actor, zone, changes))
  return grown!.serial
}

function staysInPlace({ before, after }: Changes['updated'][number]): boolean {
  return before.name === after.name && before.value === after.value
}

/** One event for each record. */
export function eventsOfChanges(actor: Actor, zone: Zone, { deleted, updated, created }: Changes): NewEvent[] {
  const event = (type: 'created' | 'updated' | 'deleted') => (row: RecordRow) =>
    eventOf(actor, `dns.record.${type}`, {
      subject: row.id,
      projectId: zone.projectId,
      data: viewRecord(zone.name, row),
    })
  return [
    ...deleted.map(event('deleted')),
    ...updated.map(({ after }) => event('updated')(after)),
    ...created.map(event('created')),
  ]
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
