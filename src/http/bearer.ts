// The guard of /api: who sends the request, whether the token is good, and whether it holds the route's scope.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Actor, allows, type Scope } from '../actor.ts'
import { Fault } from '../errors.ts'
import { isWellFormedToken } from '../secrets.ts'
import type { TokenDirectory } from '../services/token-directory.ts'
import { limitToken, type RateLimit, tooMany } from './rate-limit.ts'

declare module 'fastify' {
  interface FastifyRequest {
    actor: Actor
  }
  interface FastifyContextConfig {
    /** Scope that the route needs; null where any valid token will do. Every route under /api says one. */
    scope?: Scope | null
    /** The resource belongs to the account, not to a project: a token narrowed to projects cannot see it. */
    accountWide?: boolean
  }
}

export function createGuard(directory: TokenDirectory, perToken: RateLimit, badTokensPerAddress: RateLimit) {
  async function authenticate(request: FastifyRequest): Promise<Actor> {
    const header = request.headers.authorization
    if (header === undefined) throw new Fault('missing_token')
    const token = /^Bearer +(\S+)$/i.exec(header)?.[1] ?? ''
    const found = isWellFormedToken(token) ? await directory.find(token) : null
    if (!found) throw new Fault('invalid_token')
    if (found.revokedAt && found.revokedAt.getTime() <= Date.now()) throw new Fault('token_revoked')
    if (found.expiresAt && found.expiresAt.getTime() <= Date.now()) throw new Fault('token_expired')
    if (found.accountSuspended) throw new Fault('account_suspended')
    return {
      accountId: found.accountId,
      tokenId: found.id,
      scopes: found.scopes,
      projectIds: found.projectIds.length > 0 ? found.projectIds : null,
    }
  }

  return async function guard(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { exceeded, resetSeconds } = badTokensPerAddress.peek(request.ip)
    if (exceeded) throw tooMany('Too many bad tokens from this address.', resetSeconds)
    try {
      request.actor = await authenticate(request)
    } catch (error) {
      if (error instanceof Fault && error.code !== 'account_suspended') badTokensPerAddress.take(request.ip)
      throw error
    }
    limitToken(perToken, request.actor.tokenId, reply)
    directory.noteUse(request.actor.tokenId)
    authorize(request)
  }
}

function authorize(request: FastifyRequest): void {
  const { scope, accountWide } = request.routeOptions.config
  const { actor } = request
  if (scope && !allows(actor.scopes, scope)) {
    throw new Fault('insufficient_scope', `The token needs the scope ${scope}.`, { requiredScope: scope })
  }
  if (accountWide && actor.projectIds) {
    // What is addressed by id looks absent, like every other thing outside the token's projects.
    throw new Fault(Object.keys(request.params ?? {}).length > 0 ? 'not_found' : 'token_limited_to_projects')
  }
}
