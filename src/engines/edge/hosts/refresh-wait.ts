// Waits for a refresh of the host table in progress: a client may request a deployment that the edge hasn't read yet.
import type { Snapshot } from './snapshot.ts'

/** Resolves when a second lookup is worthwhile; null if no refresh is in progress or too many requests wait. */
export type RefreshWait = () => Promise<void> | null

export type RefreshWaitLimits = { waitMs: number; maxWaiting: number }

// A refresh takes milliseconds, unless the database is unavailable.
const defaultLimits: RefreshWaitLimits = { waitMs: 2_000, maxWaiting: 1_000 }

/** Limited in time and number, because anybody can request unknown hosts. */
export function createRefreshWait(
  getSnapshot: () => Pick<Snapshot, 'settled'> | null,
  { waitMs, maxWaiting }: RefreshWaitLimits = defaultLimits,
): RefreshWait {
  let waiting = 0
  return () => {
    const settled = waiting < maxWaiting ? getSnapshot()?.settled() : null
    if (!settled) return null
    waiting++
    return new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(done, waitMs)
      void settled.then(done, done)
    }).finally(() => {
      waiting--
    })
  }
}
