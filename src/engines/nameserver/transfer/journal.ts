// The latest changes of every zone, in limited memory: the source of IXFR answers.
import type { OwnedSet } from '../zones/lookup.ts'
import type { Rrset } from '../zones/zone.ts'

/** From one version of a zone to a later one. Every set has one record; the SOAs are separate. */
export type Difference = {
  from: number
  to: number
  fromSoa: Rrset
  toSoa: Rrset
  removed: OwnedSet[]
  added: OwnedSet[]
}

/** A change of a zone. Its difference may be computed on demand, because most secondaries fetch several changes at once. */
export type Step = {
  readonly from: number
  readonly to: number
  /** How much memory it takes, in records. */
  readonly weight: number
  /** Null if it is unknown. */
  difference(): Difference | null
}

export type Journal = {
  add(origin: string, step: Step): void
  /** Drops the changes of a zone, because they no longer lead to its current version. */
  drop(origin: string): void
  /** The changes from a serial to the newest; null if they are unknown. */
  since(origin: string, serial: number): readonly Step[] | null
  readonly records: number
}

const versionsPerZone = 20
// About 50 MB at most. A secondary that is further behind gets the whole zone.
const recordsInAll = 200_000

/** RFC 1982: serial number arithmetic wraps around. */
export function isNewer(serial: number, other: number): boolean {
  return ((serial - other) | 0) > 0
}

/** A change whose difference is known. */
export function knownStep(difference: Difference): Step {
  const { from, to, removed, added } = difference
  // A version without records takes memory too.
  return { from, to, weight: 2 + removed.length + added.length, difference: () => difference }
}

export function createJournal(versions = versionsPerZone, max = recordsInAll): Journal {
  // In order of the last change, so that the oldest is dropped first.
  const zones = new Map<string, Step[]>()
  let records = 0

  function drop(origin: string): void {
    for (const { weight } of zones.get(origin) ?? []) records -= weight
    zones.delete(origin)
  }

  return {
    get records() {
      return records
    },
    drop,
    add(origin, step) {
      if (zones.get(origin)?.at(-1)?.to !== step.from) drop(origin)
      const chain = zones.get(origin) ?? []
      chain.push(step)
      records += step.weight
      if (chain.length > versions) records -= chain.shift()!.weight
      zones.delete(origin)
      zones.set(origin, chain)
      for (const oldest of zones.keys()) {
        if (records <= max) break
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
