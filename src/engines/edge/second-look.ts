// A second look at the table of hosts: whoever is told of a deployment may ask for it before the edge has read of it.
import type { Snapshot } from './snapshot.ts'

/** Resolves when it is time to look again; null where looking again would find nothing new. */
export type SecondLook = () => Promise<void> | null

export type SecondLookLimits = { waitMs: number; waiting: number }

// A refresh takes milliseconds; only where the database is away does it take longer than this.
const defaultLimits: SecondLookLimits = { waitMs: 2_000, waiting: 1_000 }

/** Bounded in time and in number: anybody can ask for hosts that are not there. */
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
