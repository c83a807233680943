// How often somebody may guess: by address of the client and by person, at all servers together. Only wrong ones count.
import { hash } from 'node:crypto'
import { Fault, type FaultCode } from '../../platform/errors.ts'
import type { SharedLimits } from '../../services/limits/limits.ts'
import { clientOf } from '../http/address.ts'
import { createRateLimit, type RateLimit, tooMany } from '../http/rate-limit.ts'

const windowMs = 15 * 60_000
// An office behind one address mistypes more often than a person.
const perAddress = 50
const perPerson = 10
// Of a million codes three are right at a time: five guesses in a quarter of an hour find one in two years.
const codesPerPerson = 5
// Each is a row until its time is over.
const stepsPerMinute = 60

export type Take = {
  address(ip: string): Promise<void>
  /** By all browsers together, or by a known one. */
  person(email: string, browser: string | null): Promise<void>
  /** A one-time password of the person. */
  code(userId: string, browser: string | null): Promise<void>
}

export type Tries = {
  /** Runs `work`, which counts the guess before it looks whether it is right. One that is right is given back. */
  guess<T>(work: (take: Take) => Promise<T>): Promise<T>
  /** Counts the beginning of a sign-in. */
  begin(ip: string): Promise<void>
}

// All else, such as a database that is away, says nothing about the guess.
const wrong = new Set<FaultCode>(['sign_in_failed', 'validation_failed', 'rate_limited'])

export function createTries(limits: SharedLimits | undefined): Tries {
  const limit = (kind: string, quota: number, ms?: number) =>
    createRateLimit(quota, limits && { limits, kind, told: true }, ms)
  const addresses = limit('sign-in-address', perAddress, windowMs)
  const people = limit('sign-in-person', perPerson, windowMs)
  const codes = limit('sign-in-code', codesPerPerson, windowMs)
  const steps = limit('sign-in-step', stepsPerMinute)

  async function take(of: RateLimit, key: string): Promise<() => void> {
    const { exceeded, resetSeconds } = await of.take(key)
    // The same words for every limit: nobody learns which one it was, nor whether there is such a person.
    if (exceeded) throw tooMany('Too many tries to sign in.', resetSeconds)
    return () => of.giveBack(key)
  }
  // Short, whatever was typed, and no list of people in the database.
  const keyOf = (who: string, browser: string | null) =>
    hash('sha256', `${who.toLowerCase()} ${browser ?? ''}`, 'base64url').slice(0, 22)

  return {
    async guess(work) {
      const taken: (() => void)[] = []
      const note = async (one: Promise<() => void>) => void taken.push(await one)
      try {
        const result = await work({
          address: (ip) => note(take(addresses, clientOf(ip))),
          person: (email, browser) => note(take(people, keyOf(email, browser))),
          code: (userId, browser) => note(take(codes, keyOf(userId, browser))),
        })
        for (const giveBack of taken) giveBack()
        return result
      } catch (error) {
        if (!(error instanceof Fault && wrong.has(error.code))) for (const giveBack of taken) giveBack()
        throw error
      }
    },
    async begin(ip) {
      await take(steps, clientOf(ip))
    },
  }
}
