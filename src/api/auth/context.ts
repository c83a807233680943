// What all context to sign in share: password hashing, guess limits, proof of identity, the identity provider.
import type { FastifyRequest } from 'fastify'
import { Fault, invalidField } from '../../platform/errors.ts'
import { createIdentityProvider, type IdentityProvider } from '../../platform/secrets/identity-provider.ts'
import { createPasswordHasher, type PasswordHasher } from '../../platform/secrets/password-hash.ts'
import { type RelyingParty, relyingPartyOf, type SessionWithUser } from '../../services/people/index.ts'
import type { Deps } from '../http/deps.ts'
import { type Attempts, createAttempts } from './attempts.ts'

/** A session this young proves as much as a password. */
const freshMs = 10 * 60_000

export type SignInContext = {
  hasher: PasswordHasher
  attempts: Attempts
  /** Refuses an address that has used up its guesses, before the body is read. */
  checkGuessLimit(request: FastifyRequest): Promise<void>
  party: RelyingParty
  /** Null if none is configured. */
  provider: IdentityProvider | null
  /**
   * Throws unless the person signed in a moment ago or knows the password. Somebody who finds an open browser must not
   * be able to change how its owner signs in.
   */
  requireProof(request: FastifyRequest, session: SessionWithUser, current: string | undefined): Promise<void>
}

export function createSignInContext({ config, sharedLimits, passwordHasher }: Deps): SignInContext {
  const hasher = passwordHasher ?? createPasswordHasher()
  const attempts = createAttempts(sharedLimits)
  const party = relyingPartyOf(config.baseUrl)
  return {
    hasher,
    attempts,
    checkGuessLimit: async ({ ip }) => attempts.check(ip),
    party,
    provider: config.oidc && createIdentityProvider(config.oidc, `${party.origin}/auth/oidc/callback`),
    async requireProof({ ip }, { createdAt, user }, current) {
      const { id, passwordHash } = user
      if (current === undefined || passwordHash === null) {
        if (Date.now() - createdAt.getTime() > freshMs) throw new Fault('proof_required')
        return
      }
      await attempts.guess(ip, async (take) => {
        await take.person(`proof of ${id}`, null)
        if (!(await hasher.verify(current, passwordHash))) {
          throw invalidField('#/current', 'wrong', 'is not your current password')
        }
      })
    },
  }
}
