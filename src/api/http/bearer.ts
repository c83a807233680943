// Authenticates /api requests: finds the token, and checks that it is valid and has the route's scope.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Fault, type FaultCode } from '../../platform/errors.ts'
import { clientOf } from '../../platform/http/client-address.ts'
import { isWellFormedToken } from '../../platform/secrets/secrets.ts'
import { type Actor, allows, type Scope } from '../../services/identity/index.ts'
import type { KnownToken, TokenDirectory } from '../../services/tokens/index.ts'
import { createCallerLimit, type RateLimit, tooMany } from './shares/rate-limit.ts'
import type { Shares } from './shares/shares.ts'

declare module 'fastify' {
  interface FastifyRequest {
    actor: Actor
  }
  interface FastifyInstance {
    /** For a route that reads its body while it runs: throws if the token has lost its right meanwhile. */
    recheck(request: FastifyRequest): Promise<void>
  }
  interface FastifyContextConfig {
    /** Scope that the route needs; null if any valid token suffices. Every route under /api sets it. */
    scope?: Scope | null
    /** The resource belongs to the account, not to a project: a token narrowed to projects can't see it. */
    accountWide?: boolean
    /** A token narrowed to parts of zones may call it, because the service keeps it within them. */
    inZoneParts?: boolean
  }
}

export type GuardOptions = {
  directory: TokenDirectory
  perToken: RateLimit
  perAccount: RateLimit
  /** Requests without a valid token. Those with one neither count here nor are refused. */
  failuresPerAddress: RateLimit
  shares: Shares
}

const failures = new Set<FaultCode>([
  'missing_token',
  'invalid_token',
  'token_expired',
  'token_revoked',
  'account_suspended',
])

export function createGuard({ directory, perToken, perAccount, failuresPerAddress, shares }: GuardOptions) {
  const limitCaller = createCallerLimit(perToken, perAccount)

  function findToken(request: FastifyRequest): KnownToken | null | Promise<KnownToken | null> {
    const token = tokenOf(request)
    if (!isWellFormedToken(token)) return null
    return directory.findKnown(token) ?? directory.find(token, failuresPerAddress.isUsedUp(clientOf(request.ip)))
  }

  function admit(request: FastifyRequest, reply: FastifyReply, found: KnownToken | null): undefined | Promise<void> {
    request.actor = actorOf(found)
    const pending = limitCaller(request.actor, reply)
    return pending ? pending.then(() => enter(request)) : enter(request)
  }

  function enter(request: FastifyRequest): undefined {
    directory.noteUse(request.actor.tokenId)
    authorize(request)
    shares.enter(request, request.actor.accountId)
  }

  /** Counts a request that failed because of its token. Above the limit, the caller only learns that it must wait. */
  async function refusal(request: FastifyRequest, error: unknown): Promise<Error> {
    if (!(error instanceof Fault) || !failures.has(error.code)) return error as Error
    const { exceeded, resetSeconds } = await failuresPerAddress.take(clientOf(request.ip))
    return exceeded ? tooMany('Too many requests without a valid token from this IP address.', resetSeconds) : error
  }

  /** Synchronous for a cached token, because every request passes here. */
  return function guard(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
    try {
      const found = findToken(request)
      const pending =
        found instanceof Promise ? found.then((token) => admit(request, reply, token)) : admit(request, reply, found)
      if (pending) {
        pending.then(
          () => done(),
          (error) => refusal(request, error).then(done),
        )
        return
      }
    } catch (error) {
      return void refusal(request, error).then(done)
    }
    done()
  }
}

function tokenOf(request: FastifyRequest): string {
  const header = request.headers.authorization
  if (header === undefined) throw new Fault('missing_token')
  return /^Bearer +(\S+)$/i.exec(header)?.[1] ?? ''
}

/** Checks the token of an admitted request again; throws if it may no longer do this. */
export function createRecheck(directory: TokenDirectory) {
  return async function recheck(request: FastifyRequest): Promise<void> {
    const token = tokenOf(request)
    request.actor = actorOf(directory.findKnown(token) ?? (await directory.find(token, false)))
    authorize(request)
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
    zoneParts: found.zoneParts,
    userId: found.userId,
  }
}

function authorize(request: FastifyRequest): void {
  const { scope, accountWide, inZoneParts } = request.routeOptions.config
  const { actor } = request
  if (scope && !allows(actor.scopes, scope)) {
    throw new Fault('insufficient_scope', `The token needs the scope ${scope}.`, { requiredScope: scope })
  }
  // Only records can be narrowed to parts of zones, so everything else is out of reach.
  if (actor.zoneParts && !inZoneParts) throw new Fault('token_limited_to_records')
  if (accountWide && actor.projectIds) {
    // A resource addressed by id is reported as not found, like everything outside the token's projects.
    throw new Fault(Object.keys(request.params ?? {}).length > 0 ? 'not_found' : 'token_limited_to_projects')
  }
}
