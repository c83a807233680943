// Look-ups by key, made together: one query at a time for all keys that wait.
import { setTimeout as sleep } from 'node:timers/promises'
import { countWait } from '../../platform/database/pool.ts'
import { Fault } from '../../platform/errors.ts'

// Each one that waits holds a request.
const maxWaiting = 5_000
const maxBatch = 500

type Waiting<T> = PromiseWithResolvers<T | null>

/** `read` gets all keys that wait; `pauseMs` is how long keys are gathered first. */
export function createLookUps<T>(read: (keys: string[]) => Promise<Map<string, T>>, pauseMs: number) {
  const waiting = new Map<string, Waiting<T>>()
  let running = false

  async function work(): Promise<void> {
    running = true
    while (waiting.size > 0) {
      if (pauseMs > 0) await sleep(pauseMs)
      const batch = [...waiting].slice(0, maxBatch)
      for (const [key] of batch) waiting.delete(key)
      try {
        const found = await read(batch.map(([key]) => key))
        for (const [key, one] of batch) one.resolve(found.get(key) ?? null)
      } catch (error) {
        for (const [, one] of batch) one.reject(error)
        // They have waited for a database that is away, and would wait as long again.
        for (const one of waiting.values()) one.reject(error)
        waiting.clear()
      }
    }
    running = false
  }

  return function lookUp(key: string): Promise<T | null> {
    const same = waiting.get(key)
    if (same) return countWait(same.promise)
    if (waiting.size >= maxWaiting) {
      return Promise.reject(new Fault('overloaded', undefined, { retryAfterSeconds: 1 }))
    }
    const one: Waiting<T> = Promise.withResolvers()
    waiting.set(key, one)
    if (!running) void work()
    return countWait(one.promise)
  }
}
