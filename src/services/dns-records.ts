// DNS records: found, listed and made. Changes of records that are there stand in dns-record-changes.ts.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, rows, sql, violation } from '../db.ts'
import { conflict } from '../dns/conflicts.ts'
import { relativeName } from '../dns/names.ts'
import type { RecordType } from '../dns/record-types.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { DnsRecordQuery, DnsRecord as DnsRecordSchema } from '../schemas/dns-records.ts'
import {
  excludedTypes,
  invalidRecord,
  type RecordDraft,
  type RecordInput,
  readDraft,
  recordConflict,
  refusedPlace,
} from './dns-record-rules.ts'
import { isWildcard, nameInPath } from './domain-names.ts'
import { eventOf, eventSql } from './events.ts'
import { ownedBy } from './projects.ts'

export type DnsRecordView = Static<typeof DnsRecordSchema>

export type RecordRow = RecordDraft & { id: string; createdAt: Date; updatedAt: Date }
export type Zone = { id: string; projectId: string; name: string; serial: number }

export const recordColumns = sql`r.id, r.type, r.name, r.value, r.ttl, r.comment, r.created_at AS "createdAt",
  r.updated_at AS "updatedAt"`

export function viewRecord(zone: string, row: RecordRow): DnsRecordView {
  return {
    id: row.id,
    domain: zone,
    type: row.type,
    name: row.name,
    value: row.value,
    ttl: row.ttl,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    comment: row.comment,
  }
}

/** Name of the zone in a path. A wildcard is a name in its parent's zone and has none of its own. */
export function zoneInPath(path: string): string {
  const name = nameInPath(path)
  if (isWildcard(name)) throw new Fault('not_found', `${name} has no zone of its own; its records are its parent’s.`)
  return name
}

/** The zone of the actor; with `lock`, held against other changes of its records until the transaction ends. */
export async function findZone(db: Db, actor: Actor, path: string, lock = false): Promise<Zone> {
  const name = zoneInPath(path)
  const [zone] = await rows<Zone>(
    db,
    sql`SELECT d.id, d.project_id AS "projectId", d.name, d.serial FROM domain d
        WHERE d.name = ${name} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)}
        ${lock ? sql`FOR NO KEY UPDATE` : sql``}`,
  )
  if (!zone) throw new Fault('not_found', `There is no domain ${name}.`)
  return zone
}

export async function findRecord(db: Db, actor: Actor, path: string, id: string): Promise<DnsRecordView> {
  const name = zoneInPath(path)
  const [row] = await rows<RecordRow>(
    db,
    sql`SELECT ${recordColumns} FROM dns_record r JOIN domain d ON d.id = r.domain_id
        WHERE r.id = ${id} AND d.name = ${name} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)}`,
  )
  if (!row) throw new Fault('not_found', `There is no record ${id} in ${name}.`)
  return viewRecord(name, row)
}

export async function listRecords(
  db: Db,
  actor: Actor,
  path: string,
  filter: Static<typeof DnsRecordQuery>,
  page: PageRequest,
): Promise<PageOf<DnsRecordView>> {
  const zone = zoneInPath(path)
  const owned = sql`SELECT d.id FROM domain d
    WHERE d.name = ${zone} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)}`
  const conditions = [sql`r.domain_id = (${owned})`]
  if (filter.type) conditions.push(sql`r.type = ${filter.type}`)
  if (filter.name) {
    const name = relativeName(filter.name, zone)
    if (!name.ok) {
      const errors = [{ in: 'query' as const, pointer: '#/name', code: 'bad_format', detail: name.detail }]
      throw new Fault('validation_failed', name.detail, { errors })
    }
    conditions.push(sql`r.name = ${name.value}`)
  }
  const descending = page.order === 'desc'
  if (page.after) {
    const [name, id] = page.after
    conditions.push(descending ? sql`(r.name, r.id) < (${name}, ${id})` : sql`(r.name, r.id) > (${name}, ${id})`)
  }
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`)
  const direction = descending ? sql`DESC` : sql`ASC`
  const found = await rows<RecordRow>(
    db,
    sql`SELECT ${recordColumns} FROM dns_record r WHERE ${where}
        ORDER BY r.name ${direction}, r.id ${direction} LIMIT ${page.limit + 1}::int`,
  )
  // Only an empty page leaves open whether the zone is there at all.
  if (found.length === 0) await findZone(db, actor, path)
  return pageOf(
    found,
    page,
    (row) => viewRecord(zone, row),
    (row) => [row.name, row.id],
  )
}

type Attempt = { madeId: string | null; id: string | null; type: RecordType; name: string; value: string }

export async function createRecord(db: Db, actor: Actor, path: string, input: RecordInput): Promise<DnsRecordView> {
  const zone = zoneInPath(path)
  const draft = readDraft(zone, input)
  if (Array.isArray(draft)) return refuse(db, actor, path, invalidRecord(draft))
  const misplaced = conflict<RecordRow>(draft, [])
  if (misplaced) {
    const place = refusedPlace(misplaced)
    return refuse(db, actor, path, place ? invalidRecord([place]) : recordConflict(misplaced))
  }
  // In a transaction that must live on nothing may raise, so the zone is locked first and the statement sees all.
  if (!('$connect' in db)) await findZone(db, actor, path, true)
  const now = new Date()
  const row: RecordRow = { ...draft, id: newId('rec'), createdAt: now, updatedAt: now }
  const view = viewRecord(zone, row)
  for (let attempt = 0; attempt < 3; attempt++) {
    const [outcome] = await insertRecord(db, actor, view)
    // A record that came in between is seen by the next attempt.
    if (outcome === 'raced') continue
    if (!outcome) throw new Fault('not_found', `There is no domain ${zone}.`)
    if (outcome.madeId) return view
    if (outcome.id === null) continue
    const existing = { id: outcome.id, type: outcome.type, name: outcome.name, value: outcome.value }
    const found = conflict(draft, [existing])
    if (found) throw recordConflict(found)
  }
  throw new Fault('record_conflict', `Another record is being made at ${row.name}.`)
}

/** A zone that is not there is told before anything about the record. */
async function refuse(db: Db, actor: Actor, path: string, fault: Fault): Promise<never> {
  await findZone(db, actor, path)
  throw fault
}

/**
 * One statement for lock, check, record, serial and event. The serial moves only with a record. A record that another
 * request commits while this one waits for the lock is not in its snapshot; the table's trigger and unique index see it.
 * The serial is found by a sub-select: joined with `made`, a large zone misled the planner into walking all domains.
 */
async function insertRecord(db: Db, actor: Actor, view: DnsRecordView): Promise<(Attempt | 'raced')[]> {
  // The project is known only inside the statement, so it stands in the event as SQL.
  const project = { projectId: sql`(SELECT project_id FROM zone)` }
  const event = { ...eventOf(actor, 'dns.record.created', view.id, null, view), ...project }
  const statement = sql`WITH zone AS (
      SELECT d.id, d.project_id FROM domain d
      WHERE d.name = ${view.domain} AND ${ownedBy(actor, sql`d.account_id`, sql`d.project_id`)} FOR NO KEY UPDATE),
    other AS (
      SELECT r.id, r.type, r.name, r.value FROM dns_record r JOIN zone ON r.domain_id = zone.id
      WHERE r.name = ${view.name} AND (r.type = ANY(${excludedTypes(view.type)}::text[])
        OR (r.type = ${view.type} AND r.value = ${view.value}))
      ORDER BY r.type = ${view.type} AND r.value = ${view.value} DESC LIMIT 1),
    made AS (
      INSERT INTO dns_record (id, domain_id, type, name, value, ttl, comment, created_at, updated_at)
      SELECT ${view.id}, zone.id, ${view.type}, ${view.name}, ${view.value}, ${view.ttl}::int, ${view.comment}::text,
        ${view.createdAt}::timestamptz, ${view.createdAt}::timestamptz
      FROM zone WHERE NOT EXISTS (SELECT 1 FROM other) ON CONFLICT DO NOTHING RETURNING id, domain_id),
    grown AS (UPDATE domain SET serial = serial + 1 WHERE id = (SELECT domain_id FROM made)),
    logged AS (${eventSql(event, sql`made`)})
    SELECT made.id AS "madeId", other.* FROM zone LEFT JOIN made ON true LEFT JOIN other ON true`
  try {
    return await rows<Attempt>(db, statement)
  } catch (error) {
    if (violation(error)?.constraint !== 'dns_record_exclusive') throw error
    return ['raced']
  }
}
