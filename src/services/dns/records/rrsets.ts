// RRsets: all records of one name and type, read and replaced together.
import type { Static } from '@sinclair/typebox'
import { relativeName } from '../../../dns/names.ts'
import type { RecordType } from '../../../dns/record-types.ts'
import { recordTypeOf } from '../../../dns/type-names.ts'
import type { Prisma } from '../../../generated/client.ts'
import { type Db, inTransaction } from '../../../platform/database/database.ts'
import { type PageOf, type PageRequest, pageOf } from '../../../platform/database/page.ts'
import { Fault, type FieldError } from '../../../platform/errors.ts'
import { badField, refuseFields, type Sound } from '../../../platform/fields.ts'
import { newId } from '../../../platform/ids.ts'
import type { DnsRrsetQuery, DnsRrset as DnsRrsetSchema, PutDnsRrset } from '../../../schemas/rrsets.ts'
import type { Actor } from '../../identity/index.ts'
import { selectRecordsByName } from '../sql/zone-statements.ts'
import { checkChanges, type PlannedChanges } from './batches.ts'
import { findZone, findZoneToChange, nameInQuery, type RecordRow, type Zone } from './dns-records.ts'
import { writeChanges } from './record-changes.ts'
import { readDraft } from './record-rules.ts'
import { recordsWithin, requireRecords } from './within-parts.ts'

export type RrsetView = Static<typeof DnsRrsetSchema>

/** The path of a set, as the client wrote it. */
export type RrsetPath = { domain: string; name: string; type: string }
type SetKey = { name: string; type: RecordType }

function parseSetKey(zone: Zone, { name, type }: RrsetPath): SetKey {
  const relative = relativeName(name, zone.name)
  const known = recordTypeOf(type.toUpperCase())
  const errors: FieldError[] = []
  if (!relative.ok) errors.push({ in: 'path', pointer: '#/name', code: 'bad_format', detail: relative.detail })
  if (known === null) {
    errors.push({
      in: 'path',
      pointer: '#/type',
      code: 'not_allowed',
      detail: `${type} is not a supported record type`,
    })
  }
  refuseFields(errors)
  return { name: (relative as { value: string }).value, type: known! }
}

function viewSet(zone: string, { name, type }: SetKey, rows: readonly RecordRow[]): RrsetView | null {
  if (rows.length === 0) return null
  const ttl = Math.min(...rows.map((row) => row.ttl))
  return { domain: zone, name, type, ttl, values: rows.map(({ value }) => value) }
}

/** The records of a set, in order of creation. */
async function rowsAt(db: Db, zone: Zone, { name, type }: SetKey): Promise<RecordRow[]> {
  return (await selectRecordsByName(db, { zoneId: zone.id, names: [name] })).filter((row) => row.type === type)
}

export async function findRrset(db: Db, actor: Actor, path: RrsetPath): Promise<RrsetView> {
  const zone = await findZone(db, actor, path.domain)
  const setKey = parseSetKey(zone, path)
  requireRecords(actor, zone.id, [setKey])
  const view = viewSet(zone.name, setKey, await rowsAt(db, zone, setKey))
  if (!view) throw new Fault('not_found', `There are no records of type ${setKey.type} at ${setKey.name}.`)
  return view
}

type RrsetList = { filter: Static<typeof DnsRrsetQuery>; page: PageRequest }

export async function listRrsets(
  db: Db,
  actor: Actor,
  path: string,
  { filter, page }: RrsetList,
): Promise<PageOf<RrsetView>> {
  const zone = await findZone(db, actor, path)
  const name = filter.name === undefined ? undefined : nameInQuery(filter.name, zone.name)
  const { order } = page
  const AND = [{ name }, behind(page), recordsWithin(actor, zone.id)]
  const sets = await db.dnsRecord.groupBy({
    by: ['name', 'type'],
    where: { domainId: zone.id, type: filter.type, AND },
    orderBy: [{ name: order }, { type: order }],
    take: page.limit + 1,
  })
  const names = [...new Set(sets.map((set) => set.name))]
  const rows = names.length > 0 ? await selectRecordsByName(db, { zoneId: zone.id, names }) : []
  const bySet = Map.groupBy(rows, (row) => `${row.name} ${row.type}`)
  const { items, ...cursor } = pageOf(
    sets as SetKey[],
    page,
    (set) => viewSet(zone.name, set, bySet.get(`${set.name} ${set.type}`) ?? []),
    (set) => [set.name, set.type],
  )
  // Skips sets whose records were deleted between the two statements.
  return { ...cursor, items: items.filter((view) => view !== null) }
}

function behind({ after, order }: PageRequest): Prisma.DnsRecordWhereInput {
  if (after === null) return {}
  const [name, type] = after
  return order === 'desc'
    ? { name: { lte: name }, OR: [{ name: { lt: name } }, { type: { lt: type } }] }
    : { name: { gte: name }, OR: [{ name: { gt: name } }, { type: { gt: type } }] }
}

type RrsetInput = Sound<Static<typeof PutDnsRrset>>

const atValue = (index: number) => `#/values/${index}`

/** Points an error of a record at its value, because the body has no records. */
const ofValue = (error: FieldError): FieldError => ({
  ...error,
  pointer: error.pointer.replace(/^(#\/values\/\d+)\/.*/, '$1'),
})

/** Plans the replacement of a set; records whose value stays are kept. */
function planSet(
  zone: Zone,
  setKey: SetKey,
  before: readonly RecordRow[],
  { values = [], ttl }: RrsetInput,
): PlannedChanges {
  const plan: PlannedChanges = { deleted: [], updated: [], created: [], placed: [], errors: [] }
  const left = new Map(before.map((row) => [row.value, row]))
  const taken = new Set<string>()
  const now = new Date()
  for (const [index, value] of values.entries()) {
    const at = atValue(index)
    const draft = value === undefined ? [] : readDraft(zone.name, { ...setKey, value, ttl }, at)
    if (Array.isArray(draft)) {
      plan.errors.push(...draft.map(ofValue))
      continue
    }
    if (taken.has(draft.value)) {
      plan.errors.push(badField(at, 'repeated', `${draft.value} is listed twice`))
      continue
    }
    taken.add(draft.value)
    const kept = left.get(draft.value)
    left.delete(draft.value)
    if (!kept) {
      const row = { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
      plan.created.push(row)
      plan.placed.push({ at, row, grows: true })
    } else if (kept.ttl !== draft.ttl) {
      const after = { ...kept, ttl: draft.ttl, updatedAt: now }
      plan.updated.push({ before: kept, after })
      plan.placed.push({ at, row: after, grows: false })
    }
  }
  plan.deleted.push(...left.values())
  return plan
}

export type RrsetChange = { input: Static<typeof PutDnsRrset>; precondition: (view: RrsetView | null) => void }

/** Replaces the set. */
export async function putRrset(
  db: Db,
  actor: Actor,
  path: RrsetPath,
  { input, precondition }: RrsetChange,
): Promise<RrsetView> {
  return inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path.domain)
    const setKey = parseSetKey(zone, path)
    requireRecords(actor, zone.id, [setKey])
    const before = await rowsAt(db, zone, setKey)
    precondition(viewSet(zone.name, setKey, before))
    const changes = await checkChanges(db, actor, zone, planSet(zone, setKey, before, input)).catch(refuse)
    await writeChanges(db, actor, zone, changes)
    return viewSet(zone.name, setKey, await rowsAt(db, zone, setKey))!
  })
}

/** Rethrows errors of records as errors of their values. */
function refuse(error: unknown): never {
  if (!(error instanceof Fault) || !error.members.errors) throw error
  throw new Fault(error.code, error.message, { ...error.members, errors: error.members.errors.map(ofValue) })
}

/** Throws the errors of the values on their own, without changing anything. */
export async function checkRrset(db: Db, actor: Actor, path: RrsetPath, input: RrsetInput): Promise<void> {
  const zone = await findZone(db, actor, path.domain)
  refuseFields(planSet(zone, parseSetKey(zone, path), [], input).errors)
}

/** Deletes the records of the set, if any. */
export async function deleteRrset(
  db: Db,
  actor: Actor,
  path: RrsetPath,
  precondition: (view: RrsetView | null) => void,
): Promise<void> {
  await inTransaction(db, async (db) => {
    const zone = await findZoneToChange(db, actor, path.domain)
    const setKey = parseSetKey(zone, path)
    requireRecords(actor, zone.id, [setKey])
    const deleted = await rowsAt(db, zone, setKey)
    precondition(viewSet(zone.name, setKey, deleted))
    const plan = { deleted, updated: [], created: [], placed: [], errors: [] }
    await writeChanges(db, actor, zone, await checkChanges(db, actor, zone, plan))
  })
}
