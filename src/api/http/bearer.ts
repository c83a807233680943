// Authenticates /api requests: finds the token, checks that it is valid and that it has the route's scope.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault } from '../../platform/errors.ts'
import { isWellFormedToken } from '../../platform/secrets.ts'
import { type Actor, allows, type Scope } from '../../services/tokens/actor.ts'
import type { KnownToken, TokenDirectory } from '../../services/tokens/directory.ts'
import { statuses } from './problem.ts'
import { limitToken, type RateLimit, tooMany } from './rate-limit.ts'

declare module 'fastify' {
  interface FastifyRequest {
    actor: Actor
  }
  interface FastifyContextConfig {
    /** Scope that the route needs; null if any valid token suffices. Every route under /api sets it. */
    scope?: Scope | null
    /** The resource belongs to the account, not to a project: a token narrowed to projects cannot see it. */
    accountWide?: boolean
  }
}

export function createGuard(directory: TokenDirectory, perToken: RateLimit, badTokensPerAddress: RateLimit) {
  function findToken(request: FastifyRequest): KnownToken | null | Promise<KnownToken | null> {
    const header = request.headers.authorization
    if (header === undefined) throw new Fault('missing_token')
    const token = /^Bearer +(\S+)$/i.exec(header)?.[1] ?? ''
    return isWellFormedToken(token) ? directory.find(token) : null
  }

  function admit(request: FastifyRequest, reply: FastifyReply, found: KnownToken | null): void {
    request.actor = actorOf(found)
    limitToken(perToken, request.actor.tokenId, reply)
    directory.noteUse(request.actor.tokenId)
    authorize(request)
  }

  function countBadToken(request: FastifyRequest, error: unknown): void {
    if (error instanceof Fault && statuses[error.code] === 401) badTokensPerAddress.take(request.ip)
  }

  /** Synchronous for a cached token, because every request passes here. */
  return function guard(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    try {
      const { exceeded, resetSeconds } = badTokensPerAddress.peek(request.ip)
      if (exceeded) throw tooMany('Too many bad tokens from this address.', resetSeconds)
      const found = findToken(request)
      if (found instanceof Promise) {
        found
          .then((token) => admit(request, reply, token))
          .then(
            () => done(),
            (error) => {
              countBadToken(request, error)
              done(error)
            },
          )
        return
      }
      admit(request, reply, found)
    } catch (error) {
      countBadToken(request, error)
      return void done(error as Error)
    }
    done()
  }
}

function actorOf(found: KnownToken | null): Actor {
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

function authorize(request: FastifyRequest): void {
  const { scope, accountWide } = request.routeOptions.config
  const { actor } = request
  if (scope && !allows(actor.scopes, scope)) {
    throw new Fault('insufficient_scope', `The token needs the scope ${scope}.`, { requiredScope: scope })
  }
  if (accountWide && actor.projectIds) {
    // A resource addressed by id is reported as not found, like everything outside the token's projects.
    throw new Fault(Object.keys(request.params ?? {}).length > 0 ? 'not_found' : 'token_limited_to_projects')
  }
}
