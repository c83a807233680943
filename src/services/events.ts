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

export type Filter = Pick<Static<typeof EventQuery>, 'type' | 'subject'>

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

// Behind every event of its transaction.
const lastSeq = '9223372036854775807'

/**
 * Where the event with that id stands; without an id, the end of the log. An event that older transactions may still
 * come before, as a list shows it at once, is counted from where the order is certain: better a repeat than a gap.
 */
export async function positionOf(db: Db, actor: Actor, eventId: string | null): Promise<Position> {
  const settled = sql`(pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1)::text`
  const [position] = await rows<Position>(
    db,
    eventId === null
      ? sql`SELECT ${settled} AS xid, ${lastSeq} AS seq`
      : sql`SELECT CASE WHEN known THEN xid::text ELSE ${settled} END AS xid,
              CASE WHEN known THEN seq::text ELSE ${lastSeq} END AS seq
            FROM (SELECT xid, seq, xid < pg_snapshot_xmin(pg_current_snapshot()) AS known
                  FROM event WHERE id = ${eventId} AND account_id = ${actor.accountId}) e`,
  )
  if (!position) throw new Fault('invalid_cursor', 'Last-Event-ID is not the id of an event of this account.')
  return position
}

export function isAfter(one: Position, other: Position): boolean {
  const [xid, otherXid] = [BigInt(one.xid), BigInt(other.xid)]
  return xid > otherXid || (xid === otherXid && BigInt(one.seq) > BigInt(other.seq))
}

/** Events of one reader behind `after`, up to `until`, which no transaction can write before any more. */
export async function eventsBetween(
  db: Db,
  actor: Actor,
  filter: Filter,
  after: Position,
  until: Position,
  limit: number,
): Promise<{ events: EventView[]; position: Position }> {
  const found = await rows<EventRow>(
    db,
    sql`SELECT ${columns} FROM event e WHERE ${conditionsOf(actor, filter)}
          AND (e.xid, e.seq) > (${after.xid}::text::xid8, ${after.seq}::text::bigint)
          AND (e.xid, e.seq) <= (${until.xid}::text::xid8, ${until.seq}::text::bigint)
        ORDER BY e.xid, e.seq LIMIT ${limit}::int`,
  )
  const last = found.length === limit ? found[limit - 1]! : until
  return { events: found.map(view), position: { xid: last.xid, seq: last.seq } }
}

export type LoggedEvent = { view: EventView; accountId: string; projectId: string | null; position: Position }

/** Whether a reader with this filter gets the event: what `conditionsOf` asks of the database. */
export function reads(actor: Actor, filter: Filter, { view, accountId, projectId }: LoggedEvent): boolean {
  if (accountId !== actor.accountId) return false
  if (actor.projectIds && (projectId === null || !actor.projectIds.includes(projectId))) return false
  return (!filter.type || filter.type === view.type) && (!filter.subject || filter.subject === view.subject)
}

/**
 * Events of these accounts behind a position, in an order that never changes: rows are read only once every
 * transaction that began before theirs has ended, so none can slip in behind a reader. The new position is as far as
 * that is so; `more` tells that there are events behind it already.
 */
export async function eventsAfter(
  db: Db,
  accountIds: string[],
  position: Position,
  limit: number,
): Promise<{ events: LoggedEvent[]; position: Position; more: boolean }> {
  type Row = EventRow & { horizon: string; settled: boolean; accountId: string; projectId: string | null }
  const found = await rows<Row>(
    db,
    sql`SELECT ${columns}, e.account_id AS "accountId", e.project_id AS "projectId", e.xid < h.xmin AS settled,
          (h.xmin::text::bigint - 1)::text AS horizon
        FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin) h LEFT JOIN LATERAL (
          SELECT * FROM event WHERE account_id = ANY(${accountIds}::text[])
            AND (xid, seq) > (${position.xid}::text::xid8, ${position.seq}::text::bigint)
          ORDER BY xid, seq LIMIT ${limit}::int) e ON true
        ORDER BY e.xid, e.seq`,
  )
  const events = found
    .filter((row) => row.settled)
    .map((row) => {
      const { accountId, projectId, xid, seq } = row
      return { view: view(row), accountId, projectId, position: { xid, seq } }
    })
  const unsettled = found.some((row) => row.settled === false)
  const more = unsettled || found.length === limit
  const reached = more ? (events[events.length - 1]?.position ?? position) : { xid: found[0]!.horizon, seq: lastSeq }
  return { events, position: isAfter(reached, position) ? reached : position, more }
}
