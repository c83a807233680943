// Requests per minute, counted in memory: per token for callers, per address for bad tokens.

import type { FastifyReply } from 'fastify'
import { LRUCache } from 'lru-cache'
import { Fault } from '../../platform/errors.ts'

const windowMs = 60_000

type Window = { startedAt: number; used: number }

export type RateLimit = {
  /** Counts one request of the key and returns what is left. */
  take(key: string): { remaining: number; resetSeconds: number; exceeded: boolean }
  peek(key: string): { exceeded: boolean; resetSeconds: number }
  readonly quota: number
}

export function createRateLimit(quota: number): RateLimit {
  const windows = new LRUCache<string, Window>({ max: 100_000 })
  function current(key: string): Window {
    const now = Date.now()
    let window = windows.get(key)
    if (!window || now - window.startedAt >= windowMs) {
      window = { startedAt: now, used: 0 }
      windows.set(key, window)
    }
    return window
  }
  const resetSeconds = (window: Window) => Math.max(1, Math.ceil((window.startedAt + windowMs - Date.now()) / 1000))
  return {
    quota,
    take(key) {
      const window = current(key)
      window.used++
      return {
        remaining: Math.max(0, quota - window.used),
        resetSeconds: resetSeconds(window),
        exceeded: window.used > quota,
      }
    },
    peek(key) {
      const window = windows.get(key)
      if (!window || Date.now() - window.startedAt >= windowMs) return { exceeded: false, resetSeconds: 0 }
      return { exceeded: window.used >= quota, resetSeconds: resetSeconds(window) }
    },
  }
}

/** Counts a request of a token, sets the rate limit headers, and refuses the request above the limit. */
export function limitToken(limit: RateLimit, tokenId: string, reply: FastifyReply): void {
  const { remaining, resetSeconds, exceeded } = limit.take(tokenId)
  reply.header('ratelimit-policy', `"default";q=${limit.quota};w=${windowMs / 1000}`)
  reply.header('ratelimit', `"default";r=${remaining};t=${resetSeconds}`)
  if (exceeded) throw tooMany(`More than ${limit.quota} requests in a minute.`, resetSeconds)
}

export function tooMany(detail: string, retryAfterSeconds: number): Fault {
  return new Fault('rate_limited', `${detail} Try again in ${retryAfterSeconds} s.`, { retryAfterSeconds })
}
