// Takes slices of shared limits from the database: one statement at a time, for all keys that need one.
import type { Database } from '../../platform/database/database.ts'
import { inGroups } from '../../platform/database/pool.ts'
import { takeSlices } from './statements.ts'

export type Ask = {
  /** Begins with its kind, as `token:`. */
  key: string
  /** What all processes together may take of this minute. */
  budget: number
  /** What was used here already without having been taken. */
  spent: number
  wanted: number
  /** Until the minute ends, if nobody else has begun one. */
  leftMs: number
  /** Whether the other processes hear of it. */
  told: boolean
}

/** `taken`: by all processes. */
export type Taken = { granted: number; taken: number; leftMs: number }

export type TakenListener = (key: string, taken: number, leftMs: number) => void

export type Slices = {
  /** Calls `apply` with the answer, or with null if there is none in time, after which it may still come. */
  take(ask: Ask, apply: (taken: Taken | null) => void): Promise<void>
  onTaken(kind: string, listener: TakenListener): void
}

type Waiting = { ask: Ask; apply(taken: Taken | null): void; done(): void }

// A notification has up to 8,000 bytes, and a key with its figures some 80.
const maxInBatch = 64
// Above it keys are counted by each process alone: whoever comes with ever new addresses gets no more of the database.
const maxWaiting = 1_000
type SlicesDeps = {
  db: Database
  id: string
  /** Longer than this no request waits for its turn to be counted. */
  patienceMs: number
  lose(error: unknown): void
}

export function createSlices({ db, id: member, patienceMs, lose }: SlicesDeps) {
  const listeners = new Map<string, TakenListener>()
  const waiting = new Map<string, Waiting>()
  let running = false

  async function takeBatch(batch: Waiting[]): Promise<void> {
    const asks = batch.map(({ ask }) => ask)
    try {
      const rows = await inGroups([], () =>
        takeSlices(db, {
          member,
          keys: asks.map(({ key }) => key),
          budgets: asks.map(({ budget }) => budget),
          spent: asks.map(({ spent }) => spent),
          wanted: asks.map(({ wanted }) => wanted),
          leftMs: asks.map(({ leftMs }) => leftMs),
          told: asks.filter(({ told }) => told).map(({ key }) => key),
        }),
      )
      const found = new Map(rows.map((row) => [row.key, row]))
      for (const { ask, apply } of batch) apply(found.get(ask.key) ?? null)
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
      await takeBatch(batch.map(([, one]) => one))
    }
    running = false
  }

  return {
    take(ask: Ask, apply: (taken: Taken | null) => void): Promise<void> {
      if (waiting.size >= maxWaiting || waiting.has(ask.key)) {
        apply(null)
        return Promise.resolve()
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const late = setTimeout(() => {
        waiting.delete(ask.key)
        lose(new Error('the database takes too long'))
        apply(null)
        resolve()
      }, patienceMs)
      const done = () => {
        clearTimeout(late)
        resolve()
      }
      waiting.set(ask.key, { ask, apply, done })
      // What asks in the same turn goes into one statement.
      if (!running) {
        running = true
        setImmediate(() => void work())
      }
      return promise
    },
    onTaken(kind: string, listener: TakenListener): void {
      listeners.set(kind, listener)
    },
    /** What another process has taken: keys with all that is taken of them, as JSON. */
    hear(text: string): void {
      for (const [key, taken, leftMs] of JSON.parse(text) as [string, number, number][]) {
        const at = key.indexOf(':')
        listeners.get(key.slice(0, at))?.(key.slice(at + 1), taken, leftMs)
      }
    },
  }
}
