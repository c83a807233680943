// The event log, which is only appended to: every change writes one row, in the transaction of the change. The trigger
// `event_notify` tells listeners of each row, and `event_deliver` makes the deliveries to webhooks.
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

/** The event of an actor's own change. */
export function eventOf(
  actor: Actor,
  type: EventType,
  about: Pick<NewEvent, 'subject' | 'projectId' | 'data'>,
): NewEvent {
  return { accountId: actor.accountId, type, actor: actorName(actor), ...about }
}

/** Writes events beside changes that take more than one statement; `db` is the handle of their transaction. */
export async function append(db: Db, events: NewEvent[]): Promise<void> {
  if (events.length === 0) return
  await insertEvents(db, { events: numbered(events) })
}

/** Events with their ids and their trace, as they are written. */
export function numbered(events: NewEvent[]): NumberedEvent[] {
  const trace = currentTrace()
  return events.map((event) => {
    const id = newId('evt')
    return { id, trace, createdAt: timeOf(id), ...event }
  })
}

/**
 * Has the order of events go on in this cluster of PostgreSQL. The first number in a restored database holds up all
 * others until its transaction ends, so it is taken by one that does nothing else.
 */
export async function continueLog(db: Db): Promise<void> {
  await takeNumber(db, {})
}

export type EventView = Static<typeof EventSchema>

/** A place in the log: the number of the event, and the row's among those of that number. */
export type Position = { xid: string; seq: string }

export type Listed = Pick<EventRow, 'id' | 'type' | 'createdAt' | 'actor' | 'subject'> & { data: unknown }

export function viewEvent({ id, type, createdAt, actor, subject, data }: Listed): EventView {
  return { id, type: type as EventType, createdAt: createdAt.toISOString(), actor, subject, data: data as object }
}

/** Null: whatever its type, or its subject. */
export type EventFilter = { types: readonly EventType[] | null; subjects: readonly string[] | null }

/**
 * The position of the event with that id; without an id, the end of the log. A list shows an event before older
 * transactions have ended, and they may still write before it. Such an event counts as the end of what is certain:
 * better a repeat than a gap.
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

/** Events of one reader behind `after`, up to `until`, before which no transaction can write any more. */
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
 * Events of these accounts behind a position, in an order that never changes: rows are read only once every
 * transaction that began before theirs has ended, so none can be written before them later. The new position is as
 * far as that is so; `more` tells that there are events behind it already.
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
