// Adds the names of zones to the filter that threads use to deny nonexistent names without the zone.
import type { NameFilter } from './name-filter.ts'
import { keyOf, type RecordsByName, recordsOf } from './zone-records.ts'

/** The era in which the filter got all names of a zone; 0 for none. */
export type Announced = { era: number; inProgress: boolean }

const namesPerStep = 2_000

/** Whether the filter has every name of the zone. If not, adds them; for a large zone in steps. */
export function announceZone(
  filter: NameFilter,
  announced: Announced,
  records: string | RecordsByName,
  keys: () => Iterable<string>,
): boolean {
  if (announced.era === filter.era) return true
  if (typeof records === 'string') {
    for (const key of keys()) filter.add(key)
    announced.era = filter.era
    return true
  }
  if (!announced.inProgress) {
    announced.inProgress = true
    addInSteps(filter, announced, keys()[Symbol.iterator]())
  }
  return false
}

/** Names that change in the meantime are announced with the change. */
function addInSteps(filter: NameFilter, announced: Announced, keys: Iterator<string>): void {
  const { era } = filter
  const step = () => {
    for (let added = 0; added < namesPerStep; added++) {
      const { done, value } = keys.next()
      if (done || filter.era !== era) {
        announced.inProgress = false
        if (filter.era === era) announced.era = era
        return
      }
      filter.add(value)
    }
    setImmediate(step)
  }
  step()
}

/** Adds the names that a change or extra lines bring into a zone, and the names between them and the apex. */
export function announceChange(filter: NameFilter, names: Iterable<string>, { origin, extras }: RecordsByName): void {
  for (const name of names) for (const key of path(keyOf(name, origin), origin)) filter.add(key)
  for (const { name } of recordsOf(extras)) {
    for (const key of path(keyOf(name, origin), origin)) {
      filter.add(key)
      filter.add(`\x01*${key}`)
    }
  }
}

function* path(key: string, origin: string): Generator<string> {
  for (let at = 0; at < key.length - origin.length; at += 1 + key.charCodeAt(at)) yield at === 0 ? key : key.slice(at)
}
