// Takes slices of shared limits from the database, with one statement at a time for all keys that need one.
import type { Database } from '../../platform/database/database.ts'
import { inGroups } from '../../platform/database/pool.ts'
import { takeSlices } from './statements.ts'

export type SliceRequest = {
  /** Starts with its kind, such as `token:`. */
  key: string
  /** What all processes together may take in this minute. */
  budget: number
  /** What this process has used without taking it first. */
  spent: number
  wanted: number
  /** Time until the minute ends, if no other process has started one. */
  leftMs: number
  /** Whether to notify the other processes. */
  told: boolean
}

/** `taken`: the total of all processes. */
export type Taken = { granted: number; taken: number; leftMs: number }

export type TakenListener = (key: string, taken: number, leftMs: number) => void

export type Slices = {
  /** Calls `apply` with the result, or with null after the timeout; the result may still follow. */
  take(request: SliceRequest, apply: (taken: Taken | null) => void): Promise<void>
  onTaken(kind: string, listener: TakenListener): void
}

type Waiting = { request: SliceRequest; apply(taken: Taken | null): void; done(): void }

// A notification has at most 8,000 bytes, and a key with its numbers about 80.
const maxInBatch = 64
// Beyond this, each process counts alone, so a client with ever new addresses can't overload the database.
const maxWaiting = 1_000
type SlicesDeps = {
  db: Database
  id: string
  /** How long a request waits to be counted. */
  timeoutMs: number
  lose(error: unknown): void
}

export function createSlices({ db, id: member, timeoutMs, lose }: SlicesDeps) {
  const listeners = new Map<string, TakenListener>()
  const waiting = new Map<string, Waiting>()
  let running = false

  async function takeBatch(batch: Waiting[]): Promise<void> {
    const requests = batch.map(({ request }) => request)
    try {
      const rows = await inGroups([], () =>
        takeSlices(db, {
          member,
          keys: requests.map(({ key }) => key),
          budgets: requests.map(({ budget }) => budget),
          spent: requests.map(({ spent }) => spent),
          wanted: requests.map(({ wanted }) => wanted),
          leftMs: requests.map(({ leftMs }) => leftMs),
          told: requests.filter(({ told }) => told).map(({ key }) => key),
        }),
      )
      const found = new Map(rows.map((row) => [row.key, row]))
      for (const { request, apply } of batch) apply(found.get(request.key) ?? null)
    } catch (error) {
      lose(error)
      for (const { apply } of batch) apply(null)
    }
    for (const { done } of batch) done()
  }

  async function work(): Promise<void> {
    running = true
    while (waiting.size > 0) {
      const batch = [...waiting].slice(0, maxInBatch)
      for (const [key] of batch) waiting.delete(key)
      await takeBatch(batch.map(([, waiting]) => waiting))
    }
    running = false
  }

  return {
    take(request: SliceRequest, apply: (taken: Taken | null) => void): Promise<void> {
      if (waiting.size >= maxWaiting || waiting.has(request.key)) {
        apply(null)
        return Promise.resolve()
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const late = setTimeout(() => {
        waiting.delete(request.key)
        lose(new Error('the database takes too long'))
        apply(null)
        resolve()
      }, timeoutMs)
      const done = () => {
        clearTimeout(late)
        resolve()
      }
      waiting.set(request.key, { request, apply, done })
      // Requests of the same turn of the event loop share a statement.
      if (!running) {
        running = true
        setImmediate(() => void work())
      }
      return promise
    },
    onTaken(kind: string, listener: TakenListener): void {
      listeners.set(kind, listener)
    },
    /** Handles a notification: a JSON list of keys with what all processes have taken from them. */
    hear(text: string): void {
      for (const [key, taken, leftMs] of JSON.parse(text) as [string, number, number][]) {
        const at = key.indexOf(':')
        listeners.get(key.slice(0, at))?.(key.slice(at + 1), taken, leftMs)
      }
    },
  }
}
