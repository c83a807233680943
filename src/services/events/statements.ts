// Events in SQL: how changes write them, and how the log is read in the order of (xid, seq).
import { columnsOf, inserted, insertedFrom, omit, pick, selected } from '../../platform/database/columns.ts'
import {
  boolean,
  int4,
  int8,
  type JsonText,
  json,
  optional,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../platform/database/statement.ts'
import { newId, timeOf } from '../../platform/ids.ts'
import { currentTrace } from '../../platform/observe/tracing.ts'
import type { NewEvent } from './event-types.ts'

/** An event as it is written. */
export type NumberedEvent = NewEvent & { id: string; trace: string | null; createdAt: Date }

// The others number themselves.
const written = omit(columnsOf('Event'), ['seq'])

/** Parameters of `insertEvent`, for the statement that it is part of. */
export const eventIn = {
  eventId: text(),
  eventAccount: text(),
  eventProject: optional(text()),
  eventType: text(),
  eventActor: text(),
  eventSubject: text(),
  eventData: json<object>(),
  eventTrace: optional(text()),
  eventAt: timestamptz(),
}

/** The time of an event is that in its id, by which lists are ordered and bounded. */
export function eventValues(event: NewEvent) {
  const eventId = newId('evt')
  return {
    eventId,
    eventAt: timeOf(eventId),
    eventAccount: event.accountId,
    eventProject: event.projectId,
    eventType: event.type,
    eventActor: event.actor,
    eventSubject: event.subject,
    eventData: event.data,
    eventTrace: currentTrace(),
  }
}

/** Writes the event if `source`, the part that makes the change, has a row: one round trip and one commit for both. */
export function insertEvent(p: { [K in keyof typeof eventIn]: string }, source: string): string {
  const values = {
    id: p.eventId,
    accountId: p.eventAccount,
    projectId: p.eventProject,
    type: p.eventType,
    actor: p.eventActor,
    subject: p.eventSubject,
    data: p.eventData,
    trace: p.eventTrace,
    createdAt: p.eventAt,
  }
  return `INSERT INTO event ${inserted(written, values)} FROM ${source}`
}

/** Parameter of `insertEventsOf`. */
export const eventsIn = { events: json<NumberedEvent[] | JsonText>() }

/**
 * One parameter for any number of events. Prisma's createMany has eight for each, so every number is another text to
 * prepare, and 5,000 events of a zone import took 2.1 s instead of 0.5 s.
 */
export const insertEventsOf = (p: { events: string }) => `
  INSERT INTO event ${insertedFrom(written, `json_to_recordset(${p.events})`)}
  RETURNING id`

export const insertEvents = statement('events.insert', {
  reason: 'list as one parameter',
  in: eventsIn,
  out: { id: text() },
  sql: insertEventsOf,
})

/** The first number that a running or later transaction may still write, in the snapshot of the statement. */
export const horizon = 'event_horizon(pg_snapshot_xmin(pg_current_snapshot()))'

/** The number of a transaction of its own. */
export const takeNumber = statement('events.number', {
  reason: 'function of the database',
  in: {},
  out: { xid: text() },
  sql: () => 'SELECT event_xid()::text AS xid',
})

const position = { xid: text(), seq: int8() }

/**
 * The horizon, and the last event before it. Readers go on behind that event and not at the horizon: numbers that were
 * taken and not used below it come again when PostgreSQL was killed, because only what is written outlives that.
 */
const settledLog = `
  h AS MATERIALIZED (SELECT ${horizon} AS xid),
  last AS MATERIALIZED (
    SELECT COALESCE(e.xid, '0'::xid8) AS xid, COALESCE(e.seq, 0) AS seq FROM h
    LEFT JOIN LATERAL (SELECT xid, seq FROM event WHERE xid < h.xid ORDER BY xid DESC, seq DESC LIMIT 1) e ON true)`

export const selectEnd = statement('events.end', {
  reason: 'function of the database',
  in: {},
  out: position,
  sql: () => `WITH ${settledLog} SELECT xid::text AS xid, seq FROM last`,
})

/** The position of an event, or the end of the log if older transactions may still write before the event. */
export const selectPosition = statement('events.position', {
  reason: 'function of the database',
  in: { id: text(), accountId: text() },
  out: position,
  sql: (p) => `
    WITH ${settledLog}
    SELECT CASE WHEN e.xid < h.xid THEN e.xid ELSE last.xid END::text AS xid,
      CASE WHEN e.xid < h.xid THEN e.seq ELSE last.seq END AS seq
    FROM h, last, event e WHERE e.id = ${p.id} AND e.account_id = ${p.accountId}`,
})

/** What is shown of an event. */
export const shownEvent = pick(columnsOf<'Event', { data: object }>('Event'), [
  'id',
  'type',
  'createdAt',
  'actor',
  'subject',
  'data',
])
const logged = { ...shownEvent, ...position }
const columns = `${selected(shownEvent, 'e')}, e.xid::text AS xid, e.seq`

const betweenIn = {
  accountId: text(),
  projectIds: optional(textArray()),
  types: optional(textArray()),
  afterXid: text(),
  afterSeq: int8(),
  untilXid: text(),
  untilSeq: int8(),
  limit: int4(),
}

function selectBetween(p: { [K in keyof typeof betweenIn]: string }, condition: string): string {
  return `
    SELECT ${columns} FROM event e
    WHERE e.account_id = ${p.accountId} AND ${condition}
      AND (${p.projectIds} IS NULL OR e.project_id = ANY(${p.projectIds})) AND (${p.types} IS NULL OR e.type = ANY(${p.types}))
      AND (e.xid, e.seq) > (${p.afterXid}::xid8, ${p.afterSeq})
      AND (e.xid, e.seq) <= (${p.untilXid}::xid8, ${p.untilSeq})
    ORDER BY e.xid, e.seq LIMIT ${p.limit}`
}

/** Events of one reader between two positions. */
export const selectEvents = statement('events.between', {
  reason: 'comparison of rows',
  in: betweenIn,
  out: logged,
  sql: (p) => selectBetween(p, 'true'),
})

/** The same of some subjects, which have an index of their own. */
export const selectEventsOfSubjects = statement('events.between_of_subjects', {
  reason: 'list as one parameter',
  in: { ...betweenIn, subjects: textArray() },
  out: logged,
  sql: (p) => selectBetween(p, `e.subject = ANY(${p.subjects})`),
})

/**
 * Events of these accounts behind a position, each with whether every older transaction has ended, and in every row
 * the last event of which that is so. Without any event there is one row, in which nothing else is set.
 */
export const selectEventsAfter = statement('events.after', {
  reason: 'comparison of rows',
  in: { accountIds: textArray(), ...position, limit: int4() },
  out: {
    ...logged,
    accountId: text(),
    projectId: optional(text()),
    settled: optional(boolean()),
    endXid: text(),
    endSeq: int8(),
  },
  sql: (p) => `
    WITH ${settledLog}
    SELECT ${columns}, e.account_id AS "accountId", e.project_id AS "projectId", e.xid < h.xid AS settled,
      last.xid::text AS "endXid", last.seq AS "endSeq"
    FROM h CROSS JOIN last LEFT JOIN LATERAL (
      SELECT * FROM event WHERE account_id = ANY(${p.accountIds}) AND (xid, seq) > (${p.xid}::xid8, ${p.seq})
      ORDER BY xid, seq LIMIT ${p.limit}) e ON true
    ORDER BY e.xid, e.seq`,
})
