// Schedules ownership checks of domains: often in the first minutes, then less and less.

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** How often an unverified domain is checked, by the age of the search; checks end after the last row. */
export const searchSchedule: readonly { untilMs: number; everyMs: number; because: string }[] = [
  { untilMs: 2 * minute, everyMs: 10 * second, because: 'somebody has just set the record and is watching' },
  { untilMs: 10 * minute, everyMs: 30 * second, because: 'registrars take minutes to publish a delegation' },
  { untilMs: hour, everyMs: 2 * minute, because: 'that is an ordinary TTL of an old negative answer' },
  { untilMs: 6 * hour, everyMs: 10 * minute, because: 'some registries publish a few times a day' },
  { untilMs: day, everyMs: 30 * minute, because: 'somebody else may have to set the record' },
  { untilMs: 30 * day, everyMs: hour, because: 'a transfer between registrars takes days' },
]

/** A claim without a proof ends after this time, however often it is checked. */
export const claimMs = 30 * day

export function hasEnded(now: Date, unprovedSince: Date): boolean {
  return now.getTime() - unprovedSince.getTime() >= claimMs
}

/** A verified domain is checked daily, so three misses are three days. */
export const recheckMs = day
/** Spreads the checks of domains that were verified at the same time. */
const recheckJitter = 0.1
/** Retry interval for a verified domain if the DNS did not answer. */
export const outageRecheckMs = hour

/** The next check of an unverified domain, at the latest when its claim ends; null after checks have ended. */
export function nextSearchAt(now: Date, since: Date, unprovedSince = since): Date | null {
  const ageMs = now.getTime() - since.getTime()
  const row = searchSchedule.find(({ untilMs }) => ageMs < untilMs)
  if (!row || hasEnded(now, unprovedSince)) return null
  return new Date(Math.min(now.getTime() + row.everyMs, unprovedSince.getTime() + claimMs))
}

export function nextRecheckAt(now: Date, outcome: 'proved' | 'missed' | 'unknown'): Date {
  const everyMs = outcome === 'unknown' ? outageRecheckMs : recheckMs
  return new Date(now.getTime() + everyMs * (1 + recheckJitter * (2 * Math.random() - 1)))
}
