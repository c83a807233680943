// Requests per minute, counted in memory: per token and per account for valid tokens, per address for failures. With
// several API processes, most of a quota is taken in slices from a shared budget.
import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Fault } from '../../../platform/errors.ts'
import { clientOf } from '../../../platform/http/client-address.ts'
import type { Actor } from '../../../services/identity/index.ts'
import type { SharedLimits, Taken } from '../../../services/limits/index.ts'

const minuteMs = 60_000
// Limits the memory of each limit; the least recently used keys start a new minute.
const maxKeys = 100_000

// Fractions of a quota, divided by the number of processes: what each may use before it asks, and what it takes at a
// time. A process may use its free part in two of the others' minutes and leave one and a half slices unused; together
// that stays below a tenth.
const freePart = 0.05
const slicePart = 0.06
// A process that gets no response counts alone for this long before it asks again.
const aloneMs = 1_000
// Minutes whose ends are further apart are different ones.
const sameMinuteMs = 5_000
const maxBudget = 2_000_000_000

type Window = {
  endsAtMs: number
  /** Admitted here. */
  used: number
  /** What this process has taken from the shared budget, in addition to its free part. */
  taken: number
  /** What the other processes have taken, as last reported. */
  others: number
  aloneUntilMs: number
  /** Resolves when more was taken or the attempt failed. */
  asking: Promise<void> | null
}

type Admission = { exceeded: boolean; resetSeconds: number }

/** `ask`: the slices are used up, and the budget may have more. */
type State = 'open' | 'over' | 'ask'

export type RateLimit = {
  readonly quota: number
  /** The current minute of the key. */
  window(key: string, nowMs: number): Window
  stateOf(window: Window, nowMs: number): State
  /** Counts a request in a window that is open. */
  count(key: string, window: Window, nowMs: number): void
  /** Resolves when the window is open or over. */
  ask(key: string, window: Window, nowMs: number): Promise<void>
  /** Counts one request of the key. */
  take(key: string): Admission | Promise<Admission>
  /** Undoes a `take`. */
  refund(key: string): void
  /** Whether the key has used up its quota, as far as this process knows; counts nothing. */
  isUsedUp(key: string): boolean
  /** Until the current minute of the key ends. */
  resetSeconds(key: string): number
}

export type Sharing = {
  limits: SharedLimits
  /** Distinguishes the keys of this limit from those of others. */
  kind: string
  /** Whether processes report to each other what they take: callers read the rest from the headers. */
  told?: boolean
}

/** `windowMs`: normally a minute; rarer things have longer windows. */
export function createRateLimit(quota: number, sharing?: Sharing, windowMs = minuteMs): RateLimit {
  const { limits, kind, told = false } = sharing ?? {}
  // Limited by size: with `max` the cache would preallocate, and a dozen limits would add 300 ms to startup.
  const windows = new LRUCache<string, Window>({ maxSize: maxKeys, sizeCalculation: () => 1 })
  let parts = { members: 1, free: quota, slice: quota }

  function partsNow() {
    const members = limits?.members ?? 1
    if (members !== parts.members) {
      const free = members === 1 ? quota : Math.floor((quota * freePart) / members)
      parts = { members, free, slice: Math.max(1, Math.floor((quota * slicePart) / members)) }
    }
    return parts
  }

  function begin(key: string, endsAtMs: number, others: number): Window {
    const window = { endsAtMs, used: 0, taken: 0, others, aloneUntilMs: 0, asking: null }
    windows.set(key, window)
    return window
  }

  function window(key: string, nowMs: number): Window {
    const window = windows.get(key)
    return window && nowMs < window.endsAtMs ? window : begin(key, nowMs + windowMs, 0)
  }

  function stateOf(window: Window, nowMs: number): State {
    if (window.used + window.others >= quota) return 'over'
    const { members, free } = partsNow()
    if (members === 1 || window.used < free + window.taken || nowMs < window.aloneUntilMs) return 'open'
    return window.taken + window.others >= quota - free ? 'over' : 'ask'
  }

  function apply(window: Window, spent: number, answer: Taken | null): void {
    const nowMs = Date.now()
    if (!answer) {
      window.aloneUntilMs = nowMs + aloneMs
      return
    }
    const endsAtMs = nowMs + answer.leftMs
    // The minute ended while the request was on its way, so what was spent and granted belongs to the next one.
    if (window.taken > 0 && endsAtMs > window.endsAtMs + sameMinuteMs) Object.assign(window, { used: spent, taken: 0 })
    window.endsAtMs = endsAtMs
    window.taken += spent + answer.granted
    window.others = Math.max(0, answer.taken - window.taken)
  }

  function ask(key: string, window: Window, nowMs: number): Promise<void> {
    if (window.asking) return window.asking
    const { free, slice } = partsNow()
    const budget = Math.min(quota, maxBudget) - free
    const spent = Math.min(budget, Math.max(0, window.used - free - window.taken))
    const wanted = Math.min(slice, budget - spent)
    const leftMs = Math.ceil(window.endsAtMs - nowMs)
    const question = { key: `${kind}:${key}`, budget, spent, wanted, leftMs, told }
    window.asking = limits!
      .take(question, (answer) => apply(window, spent, answer))
      .finally(() => {
        window.asking = null
      })
    return window.asking
  }

  limits?.onTaken(kind!, (key, taken, leftMs) => {
    const nowMs = Date.now()
    const endsAtMs = nowMs + leftMs
    const known = windows.get(key)
    const isSame = known && nowMs < known.endsAtMs && (known.taken === 0 || endsAtMs < known.endsAtMs + sameMinuteMs)
    if (!isSame) return void begin(key, endsAtMs, taken)
    known.endsAtMs = endsAtMs
    // It may be older than the last report.
    known.others = Math.max(known.others, taken - known.taken)
  })

  return {
    quota,
    window,
    stateOf,
    ask,
    count(key, window, nowMs) {
      window.used++
      const { members, free, slice } = partsNow()
      // Ask before the slice runs out, so that no request waits.
      if (members > 1 && 2 * (free + window.taken - window.used) < slice - 1 && !window.asking) {
        if (nowMs >= window.aloneUntilMs && window.taken + window.others < quota - free) void ask(key, window, nowMs)
      }
    },
    take(key) {
      const nowMs = Date.now()
      const current = window(key, nowMs)
      const state = stateOf(current, nowMs)
      if (state === 'ask') return ask(key, current, nowMs).then(() => this.take(key))
      if (state === 'open') this.count(key, current, nowMs)
      return { exceeded: state === 'over', resetSeconds: resetSeconds(current, nowMs) }
    },
    refund(key) {
      const current = windows.get(key)
      if (current && current.used > 0) current.used--
    },
    isUsedUp(key) {
      const current = windows.get(key)
      const nowMs = Date.now()
      return current !== undefined && nowMs < current.endsAtMs && stateOf(current, nowMs) === 'over'
    },
    resetSeconds: (key) => resetSeconds(window(key, Date.now()), Date.now()),
  }
}

function resetSeconds(window: Window, nowMs: number): number {
  return Math.max(1, Math.ceil((window.endsAtMs - nowMs) / 1000))
}

const leftOf = ({ quota }: RateLimit, { used, others }: Window) => Math.max(0, quota - used - others)

/** The rate limit headers for a caller without a valid token; counts nothing. */
export function createAddressNotice(perAddress: RateLimit) {
  const policy = `"address";q=${perAddress.quota};w=${minuteMs / 1000}`
  return (ip: string): { 'ratelimit-policy': string; ratelimit: string } => {
    const nowMs = Date.now()
    const window = perAddress.window(clientOf(ip), nowMs)
    const left = `"address";r=${leftOf(perAddress, window)};t=${resetSeconds(window, nowMs)}`
    return { 'ratelimit-policy': policy, ratelimit: left }
  }
}

/** Counts a request of a token and its account, sets the rate limit headers, and refuses requests over either limit. */
export function createCallerLimit(perToken: RateLimit, perAccount: RateLimit) {
  const seconds = minuteMs / 1000
  const policy = `"token";q=${perToken.quota};w=${seconds}, "account";q=${perAccount.quota};w=${seconds}`

  /** Returns a promise only if a slice must be fetched. */
  return function limitCaller(actor: Actor, reply: FastifyReply): undefined | Promise<void> {
    const { tokenId, accountId } = actor
    const nowMs = Date.now()
    const token = perToken.window(tokenId, nowMs)
    const account = perAccount.window(accountId, nowMs)
    const ofToken = perToken.stateOf(token, nowMs)
    const ofAccount = perAccount.stateOf(account, nowMs)
    const overToken = ofToken === 'over'
    const overAccount = ofAccount === 'over'
    // A refused request counts nowhere: a token over its limit takes nothing from the other tokens of its account.
    if (!overToken && !overAccount) {
      if (ofToken === 'ask' || ofAccount === 'ask') {
        const asked = [
          ofToken === 'ask' && perToken.ask(tokenId, token, nowMs),
          ofAccount === 'ask' && perAccount.ask(accountId, account, nowMs),
        ]
        return Promise.all(asked).then(() => limitCaller(actor, reply))
      }
      perToken.count(tokenId, token, nowMs)
      perAccount.count(accountId, account, nowMs)
    }
    const tokenReset = resetSeconds(token, nowMs)
    const accountReset = resetSeconds(account, nowMs)
    reply.header('ratelimit-policy', policy)
    reply.header(
      'ratelimit',
      `"token";r=${leftOf(perToken, token)};t=${tokenReset}, "account";r=${leftOf(perAccount, account)};t=${accountReset}`,
    )
    if (overAccount) {
      const wait = overToken ? Math.max(tokenReset, accountReset) : accountReset
      throw tooMany(`More than ${perAccount.quota} requests in a minute with all tokens of the account.`, wait)
    }
    if (overToken) throw tooMany(`More than ${perToken.quota} requests in a minute with this token.`, tokenReset)
    return undefined
  }
}

export function tooMany(detail: string, retryAfterSeconds: number): Fault {
  return new Fault('rate_limited', `${detail} Retry in ${retryAfterSeconds} s.`, { retryAfterSeconds })
}
