// The states of a signed zone, and the decision about the next step. No step causes answers that validating resolvers
// reject: keys and signatures stay until no cache needs them.
import type { dnssecStates } from '../../../schemas/dnssec.ts'
import { nextRecheckAt, nextSearchAt } from '../../domains/index.ts'
import type { EventType } from '../../events/index.ts'
import { soaTimers } from '../zones/zones.ts'

/** The stored form; the view uses upper case. */
export type DnssecState = Lowercase<(typeof dnssecStates)[number]>

export const dnssecTransitions: { from: DnssecState; to: DnssecState; when: string; event: EventType }[] = [
  { from: 'unsigned', to: 'signing', when: 'signing is wanted, and the parent has no DS', event: 'dns.dnssec.signing' },
  { from: 'signing', to: 'awaiting_ds', when: 'no cache has unsigned answers', event: 'dns.dnssec.awaiting_ds' },
  { from: 'signing', to: 'active', when: 'the parent shows the DS of a key', event: 'dns.dnssec.active' },
  { from: 'awaiting_ds', to: 'active', when: 'the parent shows the DS of a key', event: 'dns.dnssec.active' },
  { from: 'active', to: 'awaiting_ds', when: 'the parent no longer shows it', event: 'dns.dnssec.awaiting_ds' },
  { from: 'signing', to: 'leaving', when: 'signing is not wanted any more', event: 'dns.dnssec.leaving' },
  { from: 'awaiting_ds', to: 'leaving', when: 'signing is not wanted any more', event: 'dns.dnssec.leaving' },
  { from: 'active', to: 'leaving', when: 'signing is not wanted any more', event: 'dns.dnssec.leaving' },
  { from: 'leaving', to: 'signing', when: 'signing is wanted again', event: 'dns.dnssec.signing' },
  { from: 'leaving', to: 'unsigned', when: 'no cache has a DS of a key', event: 'dns.dnssec.unsigned' },
]

/** What the parent's servers show, as ids of the zone's keys. */
export type Sighting = {
  /** Keys whose DS most servers show. */
  shown: readonly string[]
  /** Keys whose DS every server shows. */
  everywhere: readonly string[]
  /** Keys whose DS any server shows. */
  anywhere: readonly string[]
  /** There are DS records, but none matches a key of the zone. */
  foreign: boolean
  /** The TTL of the DS records in seconds. */
  ttl: number
}

export type SigningState = {
  wanted: boolean
  state: DnssecState
  /** Oldest first; two during a rollover. */
  keys: readonly { id: string; announced: boolean; createdAt: Date }[]
  /** The longest TTL of the zone's records, in seconds. */
  maxTtl: number
  dsTtl: number | null
  dsSince: Date | null
  goneSince: Date | null
  checkingSince: Date
  /** Null if the parent was not queried or did not answer. */
  parent: Sighting | null
  /** Every nameserver of the zone shows all its keys; no key is announced before that. */
  served: boolean
}

/** `announce`: the newest key replaces the others in the CDS set; `withdraw`: the oldest key is deleted. */
export type Step = 'start' | 'announce' | 'withdraw' | 'leave' | 'return' | 'stop'

export type Decision = {
  state: DnssecState
  step: Step | null
  dsTtl: number | null
  dsSince: Date | null
  goneSince: Date | null
  checkingSince: Date
  /** Null if there is nothing left to do. */
  nextCheckAt: Date | null
}

// Secondaries get a new version within the refresh time of the SOA record.
const slackMs = soaTimers.refresh * 1_000
/** The TTL of the DNSKEY set, the NS set and the SOA record. */
export const apexTtl = soaTimers.ttl
/** We wait at most this long for a TTL of the parent. */
export const maxDsTtl = 7 * 24 * 60 * 60

const after = (time: Date, seconds: number, slack = slackMs) => new Date(time.getTime() + seconds * 1_000 + slack)
const latest = (...times: Date[]) => new Date(Math.max(...times.map(Number)))

/** When all answers cached before the zone was signed have expired. */
export function signedEverywhereAt({ keys, maxTtl }: Pick<SigningState, 'keys' | 'maxTtl'>): Date {
  return after(keys[0]!.createdAt, Math.max(maxTtl, apexTtl))
}

/** When every cache has the new key of a rollover in the DNSKEY set. */
export function keyEverywhereAt(fresh: { createdAt: Date }): Date {
  return after(fresh.createdAt, apexTtl)
}

/** When no cache needs the old key of a rollover: none has only its DS, or a set that only it has signed. */
export function oldKeyUnusedAt(standing: Pick<SigningState, 'keys' | 'maxTtl' | 'dsTtl'>, dsSince: Date): Date {
  const signedByBoth = after(standing.keys.at(-1)!.createdAt, Math.max(standing.maxTtl, apexTtl))
  return latest(after(dsSince, standing.dsTtl ?? 0), signedByBoth)
}

// A parent that has read the CDS set may publish the DS this much later (RFC 8078, RFC 9615).
const publishedLateS = 24 * 60 * 60

/** When the DS has expired from every cache. Without a DS: when the parent can no longer publish one. */
export function dsForgottenAt({ dsTtl, keys }: Pick<SigningState, 'dsTtl' | 'keys'>, goneSince: Date): Date {
  if (dsTtl !== null) return after(goneSince, dsTtl)
  return keys.some(({ announced }) => announced) ? after(goneSince, publishedLateS) : goneSince
}

/** Decides the next step. The same input gives the same decision. */
export function decide(standing: SigningState, now: Date): Decision {
  const { parent } = standing
  const seen = parent && (parent.anywhere.length > 0 ? Math.min(parent.ttl, maxDsTtl) : null)
  const fresh = standing.keys.at(-1)
  const known: SigningState = {
    ...standing,
    dsTtl: seen === null ? standing.dsTtl : Math.max(seen, standing.dsTtl ?? 0),
    dsSince: parent
      ? fresh && parent.everywhere.includes(fresh.id)
        ? (standing.dsSince ?? now)
        : null
      : standing.dsSince,
    goneSince: parent ? (parent.anywhere.length === 0 ? (standing.goneSince ?? now) : null) : standing.goneSince,
  }
  const { dsTtl, dsSince, goneSince, checkingSince } = known
  const { state = standing.state, step = null, dueAt = null, watches = true } = follow(known, now)
  // Check often from now on: people have something to do, or want to see the effect of what they did.
  const since = state !== standing.state || step !== null ? now : checkingSince
  const decided = { state, step, dsTtl, dsSince: step === 'announce' ? null : dsSince, checkingSince: since }
  // A DS may have come and gone between two checks.
  const gone = step === 'leave' ? null : goneSince
  return {
    ...decided,
    goneSince: gone,
    nextCheckAt: nextOf(now, since, { dueAt, watches, isUnknown: parent === null, step }),
  }
}

type Next = {
  state?: DnssecState
  step?: Step | null
  /** When the next step is due if the parent does not change. */
  dueAt?: Date | null
  /** Whether to query the parent before that; `daily` if nobody is waiting. */
  watches?: boolean | 'daily'
}

function follow(standing: SigningState, now: Date): Next {
  const { wanted, state, parent, goneSince } = standing
  if (state === 'unsigned') {
    if (!wanted) return { watches: false }
    if (!parent || parent.foreign) return {}
    return { state: 'signing', step: 'start', watches: 'daily' }
  }
  if (state === 'leaving') {
    if (wanted) return { state: 'signing', step: 'return' }
    if (!parent || goneSince === null) return {}
    const dueAt = dsForgottenAt(standing, goneSince)
    return dueAt <= now ? { state: 'unsigned', step: 'stop', watches: false } : { dueAt, watches: 'daily' }
  }
  if (!wanted) return { state: 'leaving', step: 'leave' }
  const shown = parent !== null && parent.shown.length > 0
  if (state === 'signing') {
    const step = standing.keys.some(({ announced }) => announced) ? null : 'announce'
    if (shown) return { state: 'active', step }
    const dueAt = signedEverywhereAt(standing)
    if (dueAt > now) return { dueAt, watches: 'daily' }
    return standing.served ? { state: 'awaiting_ds', step } : {}
  }
  const moved: Next = parent && shown !== (state === 'active') ? { state: shown ? 'active' : 'awaiting_ds' } : {}
  return { ...(standing.keys.length > 1 ? rollOver(standing, now) : settled(moved.state ?? state)), ...moved }
}

const settled = (state: DnssecState): Next => (state === 'active' ? { watches: 'daily' } : {})

/** The next step of a rollover. Both keys sign in the meantime. */
function rollOver(standing: SigningState, now: Date): Next {
  const { keys, parent, dsSince } = standing
  const fresh = keys.at(-1)!
  if (!fresh.announced) {
    const dueAt = keyEverywhereAt(fresh)
    if (dueAt > now) return { dueAt, watches: 'daily' }
    return standing.served ? { step: 'announce' } : {}
  }
  if (!parent || dsSince === null) return {}
  const dueAt = oldKeyUnusedAt(standing, dsSince)
  return dueAt <= now ? { step: 'withdraw', watches: 'daily' } : { dueAt, watches: 'daily' }
}

type Pending = Required<Pick<Next, 'dueAt' | 'watches'>> & { isUnknown: boolean; step: Step | null }

function nextOf(now: Date, since: Date, { dueAt, watches, isUnknown, step }: Pending): Date | null {
  if (watches === false) return null
  const daily = nextRecheckAt(now, isUnknown ? 'unknown' : 'proved')
  const checkAt = watches === 'daily' ? daily : (nextSearchAt(now, since) ?? daily)
  const next = dueAt && dueAt > now && dueAt < checkAt ? dueAt : checkAt
  // Decide again right after the step is done.
  return step === 'start' || step === 'return' ? new Date(now.getTime() + 1_000) : next
}
