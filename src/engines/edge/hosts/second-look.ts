// A second look-up in the table of hosts: a client may request a new deployment before the edge has read it.
import type { Snapshot } from './snapshot.ts'

/** Resolves when the table should be looked up again; null if that would find nothing new. */
export type SecondLook = () => Promise<void> | null

export type SecondLookLimits = { waitMs: number; waiting: number }

// A refresh takes milliseconds; it takes longer than this only if the database is unavailable.
const defaultLimits: SecondLookLimits = { waitMs: 2_000, waiting: 1_000 }

/** Bounded in time and in number: anybody can request unknown hosts. */
export function createSecondLook(
  snapshotOf: () => Pick<Snapshot, 'settled'> | null,
  { waitMs, waiting: most }: SecondLookLimits = defaultLimits,
): SecondLook {
  let waiting = 0
  return () => {
    const settled = waiting < most ? snapshotOf()?.settled() : null
    if (!settled) return null
    waiting++
    return new Promise<void>((resolve) => {
      const over = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(over, waitMs)
      void settled.then(over, over)
    }).finally(() => {
      waiting--
    })
  }
}
