// The append-only log: every change writes one row, in the transaction of the change.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, rows, type Sql, sql } from '../db.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { EventQuery, Event as EventSchema, eventTypes } from '../schemas/events.ts'

export type EventType = (typeof eventTypes)[number]

export type NewEvent = {
  accountId: string
  projectId: string | null
  type: EventType
  /** A token's id, or `system`. */
  actor: string
  /** Key of the resource: its id, or the name of a domain. */
  subject: string
  /** The resource as the API shows it, after the change. */
  data: object
}

/** The event of an actor's own change. */
export function eventOf(
  actor: Actor,
  type: EventType,
  subject: string,
  projectId: string | null,
  data: object,
): NewEvent {
  return { accountId: actor.accountId, projectId, type, actor: actor.tokenId, subject, data }
}

/**
 * The insert of an event, as one more part of the statement that makes the change: written if `source`, the part
 * that makes it, has a row. One round trip and one commit for both.
 */
export function eventSql(event: Omit<NewEvent, 'projectId'> & { projectId: string | null | Sql }, source: Sql): Sql {
  return sql`INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
    SELECT ${newId('evt')}, ${event.accountId}, ${event.projectId}, ${event.type}, ${event.actor}, ${event.subject},
      ${JSON.stringify(event.data)}::json, now() FROM ${source}`
}

/** Writes events beside changes that take more than one statement; `db` is the handle of their transaction. */
export async function append(db: Db, events: NewEvent[]): Promise<void> {
  if (events.length === 0) return
  const batch = events.map((event) => ({ id: newId('evt'), ...event }))
  await rows(
    db,
    sql`INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
        SELECT id, "accountId", "projectId", type, actor, subject, data, now()
        FROM json_to_recordset(${JSON.stringify(batch)}::json) AS e(id text, "accountId" text, "projectId" text,
          type text, actor text, subject text, data json) RETURNING id`,
  )
}

export type EventView = Static<typeof EventSchema>

/** Where a reader stands in the log: the writing transaction, and the row's place in it. */
export type Position = { xid: string; seq: string }

type EventRow = Omit<EventView, 'createdAt'> & Position & { createdAt: Date }

const columns = sql`e.id, e.type, e.created_at AS "createdAt", e.actor, e.subject, e.data,
  e.xid::text AS xid, e.seq::text AS seq`

function view({ id, type, createdAt, actor, subject, data }: EventRow): EventView {
  return { id, type, createdAt: createdAt.toISOString(), actor, subject, data }
}

type Filter = Pick<Static<typeof EventQuery>, 'type' | 'subject'>

function conditionsOf(actor: Actor, filter: Filter): Sql {
  const conditions = [sql`e.account_id = ${actor.accountId}`]
  if (actor.projectIds) conditions.push(sql`e.project_id = ANY(${[...actor.projectIds]}::text[])`)
  if (filter.type) conditions.push(sql`e.type = ${filter.type}`)
  if (filter.subject) conditions.push(sql`e.subject = ${filter.subject}`)
  return conditions.reduce((all, one) => sql`${all} AND ${one}`)
}

export async function listEvents(db: Db, actor: Actor, filter: Filter, page: PageRequest): Promise<PageOf<EventView>> {
  const descending = page.order === 'desc'
  const after = page.after ? (descending ? sql`AND e.id < ${page.after[0]}` : sql`AND e.id > ${page.after[0]}`) : sql``
  const found = await rows<EventRow>(
    db,
    sql`SELECT ${columns} FROM event e WHERE ${conditionsOf(actor, filter)} ${after}
        ORDER BY e.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, view, (row) => [row.id])
}

/** Where the event with that id stands; without an id, the end of the log. */
export async function positionOf(db: Db, actor: Actor, eventId: string | null): Promise<Position> {
  const [position] = await rows<Position>(
    db,
    eventId === null
      ? sql`SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1)::text AS xid, '9223372036854775807' AS seq`
      : sql`SELECT xid::text AS xid, seq::text AS seq FROM event WHERE id = ${eventId} AND account_id = ${actor.accountId}`,
  )
  if (!position) throw new Fault('invalid_cursor', 'Last-Event-ID is not the id of an event of this account.')
  return position
}

/**
 * Events behind a position, in an order that never changes: rows are read only once every transaction that began
 * before theirs has ended, so none can slip in behind a reader. `more` tells that some wait for that.
 */
export async function eventsAfter(
  db: Db,
  actor: Actor,
  filter: Filter,
  position: Position,
  limit: number,
): Promise<{ events: EventView[]; position: Position; more: boolean }> {
  const found = await rows<EventRow & { settled: boolean }>(
    db,
    sql`SELECT ${columns}, e.xid < pg_snapshot_xmin(pg_current_snapshot()) AS settled FROM event e
        WHERE ${conditionsOf(actor, filter)}
          AND (e.xid, e.seq) > (${position.xid}::text::xid8, ${position.seq}::text::bigint)
        ORDER BY e.xid, e.seq LIMIT ${limit}::int`,
  )
  const settled = found.filter((row) => row.settled)
  const last = settled[settled.length - 1] ?? position
  const more = settled.length < found.length || found.length === limit
  return { events: settled.map(view), position: { xid: last.xid, seq: last.seq }, more }
}
