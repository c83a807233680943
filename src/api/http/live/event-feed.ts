// Reads the end of the event log once per process for all streams: a thousand readers cost one query per burst of
// events, and one serialization per event.

import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import {
  type EventFilter,
  eventsAfter,
  eventsBetween,
  isAfter,
  type LoggedEvent,
  type Position,
  positionOf,
  reads,
} from '../../../services/events/index.ts'
import type { Actor } from '../../../services/identity/index.ts'
import { type EventStream, frameOf } from './sse.ts'

export type EventFeed = {
  /** Sends all events after the position, then new ones, until the stream ends. */
  follow(actor: Actor, filter: EventFilter, from: Position, stream: EventStream): Promise<void>
}

type Reader = { actor: Actor; filter: EventFilter; from: Position; take(frame: string): void }

const feedBatch = 500
const historyBatch = 200
// Rows that wait for an older transaction to end are read again after this delay.
const unsettledMs = 20
const retryMs = 500
// How often to poll the log while notifications are down.
const unheardMs = 1_000
// How many events may queue while a reader catches up. Beyond that it is disconnected and reconnects.
const maxWaiting = 2_000

export function createEventFeed(db: Database, notifications: Notifications): EventFeed {
  const readers = new Map<string, Set<Reader>>()
  let position: Position = { xid: '0', seq: '0' }
  let readMs = 0
  let notified = false
  // Serializes everything that reads or moves the position.
  let turn: Promise<unknown> = Promise.resolve()

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work)
    turn = result.catch(() => {})
    return result
  }

  /** Listens only while there are readers. */
  let off: (() => void)[] = []
  function listen(): void {
    const timer = setInterval(() => notifications.connected || wake(), unheardMs)
    off = [
      () => clearInterval(timer),
      notifications.on('event', ({ accountId }) => readers.has(accountId) && wake()),
      notifications.on('reconnected', () => wake()),
    ]
  }

  function wake(): void {
    if (notified) return
    notified = true
    void inTurn(read)
  }

  async function read(): Promise<void> {
    notified = false
    if (readers.size === 0) return
    readMs = performance.now()
    try {
      const { events, position: reached, more } = await eventsAfter(db, [...readers.keys()], position, feedBatch)
      for (const event of events) hand(event)
      position = reached
      // Not awaited: a new reader must not wait for a long transaction.
      if (more) setTimeout(wake, events.length > 0 ? 0 : unsettledMs)
    } catch {
      // The database is unavailable; events written meanwhile are read later.
      setTimeout(wake, retryMs)
    }
  }

  function hand(event: LoggedEvent): void {
    let frame = ''
    for (const reader of readers.get(event.accountId) ?? []) {
      if (!reads(reader.actor, reader.filter, event) || !isAfter(event.position, reader.from)) continue
      frame ||= eventFrame(event.view)
      reader.take(frame)
    }
  }

  /** Adds a reader, which gets all events after the feed's position, and returns that position. */
  function join(reader: Reader): Promise<Position> {
    const askedMs = performance.now()
    return inTurn(async () => {
      // Advances the feed first unless that already happened: a thousand reconnecting readers share one query.
      if (readers.size === 0) {
        position = await positionOf(db, reader.actor, null)
        listen()
      } else if (readMs < askedMs) await read()
      const { accountId } = reader.actor
      readers.set(accountId, (readers.get(accountId) ?? new Set()).add(reader))
      // An event may have been written before its account had a reader.
      wake()
      return position
    })
  }

  function leave(reader: Reader): void {
    const { accountId } = reader.actor
    const others = readers.get(accountId)
    others?.delete(reader)
    if (others?.size !== 0) return
    readers.delete(accountId)
    if (readers.size === 0) for (const stop of off.splice(0)) stop()
  }

  return {
    async follow(actor, filter, from, stream) {
      let waiting: string[] | null = []
      const reader: Reader = {
        actor,
        filter,
        from,
        take(frame) {
          if (!waiting) stream.write(frame)
          else if (waiting.push(frame) > maxWaiting) stream.end()
        },
      }
      const joinedAt = await join(reader)
      try {
        // Older events are read by separate queries at the reader's pace; new ones queue meanwhile.
        let reached = from
        while (isAfter(joinedAt, reached) && !stream.signal.aborted) {
          const { events, position } = await eventsBetween(db, actor, filter, {
            after: reached,
            until: joinedAt,
            limit: historyBatch,
          })
          for (const event of events) {
            stream.write(eventFrame(event))
            await stream.drained()
          }
          reached = position
        }
        for (let frame = waiting.shift(); frame !== undefined; frame = waiting.shift()) {
          stream.write(frame)
          await stream.drained()
        }
        waiting = null
        await gone(stream.signal)
      } finally {
        leave(reader)
      }
    },
  }
}

function eventFrame(view: LoggedEvent['view']): string {
  return frameOf({ id: view.id, event: view.type, data: view })
}

function gone(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
