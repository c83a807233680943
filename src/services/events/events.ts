// The append-only event log: every change writes a row in its own transaction. The trigger `event_notify` notifies
// listeners, and `event_deliver` creates webhook deliveries.
import type { Static } from '@sinclair/typebox'
import type { Event as EventRow } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { newId, timeOf } from '../../platform/ids.ts'
import { currentTrace } from '../../platform/observe/tracing.ts'
import type { Event as EventSchema } from '../../schemas/events.ts'
import { type Actor, actorName } from '../identity/index.ts'
import type { EventType, NewEvent } from './event-types.ts'
import {
  insertEvents,
  type NumberedEvent,
  selectEnd,
  selectEvents,
  selectEventsAfter,
  selectEventsOfSubjects,
  selectPosition,
  takeNumber,
} from './statements.ts'

/** The event of a change by the actor. */
export function eventOf(
  actor: Actor,
  type: EventType,
  about: Pick<NewEvent, 'subject' | 'projectId' | 'data'>,
): NewEvent {
  return { accountId: actor.accountId, type, actor: actorName(actor), ...about }
}

/** Appends events of a change that takes several statements; `db` must be in its transaction. */
export async function append(db: Db, events: NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await insertEvents(db, { events: numbered(events) })
}

/** Adds ids, times and the current trace to events. */
export function numbered(events: NewEvent[]): NumberedEvent[] {
  const trace = currentTrace()
  return events.map((event) => {
    const id = newId('evt')
    return { id, trace, createdAt: timeOf(id), ...event }
  })
}

/**
 * Continues the order of events after a restore into another PostgreSQL cluster. The first number blocks all others
 * until its transaction ends, so a separate transaction takes it.
 */
export async function continueLog(db: Db): Promise<void> {
  await takeNumber(db, {})
}

export type EventView = Static<typeof EventSchema>

/** A position in the log: the number of the event's transaction, and the sequence number of its row. */
export type Position = { xid: string; seq: string }

export type LoggedRow = Pick<EventRow, 'id' | 'type' | 'createdAt' | 'actor' | 'subject'> & { data: unknown }

export function viewEvent({ id, type, createdAt, actor, subject, data }: LoggedRow): EventView {
  return { id, type: type as EventType, createdAt: createdAt.toISOString(), actor, subject, data: data as object }
}

/** Null matches every type or subject. */
export type EventFilter = { types: readonly EventType[] | null; subjects: readonly string[] | null }

/**
 * The position of an event, or the end of the log without an id. Lists can show an event while older transactions may
 * still write before it. For such an event, returns the end of the settled log: better a repeat than a gap.
 */
export async function positionOf(db: Db, { accountId }: Actor, eventId: string | null): Promise<Position> {
  const [position] = eventId === null ? await selectEnd(db, {}) : await selectPosition(db, { id: eventId, accountId })
  if (!position) throw new Fault('invalid_cursor', 'Last-Event-ID is not the id of an event of this account.')
  return position
}

export function isAfter(one: Position, other: Position): boolean {
  const [xid, otherXid] = [BigInt(one.xid), BigInt(other.xid)]
  return xid > otherXid || (xid === otherXid && BigInt(one.seq) > BigInt(other.seq))
}

export type LogRange = { after: Position; until: Position; limit: number }

/** Events for one reader after `after`, up to `until`, before which no transaction can still write. */
export async function eventsBetween(
  db: Db,
  { accountId, projectIds }: Actor,
  { types, subjects }: EventFilter,
  { after, until, limit }: LogRange,
): Promise<{ events: EventView[]; position: Position }> {
  const values = {
    accountId,
    projectIds,
    types,
    afterXid: after.xid,
    afterSeq: after.seq,
    untilXid: until.xid,
    untilSeq: until.seq,
    limit,
  }
  const found = subjects ? await selectEventsOfSubjects(db, { ...values, subjects }) : await selectEvents(db, values)
  const last = found.length === limit ? found[limit - 1]! : until
  return { events: found.map(viewEvent), position: { xid: last.xid, seq: last.seq } }
}

export type LoggedEvent = { view: EventView; accountId: string; projectId: string | null; position: Position }

/** Whether a reader with this filter gets the event: the same conditions as those of `eventsBetween`. */
export function reads(
  actor: Actor,
  { types, subjects }: EventFilter,
  { view, accountId, projectId }: LoggedEvent,
): boolean {
  if (accountId !== actor.accountId) return false
  if (actor.projectIds && (projectId === null || !actor.projectIds.includes(projectId))) return false
  return (types?.includes(view.type) ?? true) && (subjects?.includes(view.subject) ?? true)
}

/**
 * Events of these accounts after a position, in an order that never changes: a row is read only once every older
 * transaction has ended, so nothing can be written before it later. `position` is the end of the settled log, and
 * `more` says that there are events after it already.
 */
export async function eventsAfter(
  db: Db,
  accountIds: string[],
  position: Position,
  limit: number,
): Promise<{ events: LoggedEvent[]; position: Position; more: boolean }> {
  const found = await selectEventsAfter(db, { accountIds, ...position, limit })
  const events = found
    .filter((row) => row.settled)
    .map((row) => {
      const { accountId, projectId, xid, seq } = row
      return { view: viewEvent(row), accountId, projectId, position: { xid, seq } }
    })
  const unsettled = found.some((row) => row.settled === false)
  const more = unsettled || found.length === limit
  const { endXid, endSeq } = found[0]!
  const reached = more ? (events[events.length - 1]?.position ?? position) : { xid: endXid, seq: endSeq }
  return { events, position: isAfter(reached, position) ? reached : position, more }
}
