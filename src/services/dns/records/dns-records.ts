// DNS records: found, listed and created. Changes of existing records are in record-changes.ts.
import type { Static } from '@sinclair/typebox'
import { conflict, namesAbove, placementConflict } from '../../../dns/conflicts.ts'
import { relativeName } from '../../../dns/names.ts'
import type { RecordType } from '../../../dns/record-types.ts'
import { recordTypeOf } from '../../../dns/type-names.ts'
import type { DnsRecord, Domain, Prisma } from '../../../generated/client.ts'
import { type Db, violation } from '../../../platform/database/database.ts'
import { type PageOf, type PageRequest, pageOf } from '../../../platform/database/page.ts'
import { viewOf } from '../../../platform/database/views.ts'
import { Fault } from '../../../platform/errors.ts'
import { invalidFields, refuseFields, type Sound } from '../../../platform/fields.ts'
import { newId } from '../../../platform/ids.ts'
import {
  type DnsRecordQuery,
  DnsRecord as DnsRecordSchema,
  type PlannedDnsRecord,
} from '../../../schemas/dns-records.ts'
import { eventOf, eventValues } from '../../events/index.ts'
import { type Actor, inProjectsOf } from '../../identity/index.ts'
import { isWildcard, nameInPath } from '../../names/index.ts'
import { createRecordRows, listRecordRows, lockZone } from '../sql/statements.ts'
import { selectZone, selectZoneToChange } from '../sql/zone-statements.ts'
import { setRefusal } from './record-limits.ts'
import {
  draftErrors,
  excludedTypes,
  placementError,
  type RecordInput,
  readDraft,
  recordConflict,
} from './record-rules.ts'
import { mayTouch, recordsWithin, requireRecords, seesZone } from './within-parts.ts'

export type DnsRecordView = Static<typeof DnsRecordSchema>

export type RecordRow = Omit<DnsRecord, 'domainId' | 'type'> & { type: RecordType }
export type Zone = Pick<Domain, 'id' | 'projectId' | 'name' | 'serial'> & { readonly nameservers: readonly string[] }

/** Where a record is: the name of its zone as a caller wrote it, and its id. */
export type RecordPath = { domain: string; id: string }

const viewRow = viewOf(DnsRecordSchema)

export function viewRecord(zone: string, row: Omit<DnsRecord, 'domainId'>): DnsRecordView {
  return viewRow(row, { domain: zone })
}

/** A record that a batch or an import creates. In a dry run it has no id, because it is not stored. */
export function viewCreated(zone: string, row: RecordRow, dryRun: boolean): Static<typeof PlannedDnsRecord> {
  const view = viewRecord(zone, row)
  return dryRun ? { ...view, id: null } : view
}

/** Name of the zone in a path. A wildcard is a name in its parent's zone and has none of its own. */
export function zoneInPath(path: string): string {
  const name = nameInPath(path)
  if (isWildcard(name))
    throw new Fault('not_found', `${name} has no zone of its own; its records are in the zone of its parent.`)
  return name
}

/** With the number of its records, of the same moment as its serial. */
export type OpenedZone = Zone & { readonly records: number }

/** The zone of a path, if it is the actor's; to change it, it is locked. */
export async function openZone(db: Db, actor: Actor, path: string, toChange = false): Promise<OpenedZone> {
  const { accountId, projectIds } = actor
  const zone = zoneInPath(path)
  const [found] = await (toChange ? selectZoneToChange : selectZone)(db, { zone, accountId, projectIds })
  if (!found || !seesZone(actor, found.id)) throw new Fault('not_found', `There is no domain ${zone}.`)
  return found
}

export async function findZone(db: Db, actor: Actor, path: string): Promise<Zone> {
  const name = zoneInPath(path)
  const select = { id: true, projectId: true, name: true, serial: true, nameservers: true }
  const zone = await db.domain.findFirst({ where: { ...inProjectsOf(actor), name }, select })
  if (!zone || !seesZone(actor, zone.id)) throw new Fault('not_found', `There is no domain ${name}.`)
  return zone
}

/** The zone, locked against other changes of its records until the transaction ends. */
export async function findZoneToChange(db: Db, actor: Actor, path: string): Promise<Zone> {
  const { accountId, projectIds } = actor
  const name = zoneInPath(path)
  const [zone] = await selectZoneToChange(db, { accountId, projectIds, zone: name })
  if (!zone || !seesZone(actor, zone.id)) throw new Fault('not_found', `There is no domain ${name}.`)
  return zone
}

export async function findRecord(db: Db, actor: Actor, { domain, id }: RecordPath): Promise<DnsRecordView> {
  const name = zoneInPath(domain)
  const row = await db.dnsRecord.findFirst({ where: { id, domain: { ...inProjectsOf(actor), name } } })
  const isFound = row && mayTouch(actor, row.domainId, row)
  if (!isFound) throw new Fault('not_found', `There is no record ${id} in ${name}.`)
  return viewRecord(name, row)
}

type RecordList = { filter: Static<typeof DnsRecordQuery>; page: PageRequest }

export async function listRecords(
  db: Db,
  actor: Actor,
  path: string,
  { filter, page }: RecordList,
): Promise<PageOf<DnsRecordView>> {
  const zone = zoneInPath(path)
  const type = filter.type && (recordTypeOf(filter.type) ?? filter.type)
  const name = filter.name === undefined ? undefined : nameInQuery(filter.name, zone)
  const [afterName = '', afterId = ''] = page.after ?? []
  const { accountId, projectIds } = actor
  const limit = page.limit + 1
  // The list without filters, in its usual order, is the hot read.
  const isPlain = page.order === 'asc' && type === undefined && name === undefined && !actor.zoneParts
  const read = async () => {
    // By its id: joined with the zone, PostgreSQL would read and sort all records of it.
    const { id: domainId } = await findZone(db, actor, path)
    const AND = [{ name }, behind(page), recordsWithin(actor, domainId)]
    const orderBy = [{ name: page.order }, { id: page.order }]
    return db.dnsRecord.findMany({ where: { domainId, type, AND }, orderBy, take: limit })
  }
  const found: Omit<DnsRecord, 'domainId'>[] = isPlain
    ? await listRecordRows(db, { zone, accountId, projectIds, afterName, afterId, limit })
    : await read()
  // An empty page does not tell whether the zone exists.
  if (found.length === 0 && isPlain) await findZone(db, actor, path)
  return pageOf(
    found,
    page,
    (row) => viewRecord(zone, row),
    (row) => [row.name, row.id],
  )
}

export function nameInQuery(input: string, zone: string): string {
  const name = relativeName(input, zone)
  if (name.ok) return name.value
  const errors = [{ in: 'query' as const, pointer: '#/name', code: 'bad_format' as const, detail: name.detail }]
  throw new Fault('validation_failed', name.detail, { errors })
}

/** The condition that a record is on a later page. The index can use only the bound of the name. */
function behind({ after, order }: PageRequest): Prisma.DnsRecordWhereInput {
  if (after === null) return {}
  const [name, id] = after
  return order === 'desc'
    ? { name: { lte: name }, OR: [{ name: { lt: name } }, { id: { lt: id } }] }
    : { name: { gte: name }, OR: [{ name: { gt: name } }, { id: { gt: id } }] }
}

export async function createRecord(db: Db, actor: Actor, path: string, input: RecordInput): Promise<DnsRecordView> {
  const zone = zoneInPath(path)
  const draft = readDraft(zone, input)
  if (Array.isArray(draft)) return refuse(db, actor, path, invalidFields(draft))
  const refusal = conflict<RecordRow>(draft, [])
  if (refusal) {
    const place = placementError(refusal)
    return refuse(db, actor, path, place ? invalidFields([place]) : recordConflict(refusal))
  }
  if (actor.zoneParts) requireRecords(actor, (await findZone(db, actor, path)).id, [draft])
  // An error would abort the transaction of the caller. With the zone locked first, the statement sees every record.
  if (!('$connect' in db)) await lockZone(db, { accountId: actor.accountId, name: zone })
  const now = new Date()
  const row: RecordRow = { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
  const view = viewRecord(zone, row)
  for (let attempt = 0; attempt < 3; attempt++) {
    const [outcome] = await insertRecord(db, actor, row, view)
    // The next attempt sees the record that was committed in between.
    if (outcome === 'raced') continue
    if (!outcome) throw new Fault('not_found', `There is no domain ${zone}.`)
    if (outcome.madeId) return view
    const { id, type, name, value } = outcome
    if (id === null) continue
    const existing = { id, type: type as RecordType, name: name!, value: value! }
    const isBeside = existing.name === draft.name
    const found = isBeside
      ? conflict(draft, [existing])
      : placementConflict(draft, zone, (above) => (above === existing.name ? [existing] : []))
    if (found) throw recordConflict(found)
  }
  throw new Fault('record_conflict', `Another record is being created at ${row.name}. Retry the request.`)
}

/** Refuses what would be refused of a new record by itself, and makes none. */
export async function checkRecord(db: Db, actor: Actor, path: string, input: Sound<RecordInput>): Promise<void> {
  const zone = await findZone(db, actor, path)
  refuseFields(draftErrors(readDraft(zone.name, input)))
}

/** A zone that does not exist is reported before any fault of the record. */
async function refuse(db: Db, actor: Actor, path: string, fault: Fault): Promise<never> {
  await findZone(db, actor, path)
  throw fault
}

async function insertRecord(db: Db, actor: Actor, row: RecordRow, view: DnsRecordView) {
  const { accountId, projectIds } = actor
  const { domain: zone, id, type, name } = view
  const event = eventValues(eventOf(actor, 'dns.record.created', { subject: id, projectId: null, data: view }))
  const around = { excludedTypes: excludedTypes(type), above: [...namesAbove(name)] }
  try {
    return await createRecordRows(db, { zone, accountId, projectIds, ...row, ...around, ...event })
  } catch (error) {
    if (violation(error)?.constraint !== 'dns_record_exclusive') throw setRefusal(error) ?? error
    return ['raced' as const]
  }
}
