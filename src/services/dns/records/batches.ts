// Batches of changes to a zone, all or nothing: deletions, then updates, then creations. Only the result is checked.
import type { Static } from '@sinclair/typebox'
import type { Conflict } from '../../../dns/conflicts.ts'
import { type Db, inTransaction, transactionOn } from '../../../platform/database/database.ts'
import { JsonText } from '../../../platform/database/statement.ts'
import { type FieldError, invalidField } from '../../../platform/errors.ts'
import { badField, invalidFields, refuseFields, type Sound } from '../../../platform/fields.ts'
import { newId } from '../../../platform/ids.ts'
import { type DnsBatch, type DnsBatchResult, maxBatchSize } from '../../../schemas/dns-records.ts'
import type { Actor } from '../../identity/index.ts'
import { selectRecordsById } from '../sql/zone-statements.ts'
import {
  findZone,
  findZoneToChange,
  openZone,
  type RecordRow,
  viewCreated,
  viewRecord,
  type Zone,
} from './dns-records.ts'
import { type Placement, placementOf } from './placement.ts'
import {
  affectedRecords,
  type Changes,
  isEmpty,
  isSameRecord,
  serializeChanges,
  writeChanges,
  writeRows,
} from './record-changes.ts'
import { countSets, type RecordLimits, recordsAllowed, setOverflow } from './record-limits.ts'
import { draftErrors, placementError, readDraft, recordConflict } from './record-rules.ts'
import { mayTouch, requireRecords } from './within-parts.ts'

type Batch = Static<typeof DnsBatch>

export type BatchRequest = { batch: Batch; dryRun: boolean }

export const sizeOf = (batch: Batch) =>
  (batch.delete?.length ?? 0) + (batch.update?.length ?? 0) + (batch.create?.length ?? 0)

export function refuseOversized(batch: Batch): void {
  const size = sizeOf(batch)
  if (size <= maxBatchSize) return
  throw invalidField('#', 'too_long', `has ${size} operations; the limit is ${maxBatchSize}`)
}

// Limits the response and the events, which contain the records that the ids name.
const maxBatchBytes = 1024 * 1024

function refuseLarge(named: RecordRow[]): void {
  const bytes = named.reduce((sum, { value }) => sum + Buffer.byteLength(value), 0)
  if (bytes <= maxBatchBytes) return
  const detail = `names records of ${bytes} bytes in total; the limit is ${maxBatchBytes}`
  throw invalidField('#', 'too_long', detail)
}

export async function applyBatch(
  db: Db,
  actor: Actor,
  path: string,
  { batch, dryRun }: BatchRequest,
): Promise<Static<typeof DnsBatchResult>> {
  refuseOversized(batch)
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path)
    const changes = await planBatch(db, actor, zone, batch)
    const serial = dryRun ? zone.serial : await writeChanges(db, actor, zone, changes)
    return viewBatch(zone, changes, dryRun, serial)
  })
}

function viewBatch(zone: Zone, changes: Changes, dryRun: boolean, serial: number): Static<typeof DnsBatchResult> {
  return {
    dryRun,
    deleted: changes.deleted.map((row) => viewRecord(zone.name, row)),
    updated: changes.updated.map(({ before, after }) => ({
      before: viewRecord(zone.name, before),
      after: viewRecord(zone.name, after),
    })),
    created: changes.created.map((row) => viewCreated(zone.name, row, dryRun)),
    serial,
  }
}

/** A batch planned in the thread, valid as long as the zone has this serial. */
export type PlannedBatch = {
  zoneId: string
  serial: number
  /** Null if there is nothing to write. */
  rows: { deletes: string[]; updates: string | null; inserts: string | null; events: string } | null
  /** The response as JSON. */
  result: string
}

/** Plans a batch on a handle of `onConnection`, without locking the zone. */
export async function planLargeBatch(
  connection: Db,
  actor: Actor,
  path: string,
  { batch, dryRun }: BatchRequest,
): Promise<PlannedBatch> {
  const plan = async () => {
    const zone = await openZone(connection, actor, path)
    return { zone, changes: await planBatch(connection, actor, zone, batch) }
  }
  const { zone, changes } = await transactionOn(connection, plan, 'ISOLATION LEVEL REPEATABLE READ READ ONLY')
  const writes = !dryRun && !isEmpty(changes)
  const rows = writes ? serializeChanges(actor, zone, changes) : null
  const { id: zoneId, serial } = zone
  return {
    zoneId,
    serial,
    rows: rows && {
      deletes: rows.deletes,
      updates: rows.updates?.text ?? null,
      inserts: rows.inserts?.text ?? null,
      events: rows.events.text,
    },
    result: JSON.stringify(viewBatch(zone, changes, dryRun, writes ? serial + 1 : serial)),
  }
}

/** Writes a planned batch and returns the response as JSON. Plans it again if the zone has changed since. */
export async function applyPlanned(
  db: Db,
  actor: Actor,
  path: string,
  { plan, ...request }: BatchRequest & { plan: PlannedBatch },
): Promise<string> {
  const { rows, zoneId, serial, result } = plan
  if (!rows) return result
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path)
    if (zone.id !== zoneId || zone.serial !== serial) return JSON.stringify(await applyBatch(db, actor, path, request))
    const jsonOf = (text: string | null) => (text === null ? null : new JsonText(text))
    const [updates, inserts] = [jsonOf(rows.updates), jsonOf(rows.inserts)]
    await writeRows(db, { zoneId, deletes: rows.deletes, updates, inserts, events: new JsonText(rows.events) })
    return result
  })
}

/** A new or changed record with its pointer in the body; `grows` is false if it was in its set before. */
export type PlacedRow = { at: string; row: RecordRow; grows: boolean }

/** Changes with the records to place, and the errors found so far. */
export type PlannedChanges = Changes & { placed: PlacedRow[]; errors: FieldError[] }

/** Reads a batch, one operation at a time; `errors` has the operations that are invalid on their own. */
async function readBatch(db: Db, actor: Actor, zone: Zone, batch: Sound<Batch>): Promise<PlannedChanges> {
  const errors: FieldError[] = []
  const now = new Date()
  const named = [...(batch.delete ?? []), ...(batch.update ?? []).map((item) => item?.id)]
  const ids = named.filter((id) => id !== undefined)
  const byId = new Map<string, RecordRow>()
  if (ids.length > 0) {
    for (const row of await selectRecordsById(db, { zoneId: zone.id, ids })) {
      if (mayTouch(actor, zone.id, row)) byId.set(row.id, row)
    }
    refuseLarge([...byId.values()])
  }
  const used = new Set<string>()
  // Each record may be named once, because a deletion and an update would contradict each other.
  const take = (id: string | undefined, pointer: string): RecordRow | null => {
    if (id === undefined) return null
    const row = byId.get(id)
    if (!row) errors.push(badField(pointer, 'not_found', `There is no record ${id} in the zone.`))
    else if (used.has(id)) errors.push(badField(pointer, 'repeated', `${id} is listed twice.`))
    else {
      used.add(id)
      return row
    }
    return null
  }

  const deleted = (batch.delete ?? []).flatMap((id, index) => take(id, `#/delete/${index}`) ?? [])
  const updated: Changes['updated'] = []
  const placed: PlacedRow[] = []
  for (const [index, { id, ...change } = {}] of (batch.update ?? []).entries()) {
    const at = `#/update/${index}`
    const before = take(id, `${at}/id`)
    if (!before) continue
    const draft = readDraft(zone.name, { ...before, ...change }, at)
    if (Array.isArray(draft)) errors.push(...draft)
    else if (!isSameRecord(before, draft)) {
      const after = { ...before, ...draft, updatedAt: now }
      updated.push({ before, after })
      placed.push({ at, row: after, grows: before.name !== after.name })
    }
  }
  const created: RecordRow[] = []
  for (const [index, input = {}] of (batch.create ?? []).entries()) {
    const at = `#/create/${index}`
    const draft = readDraft(zone.name, input, at)
    if (Array.isArray(draft)) errors.push(...draft)
    else {
      const row = { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
      created.push(row)
      placed.push({ at, row, grows: true })
    }
  }
  return { deleted, updated, created, placed, errors }
}

/** Throws the errors of each operation on its own, without changing anything. */
export async function checkBatch(db: Db, actor: Actor, path: string, batch: Sound<Batch>): Promise<void> {
  const zone = await findZone(db, actor, path)
  const { placed, errors } = await readBatch(db, actor, zone, batch)
  refuseFields([...errors, ...placed.flatMap(({ row, at }) => draftErrors(row, at))])
}

async function planBatch(db: Db, actor: Actor, zone: Zone, batch: Batch): Promise<Changes> {
  return checkChanges(db, actor, zone, await readBatch(db, actor, zone, batch))
}

/** Throws if the result breaks a rule, limit or the actor's rights. The zone must be locked, or read in a snapshot. */
export async function checkChanges(db: Db, actor: Actor, zone: Zone, plan: PlannedChanges): Promise<Changes> {
  const { deleted, updated, created, placed, errors } = plan
  requireRecords(actor, zone.id, affectedRecords(plan))
  const leaving = [...deleted, ...updated.map(({ before }) => before)]
  const limits = await recordsAllowed(db, actor.accountId)
  await checkPlaces(db, zone, { placed, leaving, errors, limits })
  return { deleted, updated, created }
}

type PlacementCheck = { placed: PlacedRow[]; leaving: RecordRow[]; errors: FieldError[]; limits: RecordLimits }

/** Checks each new record against those that stay and those placed earlier in the batch. */
async function checkPlaces(db: Db, zone: Zone, { placed, leaving, errors, limits }: PlacementCheck): Promise<void> {
  const placement = await placementOf(db, zone, { placed: placed.map(({ row }) => row), leaving })
  const conflicts: { found: Conflict<RecordRow>; error: FieldError }[] = []
  const refuse = (found: Conflict<RecordRow>, at: string) => {
    const place = placementError(found, at)
    if (place) errors.push(place)
    else conflicts.push({ found, error: { in: 'body', pointer: at, code: found.code, detail: found.detail } })
  }
  for (const { at, row } of placed) {
    const found = placement.put(row)
    if (found) refuse(found, at)
  }
  const placeOf = new Map(placed.map(({ row, at }) => [row, at]))
  if (errors.length === 0 && conflicts.length === 0) {
    for (const { row, found } of placement.settle()) refuse(found, (row && placeOf.get(row)) ?? '#')
  }
  if (errors.length > 0) throw invalidFields([...errors, ...conflicts.map(({ error }) => error)])
  const [first] = conflicts
  if (!first) return checkSets(placed, placement.recordsAt, limits)
  const { found } = first
  // A record of this batch is not stored yet, so the error can't name its id.
  const known = found.kind === 'policy' || placement.isStored(found.record)
  throw recordConflict(
    known ? found : { kind: 'policy', code: found.code, detail: `${found.detail} It is also in this batch.` },
    conflicts.map(({ error }) => error),
  )
}

/** Throws for the first record that exceeds a limit of its set; `recordsAt` includes the placed records. */
function checkSets(placed: PlacedRow[], recordsAt: Placement['recordsAt'], limits: RecordLimits): void {
  const growing = new Map(placed.filter(({ grows }) => grows).map((one) => [one.row, one]))
  const count = countSets(limits)
  for (const name of new Set(placed.map(({ row }) => row.name))) {
    for (const row of recordsAt(name)) if (!growing.has(row)) count(row)
  }
  for (const { row, at } of growing.values()) {
    const over = count(row)
    if (over) throw setOverflow(row, over, at)
  }
}
