// Requests per minute, counted in memory: per token and per account for callers, per address for failed ones.

import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Fault } from '../../platform/errors.ts'
import type { Actor } from '../../services/tokens/actor.ts'

const windowMs = 60_000
// Bounds the memory of each limit; the keys that were used least lately start a new minute.
const maxKeys = 100_000

type Window = { startedAt: number; used: number }

export type RateLimit = {
  readonly quota: number
  /** The current minute of the key, to count in. */
  window(key: string, nowMs: number): Window
  /** Counts one request of the key. */
  take(key: string): { exceeded: boolean; resetSeconds: number }
  /** Whether nothing is left to the key; counts nothing. */
  isUsedUp(key: string): boolean
}

export function createRateLimit(quota: number): RateLimit {
  const windows = new LRUCache<string, Window>({ max: maxKeys })
  function window(key: string, nowMs: number): Window {
    let window = windows.get(key)
    if (!window || nowMs - window.startedAt >= windowMs) {
      window = { startedAt: nowMs, used: 0 }
      windows.set(key, window)
    }
    return window
  }
  return {
    quota,
    window,
    take(key) {
      const nowMs = Date.now()
      const current = window(key, nowMs)
      const exceeded = current.used >= quota
      if (!exceeded) current.used++
      return { exceeded, resetSeconds: resetSeconds(current, nowMs) }
    },
    isUsedUp(key) {
      const current = windows.get(key)
      return current !== undefined && current.used >= quota && Date.now() - current.startedAt < windowMs
    },
  }
}

function resetSeconds(window: Window, nowMs: number): number {
  return Math.max(1, Math.ceil((window.startedAt + windowMs - nowMs) / 1000))
}

/** Counts a request of a token and its account, sets the rate limit headers, and refuses what is over either limit. */
export function createCallerLimit(perToken: RateLimit, perAccount: RateLimit) {
  const seconds = windowMs / 1000
  const policy = `"token";q=${perToken.quota};w=${seconds}, "account";q=${perAccount.quota};w=${seconds}`

  return function limitCaller({ tokenId, accountId }: Actor, reply: FastifyReply): void {
    const nowMs = Date.now()
    const token = perToken.window(tokenId, nowMs)
    const account = perAccount.window(accountId, nowMs)
    const overToken = token.used >= perToken.quota
    const overAccount = account.used >= perAccount.quota
    // A refused request counts nowhere: a token that is over its limit takes nothing from the others of its account.
    if (!overToken && !overAccount) {
      token.used++
      account.used++
    }
    const tokenReset = resetSeconds(token, nowMs)
    const accountReset = resetSeconds(account, nowMs)
    reply.header('ratelimit-policy', policy)
    reply.header(
      'ratelimit',
      `"token";r=${perToken.quota - token.used};t=${tokenReset}, "account";r=${perAccount.quota - account.used};t=${accountReset}`,
    )
    if (overAccount) {
      const wait = overToken ? Math.max(tokenReset, accountReset) : accountReset
      throw tooMany(`More than ${perAccount.quota} requests in a minute by all tokens of the account.`, wait)
    }
    if (overToken) throw tooMany(`More than ${perToken.quota} requests in a minute by this token.`, tokenReset)
  }
}

export function tooMany(detail: string, retryAfterSeconds: number): Fault {
  return new Fault('rate_limited', `${detail} Try again in ${retryAfterSeconds} s.`, { retryAfterSeconds })
}
