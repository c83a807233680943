// When the ownership of a domain is checked next: often while somebody is likely to be at it, then less and less.

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** How often the proof is looked for, by how long it has been; behind the last row it is not looked for any more. */
export const searchSchedule: readonly { untilMs: number; everyMs: number; because: string }[] = [
  { untilMs: 2 * minute, everyMs: 10 * second, because: 'somebody has just set the record and is watching' },
  { untilMs: 10 * minute, everyMs: 30 * second, because: 'registrars take minutes to publish a delegation' },
  { untilMs: hour, everyMs: 2 * minute, because: 'that is an ordinary TTL of an old negative answer' },
  { untilMs: 6 * hour, everyMs: 10 * minute, because: 'some registries publish a few times a day' },
  { untilMs: day, everyMs: 30 * minute, because: 'somebody else may have to set the record' },
  { untilMs: 30 * day, everyMs: hour, because: 'a transfer between registrars takes days' },
]

/** A verified domain is looked at again daily, so three misses are three days. */
export const recheckMs = day
/** Not all that were verified together should be asked for together for ever. */
const recheckJitter = 0.1
/** A verified domain that could not be asked for is tried again sooner: the day's check has not been made yet. */
export const outageRecheckMs = hour

/** When to look for the proof of a domain that has none; null when that is over. */
export function nextSearchAt(now: Date, since: Date): Date | null {
  const ageMs = now.getTime() - since.getTime()
  const row = searchSchedule.find(({ untilMs }) => ageMs < untilMs)
  return row ? new Date(now.getTime() + row.everyMs) : null
}

export function nextRecheckAt(now: Date, outcome: 'proved' | 'missed' | 'unknown'): Date {
  const everyMs = outcome === 'unknown' ? outageRecheckMs : recheckMs
  return new Date(now.getTime() + everyMs * (1 + recheckJitter * (2 * Math.random() - 1)))
}
