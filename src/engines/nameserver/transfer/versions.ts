// What to send of a version of a zone or of the catalog: all of it, or what changed since another version.
import { turn } from '../../../platform/pauses.ts'
import type { OwnedSet } from '../zones/lookup.ts'
import type { Rrset } from '../zones/zone.ts'
import type { Difference, Step } from './journal.ts'

export type Version = {
  origin: string
  serial: number
  soa: Rrset
  /** Identifies the version. */
  of: unknown
  /** All records except the SOA. */
  records(): Iterable<OwnedSet>
}

const own = ({ origin }: Version, set: Rrset): OwnedSet => ({ owner: origin, set })

export const soaIn = (version: Version): OwnedSet => own(version, version.soa)

export function* wholeOf(version: Version): Generator<OwnedSet> {
  yield soaIn(version)
  yield* version.records()
  yield soaIn(version)
}

export function* changesOf(version: Version, differences: readonly Difference[]): Generator<OwnedSet> {
  yield soaIn(version)
  for (const { fromSoa, removed, toSoa, added } of differences) {
    yield own(version, fromSoa)
    yield* removed
    yield own(version, toSoa)
    yield* added
  }
  yield soaIn(version)
}

/** The differences of these steps; null if one is unknown. Each takes a turn of the event loop. */
export async function differencesOf(steps: readonly Step[]): Promise<Difference[] | null> {
  const differences: Difference[] = []
  for (const step of steps) {
    const difference = step.difference()
    if (!difference) return null
    differences.push(difference)
    await turn()
  }
  return differences
}
