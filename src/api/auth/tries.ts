// How often somebody may guess: by address of the client and by person, at all servers together. Only wrong ones count.
import { hash } from 'node:crypto'
import { Fault, type FaultCode } from '../../platform/errors.ts'
import { clientOf } from '../../platform/http/client-address.ts'
import type { SharedLimits } from '../../services/limits/index.ts'
import { createRateLimit, type RateLimit, tooMany } from '../http/shares/rate-limit.ts'

const windowMs = 15 * 60_000
// An office behind one address mistypes more often than a person.
const perAddress = 50
const perPerson = 10
// Of a million codes three are right at a time: five guesses in a quarter of an hour find one in two years.
const codesPerPerson = 5
// Right or wrong: each costs a row, a hash or a session.
const triesPerMinute = 120
// Right or wrong too: a hash, and an event in every account of the person. Whoever only guesses is stopped long before.
const triesPerPerson = 40

export type Take = {
  /** By all browsers together, or by a known one. */
  person(email: string, browser: string | null): Promise<void>
  /** A one-time password of the person. */
  code(userId: string, browser: string | null): Promise<void>
}

export type Tries = {
  /** Throws if nothing is left to the address, as far as is known here; counts nothing. */
  expect(ip: string): void
  /** Runs `work`, whose guess is counted before it is known to be wrong. One that is right is given back. */
  guess<T>(ip: string, work: (take: Take) => Promise<T>): Promise<T>
  /** Counts what is no guess and costs something all the same. */
  begin(ip: string): Promise<void>
  /** Counts a sign-in of the person that needed no guess. */
  signIn(userId: string): Promise<void>
  /** Counts another address of the person, taken or not: either answer tells whether it is known here. */
  address(userId: string): Promise<void>
}

// All else, such as a database that is away, says nothing about the guess.
const wrong = new Set<FaultCode>(['sign_in_failed', 'validation_failed', 'rate_limited'])

export function createTries(limits: SharedLimits | undefined): Tries {
  const limit = (kind: string, quota: number, ms?: number) =>
    createRateLimit(quota, limits && { limits, kind, told: true }, ms)
  const addresses = limit('sign-in-address', perAddress, windowMs)
  const people = limit('sign-in-person', perPerson, windowMs)
  const codes = limit('sign-in-code', codesPerPerson, windowMs)
  const allOfPerson = limit('sign-ins', triesPerPerson, windowMs)
  const all = limit('sign-in', triesPerMinute)

  async function take(of: RateLimit, key: string): Promise<() => void> {
    const { exceeded, resetSeconds } = await of.take(key)
    // The same words for every limit: nobody learns which one it was, nor whether there is such a person.
    if (exceeded) throw tooMany('Too many sign-in attempts.', resetSeconds)
    return () => of.giveBack(key)
  }
  // Short, whatever was typed, and no list of people in the database.
  const keyOf = (who: string, browser: string | null) =>
    hash('sha256', `${who.toLowerCase()} ${browser ?? ''}`, 'base64url').slice(0, 22)

  const begin = async (ip: string) => void (await take(all, clientOf(ip)))

  return {
    begin,
    expect(ip) {
      const used = [all, addresses].find((limit) => limit.isUsedUp(clientOf(ip)))
      if (used) throw tooMany('Too many sign-in attempts.', used.resetSeconds(clientOf(ip)))
    },
    signIn: async (userId) => void (await take(allOfPerson, keyOf(userId, null))),
    address: async (userId) => void (await take(people, keyOf(`address of ${userId}`, null))),
    async guess(ip, work) {
      await begin(ip)
      const taken: (() => void)[] = []
      const note = async (one: Promise<() => void>) => void taken.push(await one)
      try {
        await note(take(addresses, clientOf(ip)))
        const result = await work({
          async person(email, browser) {
            await note(take(people, keyOf(email, browser)))
            // Those of known browsers together: each sign-in makes another one known.
            await take(allOfPerson, keyOf(email, browser && 'known'))
          },
          code: (userId, browser) => note(take(codes, keyOf(userId, browser))),
        })
        for (const giveBack of taken) giveBack()
        return result
      } catch (error) {
        if (!(error instanceof Fault && wrong.has(error.code))) for (const giveBack of taken) giveBack()
        throw error
      }
    },
  }
}
