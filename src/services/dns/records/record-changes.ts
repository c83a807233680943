// Changes and deletes single records, and writes changes for batches too.
import type { Static } from '@sinclair/typebox'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import { JsonText } from '../../../platform/database/statement.ts'
import { Fault } from '../../../platform/errors.ts'
import { invalidFields, refuseFields, type Sound } from '../../../platform/fields.ts'
import type { ChangeDnsRecord } from '../../../schemas/dns-records.ts'
import { eventOf, type NewEvent, numbered } from '../../events/index.ts'
import type { Actor } from '../../identity/index.ts'
import { insertRecordRows } from '../sql/statements.ts'
import { deleteRecordRows, growSerialWithEvents, selectRecordsById, updateRecordRows } from '../sql/zone-statements.ts'
import {
  type DnsRecordView,
  findZone,
  findZoneToChange,
  type RecordPath,
  type RecordRow,
  viewRecord,
  type Zone,
} from './dns-records.ts'
import { conflictOf } from './placement.ts'
import { setRefusal } from './record-limits.ts'
import { draftErrors, placementError, type RecordDraft, readDraft, recordConflict } from './record-rules.ts'
import { mayTouch, requireRecords } from './within-parts.ts'

export type Changes = {
  deleted: RecordRow[]
  updated: { before: RecordRow; after: RecordRow }[]
  created: RecordRow[]
}

/** All records in their old and new forms. */
export function affectedRecords({ deleted, updated, created }: Changes): RecordRow[] {
  return [...deleted, ...updated.flatMap(({ before, after }) => [before, after]), ...created]
}

/** Changes in the form that the statements take, so another thread can serialize them. */
export type SerializedChanges = {
  zoneId: string
  deletes: string[]
  updates: JsonText | null
  inserts: JsonText | null
  events: JsonText
}

/** Serializes changes, which takes about as long as writing them. */
export function serializeChanges(actor: Actor, zone: Zone, changes: Changes): SerializedChanges {
  const { deleted, updated, created } = changes
  requireRecords(actor, zone.id, affectedRecords(changes))
  // Records that keep their name and value are updated. Others are deleted and inserted, because two records that swap
  // values would violate the unique index.
  const [inPlace, moved] = [updated.filter(staysInPlace), updated.filter((change) => !staysInPlace(change))]
  const jsonOf = (rows: object[]) => (rows.length > 0 ? new JsonText(JSON.stringify(rows)) : null)
  return {
    zoneId: zone.id,
    deletes: [...deleted, ...moved.map(({ before }) => before)].map((row) => row.id),
    updates: jsonOf(inPlace.map(({ after }) => after)),
    inserts: jsonOf([...moved.map(({ after }) => after), ...created]),
    events: new JsonText(JSON.stringify(numbered(eventsOfChanges(actor, zone, changes)))),
  }
}

/** Writes changes that were checked under the zone's lock, with their events, and returns the zone's new serial. */
export async function writeRows(
  db: Db,
  { zoneId, deletes, updates, inserts, events }: SerializedChanges,
): Promise<number> {
  try {
    if (deletes.length > 0) await deleteRecordRows(db, { zoneId, ids: deletes })
    if (updates) await updateRecordRows(db, { zoneId, records: updates })
    if (inserts) await insertRecordRows(db, { zoneId, records: inserts })
  } catch (error) {
    throw setRefusal(error) ?? error
  }
  const [grown] = await growSerialWithEvents(db, { zoneId, events })
  return grown!.serial
}

export function isEmpty({ deleted, updated, created }: Changes): boolean {
  return deleted.length + updated.length + created.length === 0
}

export async function writeChanges(db: Db, actor: Actor, zone: Zone, changes: Changes): Promise<number> {
  return isEmpty(changes) ? zone.serial : writeRows(db, serializeChanges(actor, zone, changes))
}

function staysInPlace({ before, after }: Changes['updated'][number]): boolean {
  return before.name === after.name && before.value === after.value
}

/** One event per record. */
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

/** Whether a change has no effect, so nothing is written and the serial stays the same. */
export function isSameRecord(a: RecordDraft, b: RecordDraft): boolean {
  return a.name === b.name && a.value === b.value && a.ttl === b.ttl && a.comment === b.comment
}

async function findInZone(db: Db, actor: Actor, zone: Zone, id: string): Promise<RecordRow> {
  const [row] = await selectRecordsById(db, { zoneId: zone.id, ids: [id] })
  if (!row || !mayTouch(actor, zone.id, row)) throw new Fault('not_found', `There is no record ${id} in ${zone.name}.`)
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
    const before = await findInZone(db, actor, zone, id)
    precondition(viewRecord(zone.name, before))
    const draft = readDraft(zone.name, { ...before, ...change })
    if (Array.isArray(draft)) throw invalidFields(draft)
    if (isSameRecord(before, draft)) return viewRecord(zone.name, before)
    const after: RecordRow = { ...before, ...draft, updatedAt: new Date() }
    const found = await conflictOf(db, zone, { placed: [after], leaving: [before] })
    const place = found && placementError(found)
    if (place) throw invalidFields([place])
    if (found) throw recordConflict(found)
    await writeChanges(db, actor, zone, { deleted: [], updated: [{ before, after }], created: [] })
    return viewRecord(zone.name, after)
  })
}

/** Throws the errors of a change on its own, without applying it. */
export async function checkChange(
  db: Db,
  actor: Actor,
  { domain, id }: RecordPath,
  change: Sound<Static<typeof ChangeDnsRecord>>,
): Promise<void> {
  const zone = await findZone(db, actor, domain)
  const before = await findInZone(db, actor, zone, id)
  refuseFields(draftErrors(readDraft(zone.name, { ...before, ...change })))
}

export async function deleteRecord(
  db: Db,
  actor: Actor,
  { domain, id }: RecordPath,
  precondition: (view: DnsRecordView) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, domain)
    const row = await findInZone(db, actor, zone, id)
    precondition(viewRecord(zone.name, row))
    const found = await conflictOf(db, zone, { placed: [], leaving: [row] })
    if (found) throw recordConflict(found)
    await writeChanges(db, actor, zone, { deleted: [row], updated: [], created: [] })
  })
}
