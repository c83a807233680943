// Limits guesses per client address and per person, across all servers. Only wrong guesses count.
import { hash } from 'node:crypto'
import { Fault, type FaultCode } from '../../platform/errors.ts'
import { clientOf } from '../../platform/http/client-address.ts'
import type { SharedLimits } from '../../services/limits/index.ts'
import { createRateLimit, type RateLimit, tooMany } from '../http/shares/rate-limit.ts'

const windowMs = 15 * 60_000
// An office behind one address makes more typos than one person.
const perAddress = 50
const perPerson = 10
// Three of a million codes are valid at a time: five guesses per quarter of an hour find one in two years.
const codesPerPerson = 5
// Right or wrong, because each attempt costs a row, a hash or a session.
const triesPerMinute = 120
// Right or wrong, because each costs a hash and an event in every account of the person.
const triesPerPerson = 40

export type GuessLimits = {
  /** Across all unknown browsers, or for one known browser. */
  person(email: string, browser: string | null): Promise<void>
  /** A one-time password of the person. */
  code(userId: string, browser: string | null): Promise<void>
}

export type Attempts = {
  /** Throws if the address has used up its guesses, as far as this process knows; counts nothing. */
  check(ip: string): void
  /** Runs `work`, whose guess is counted before the result is known. A right guess is refunded. */
  guess<T>(ip: string, work: (limits: GuessLimits) => Promise<T>): Promise<T>
  /** Counts an attempt that isn't a guess but still costs something. */
  begin(ip: string): Promise<void>
  /** Counts a sign-in of the person that needed no guess. */
  signIn(userId: string): Promise<void>
  /** Counts a change of the person's email address, refunds or not, because the response reveals whether it is in use. */
  address(userId: string): Promise<void>
}

// Other errors, such as a database outage, say nothing about the guess.
const wrong = new Set<FaultCode>(['sign_in_failed', 'validation_failed', 'rate_limited'])

export function createAttempts(limits: SharedLimits | undefined): Attempts {
  const limit = (kind: string, quota: number, ms?: number) =>
    createRateLimit(quota, limits && { limits, kind, told: true }, ms)
  const addresses = limit('sign-in-address', perAddress, windowMs)
  const people = limit('sign-in-person', perPerson, windowMs)
  const codes = limit('sign-in-code', codesPerPerson, windowMs)
  const allOfPerson = limit('sign-ins', triesPerPerson, windowMs)
  const all = limit('sign-in', triesPerMinute)

  async function take(of: RateLimit, key: string): Promise<() => void> {
    const { exceeded, resetSeconds } = await of.take(key)
    // The same text for every limit, so that nobody learns which one it was or whether the person exists.
    if (exceeded) throw tooMany('Too many sign-in attempts.', resetSeconds)
    return () => of.refund(key)
  }
  // Hashed: short whatever was typed, and the database holds no list of people.
  const keyOf = (who: string, browser: string | null) =>
    hash('sha256', `${who.toLowerCase()} ${browser ?? ''}`, 'base64url').slice(0, 22)

  const begin = async (ip: string) => void (await take(all, clientOf(ip)))

  return {
    begin,
    check(ip) {
      const used = [all, addresses].find((limit) => limit.isUsedUp(clientOf(ip)))
      if (used) throw tooMany('Too many sign-in attempts.', used.resetSeconds(clientOf(ip)))
    },
    signIn: async (userId) => void (await take(allOfPerson, keyOf(userId, null))),
    address: async (userId) => void (await take(people, keyOf(`address of ${userId}`, null))),
    async guess(ip, work) {
      await begin(ip)
      const refunds: (() => void)[] = []
      const keepRefund = async (one: Promise<() => void>) => void refunds.push(await one)
      try {
        await keepRefund(take(addresses, clientOf(ip)))
        const result = await work({
          async person(email, browser) {
            await keepRefund(take(people, keyOf(email, browser)))
            // Known browsers share one limit, because each sign-in makes another browser known.
            await take(allOfPerson, keyOf(email, browser && 'known'))
          },
          code: (userId, browser) => keepRefund(take(codes, keyOf(userId, browser))),
        })
        for (const refund of refunds) refund()
        return result
      } catch (error) {
        if (!(error instanceof Fault && wrong.has(error.code))) for (const refund of refunds) refund()
        throw error
      }
    },
  }
}
