// What one account may use, and what one server accepts at once.
import { Type } from '@sinclair/typebox'
import { type Limits, quotaNames, quotas, quotaVariable, withinCeilings } from '../schemas/quotas.ts'
import type { Values } from './variables.ts'

const quotaVariables = Object.fromEntries(
  quotaNames.map((name) => [
    quotaVariable(name),
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: quotas[name].max }),
  ]),
)

const requestVariables = {
  RATE_LIMIT_PER_MINUTE: Type.Integer({ minimum: 1, default: 600 }),
  RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: Type.Optional(Type.Integer({ minimum: 1 })),
  MAX_IN_FLIGHT: Type.Integer({ minimum: 1, default: 1000 }),
  MAX_IN_FLIGHT_PER_ACCOUNT: Type.Optional(Type.Integer({ minimum: 1 })),
  MAX_WAITS: Type.Integer({ minimum: 1, default: 10_000 }),
  MAX_STREAMS: Type.Integer({ minimum: 1, default: 10_000 }),
}

export const limitVariables = { ...quotaVariables, ...requestVariables }

export function limitSettings(env: Values<typeof requestVariables>) {
  const quotaOf = (name: string) => (env as Record<string, unknown>)[name] as number
  const limits = Object.fromEntries(quotaNames.map((name) => [name, quotaOf(quotaVariable(name))])) as Limits
  return {
    rateLimitPerMinute: env.RATE_LIMIT_PER_MINUTE,
    /** The limits of an account unless the operator has set others for it. */
    quotas: withinCeilings(limits),
    /** For all tokens of an account together. */
    rateLimitPerAccountPerMinute: env.RATE_LIMIT_PER_ACCOUNT_PER_MINUTE ?? 3 * env.RATE_LIMIT_PER_MINUTE,
    maxInFlight: env.MAX_IN_FLIGHT,
    /** Concurrent requests of one account, counted until the last byte of the response. */
    maxInFlightPerAccount: env.MAX_IN_FLIGHT_PER_ACCOUNT ?? Math.ceil(env.MAX_IN_FLIGHT / 10),
    /** Concurrent waits and streams of all accounts on one server. */
    maxWaits: env.MAX_WAITS,
    maxStreams: env.MAX_STREAMS,
  }
}
