// What the ways to sign in share: hashing, limits of guesses, proofs, and the provider of identities.
import type { FastifyRequest } from 'fastify'
import { Fault, invalidField } from '../../platform/errors.ts'
import { createIdentityProvider, type IdentityProvider } from '../../platform/secrets/identity-provider.ts'
import { createPasswordHasher, type PasswordHasher } from '../../platform/secrets/password-hash.ts'
import { type RelyingParty, relyingPartyOf, type SessionWithUser } from '../../services/people/index.ts'
import type { Deps } from '../http/deps.ts'
import { createTries, type Tries } from './tries.ts'

/** A session so young proves as much as a password does. */
const freshMs = 10 * 60_000

export type Ways = {
  hasher: PasswordHasher
  tries: Tries
  /** Refuses an address that may not guess any more, before the body is read. */
  expectGuess(request: FastifyRequest): Promise<void>
  party: RelyingParty
  /** Null: none is configured. */
  provider: IdentityProvider | null
  /**
   * Throws unless the person signed in a moment ago or knows the password. An open browser that somebody else finds
   * is not enough to change how the person signs in.
   */
  prove(request: FastifyRequest, session: SessionWithUser, current: string | undefined): Promise<void>
}

export function createWays({ config, sharedLimits, passwordHasher }: Deps): Ways {
  const hasher = passwordHasher ?? createPasswordHasher()
  const tries = createTries(sharedLimits)
  const party = relyingPartyOf(config.baseUrl)
  return {
    hasher,
    tries,
    expectGuess: async ({ ip }) => tries.expect(ip),
    party,
    provider: config.oidc && createIdentityProvider(config.oidc, `${party.origin}/auth/oidc/callback`),
    async prove({ ip }, { createdAt, user }, current) {
      const { id, passwordHash } = user
      if (current === undefined || passwordHash === null) {
        if (Date.now() - createdAt.getTime() > freshMs) throw new Fault('proof_required')
        return
      }
      await tries.guess(ip, async (take) => {
        await take.person(`proof of ${id}`, null)
        if (!(await hasher.verify(current, passwordHash))) {
          throw invalidField('#/current', 'wrong', 'is not your current password')
        }
      })
    },
  }
}
