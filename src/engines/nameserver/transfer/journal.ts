// The latest changes of every zone, in bounded memory: the source of IXFR answers.
import type { Difference } from './records.ts'

export type Journal = {
  add(origin: string, difference: Difference): void
  /** Drops the changes of a zone, because they no longer lead to its current version. */
  drop(origin: string): void
  /** The changes from a serial to the newest, or null if they are not known. */
  since(origin: string, serial: number): Difference[] | null
  readonly records: number
}

const versionsPerZone = 20
// About 50 MB at most; a secondary that is further behind gets the whole zone.
const recordsInAll = 200_000

/** RFC 1982: serial number arithmetic wraps around. */
export function isNewer(serial: number, other: number): boolean {
  return ((serial - other) | 0) > 0
}

export function createJournal(versions = versionsPerZone, highest = recordsInAll): Journal {
  // In order of last change, so that the first is dropped first.
  const zones = new Map<string, Difference[]>()
  let records = 0
  // A version without records takes memory too.
  const weight = (one: Difference) => 2 + one.removed.length + one.added.length

  function drop(origin: string): void {
    for (const one of zones.get(origin) ?? []) records -= weight(one)
    zones.delete(origin)
  }

  return {
    get records() {
      return records
    },
    drop,
    add(origin, difference) {
      if (zones.get(origin)?.at(-1)?.to !== difference.from) drop(origin)
      const chain = zones.get(origin) ?? []
      chain.push(difference)
      records += weight(difference)
      if (chain.length > versions) records -= weight(chain.shift()!)
      zones.delete(origin)
      zones.set(origin, chain)
      for (const oldest of zones.keys()) {
        if (records <= highest) break
        drop(oldest)
      }
    },
    since(origin, serial) {
      const chain = zones.get(origin) ?? []
      const start = chain.findIndex((one) => one.from === serial)
      return start < 0 ? null : chain.slice(start)
    },
  }
}
