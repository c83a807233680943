// Many changes of a zone at once, all or nothing: deletions, then updates, then creations. Only the result is checked.
import type { Static } from '@sinclair/typebox'
import { type Conflict, conflict } from '../../dns/conflicts.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import { type FieldError, invalidField } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { type DnsBatch, type DnsBatchResult, highestBatchSize } from '../../schemas/dns-records.ts'
import type { Actor } from '../tokens/actor.ts'
import { findZoneToChange, type RecordRow, readRecords, viewCreated, viewRecord, type Zone } from './dns-records.ts'
import { type Changes, isSameRecord, writeChanges } from './record-changes.ts'
import { invalidRecord, readDraft, recordConflict, refusedPlace } from './record-rules.ts'

type Batch = Static<typeof DnsBatch>

export async function applyBatch(
  db: Db,
  actor: Actor,
  path: string,
  { batch, dryRun }: { batch: Batch; dryRun: boolean },
): Promise<Static<typeof DnsBatchResult>> {
  const size = (batch.delete?.length ?? 0) + (batch.update?.length ?? 0) + (batch.create?.length ?? 0)
  if (size > highestBatchSize) {
    throw invalidField('#', 'too_long', `has ${size} operations; a batch has at most ${highestBatchSize}`)
  }
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path)
    const changes = await planBatch(db, zone, batch)
    const serial = dryRun ? zone.serial : await writeChanges(db, actor, zone, changes)
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
  })
}

type Placed = { at: string; row: RecordRow }

async function planBatch(db: Db, zone: Zone, batch: Batch): Promise<Changes> {
  const errors: FieldError[] = []
  const now = new Date()
  const named = [...(batch.delete ?? []), ...(batch.update ?? []).map(({ id }) => id)]
  const byId = new Map<string, RecordRow>()
  if (named.length > 0) {
    for (const row of await readRecords(db, zone, { id: { in: named } })) byId.set(row.id, row)
  }
  const used = new Set<string>()
  // Each record may be named once: a deletion and an update of one record contradict each other.
  const take = (id: string, pointer: string): RecordRow | null => {
    const row = byId.get(id)
    if (!row) errors.push({ in: 'body', pointer, code: 'not_found', detail: `There is no record ${id} in the zone.` })
    else if (used.has(id)) errors.push({ in: 'body', pointer, code: 'repeated', detail: `${id} is named twice.` })
    else {
      used.add(id)
      return row
    }
    return null
  }

  const deleted = (batch.delete ?? []).flatMap((id, index) => take(id, `#/delete/${index}`) ?? [])
  const updated: Changes['updated'] = []
  const placed: Placed[] = []
  for (const [index, { id, ...change }] of (batch.update ?? []).entries()) {
    const at = `#/update/${index}`
    const before = take(id, `${at}/id`)
    if (!before) continue
    const draft = readDraft(zone.name, { ...before, ...change }, at)
    if (Array.isArray(draft)) errors.push(...draft)
    else if (!isSameRecord(before, draft)) {
      const after = { ...before, ...draft, updatedAt: now }
      updated.push({ before, after })
      placed.push({ at, row: after })
    }
  }
  const created: RecordRow[] = []
  for (const [index, input] of (batch.create ?? []).entries()) {
    const at = `#/create/${index}`
    const draft = readDraft(zone.name, input, at)
    if (Array.isArray(draft)) errors.push(...draft)
    else {
      const row = { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
      created.push(row)
      placed.push({ at, row })
    }
  }
  const leaving = [...deleted, ...updated.map(({ before }) => before)]
  await checkPlaces(db, zone, { placed, leaving, errors })
  return { deleted, updated, created }
}

type Plan = { placed: Placed[]; leaving: RecordRow[]; errors: FieldError[] }

/** Compares every new place with the records that stay, and with those placed before it in the batch. */
async function checkPlaces(db: Db, zone: Zone, { placed, leaving, errors }: Plan): Promise<void> {
  const names = [...new Set(placed.map(({ row }) => row.name))]
  const gone = new Set(leaving.map((row) => row.id))
  const existing = names.length > 0 ? await readRecords(db, zone, { name: { in: names } }) : []
  const atName = Map.groupBy(
    existing.filter((row) => !gone.has(row.id)),
    (row) => row.name,
  )
  const stored = new Set(existing.map((row) => row.id))
  const conflicts: { found: Conflict<RecordRow>; error: FieldError }[] = []
  for (const { at, row } of placed) {
    const beside = atName.get(row.name) ?? []
    const { type, name, value } = row
    const found = conflict({ type, name, value }, beside)
    if (!found) {
      beside.push(row)
      atName.set(row.name, beside)
      continue
    }
    const place = refusedPlace(found, at)
    if (place) errors.push(place)
    else conflicts.push({ found, error: { in: 'body', pointer: at, code: found.code, detail: found.detail } })
  }
  if (errors.length > 0) throw invalidRecord([...errors, ...conflicts.map(({ error }) => error)])
  const [first] = conflicts
  if (!first) return
  const { found } = first
  // A record of this batch is not stored yet, so it cannot be named by an id.
  const known = found.kind === 'policy' || stored.has(found.record.id)
  throw recordConflict(
    known ? found : { kind: 'policy', code: found.code, detail: `${found.detail} It is in this batch too.` },
    conflicts.map(({ error }) => error),
  )
}
