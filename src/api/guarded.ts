// The routes below /api: every request passes the guard, the limits and the checks of its body.
import type { FastifyInstance, RouteOptions } from 'fastify'
import { Fault } from '../platform/errors.ts'
import { Body } from '../schemas/common.ts'
import { apiRoutes } from './all-routes.ts'
import { createGuard } from './http/bearer.ts'
import { useCors } from './http/cors.ts'
import type { Deps } from './http/deps.ts'
import { createOnce, createReplay } from './http/idempotency.ts'
import { useServedWaits } from './http/live/served-waits.ts'
import { refuseUnexpectedBody, refuseUnstorableAddress } from './http/requests/json-bodies.ts'
import { collectMethods } from './http/requests/methods.ts'
import { requireHttps, shedLoad } from './http/requests/transport.ts'
import { useCompression } from './http/responses/compression.ts'
import { announceDeprecated } from './http/responses/deprecation.ts'
import { refuseUnknownVersion, useVersions } from './http/responses/versions.ts'
import { createRateLimit, type RateLimit } from './http/shares/rate-limit.ts'
import { releaseShares } from './http/shares/shares.ts'
import { createTurns, takeTurns } from './http/shares/turns.ts'

const maxUploadsWaiting = 32

export type GuardedOptions = {
  deps: Deps
  failuresPerAddress: RateLimit
  /** The rate limit headers of an address. */
  addressHeaders: (ip: string) => Record<string, string>
}

export async function guardedRoutes(
  api: FastifyInstance,
  { deps, failuresPerAddress, addressHeaders }: GuardedOptions,
): Promise<void> {
  const { config, db, sharedLimits: limits } = deps
  const { shares, recheck } = api
  const guard = createGuard({
    directory: deps.tokenDirectory,
    perToken: createRateLimit(config.rateLimitPerMinute, limits && { limits, kind: 'token', told: true }),
    perAccount: createRateLimit(config.rateLimitPerAccountPerMinute, limits && { limits, kind: 'account', told: true }),
    failuresPerAddress,
    shares,
  })

  useCors(api, config.corsOrigins)
  shedLoad(api, config.maxInFlight, deps.maxLoopDelayMs)
  api.addHook('onRequest', (request, reply, done) => {
    try {
      reply.header('cache-control', 'private, no-cache')
      requireHttps(request)
      refuseUnknownVersion(request)
    } catch (error) {
      return done(error as Error)
    }
    guard(request, reply, done)
  })
  // Requests refused before the guard have no rate limit headers yet.
  api.addHook('onSend', (request, reply, _payload, done) => {
    if (!reply.hasHeader('ratelimit')) reply.headers(addressHeaders(request.ip))
    done()
  })
  releaseShares(api, shares)
  useVersions(api)
  useCompression(api)
  useServedWaits(api, { db, config, shares })
  // A token may be revoked while the body arrives, which can take half a minute.
  api.addHook('preValidation', (request, _reply, done) => {
    if (request.method === 'GET' || request.method === 'HEAD') return done()
    recheck(request).then(() => done(), done)
  })
  api.addHook('preValidation', (request, _reply, done) => {
    try {
      refuseUnexpectedBody(request.routeOptions.schema, request.body)
      refuseUnstorableAddress(request)
    } catch (error) {
      return done(error as Error)
    }
    done()
  })
  api.addHook('preHandler', createReplay(deps))
  takeTurns(api)
  api.setNotFoundHandler(() => {
    throw new Fault('route_not_found')
  })
  api.addHook('onRoute', checkRoute)

  const once = createOnce(deps)
  const inUploadTurn = createTurns('deployments with files', maxUploadsWaiting)
  const refuseOtherMethods = collectMethods(api)
  for (const routes of apiRoutes) await api.register(routes, { deps, once, inUploadTurn })
  refuseOtherMethods()
}

function checkRoute(route: RouteOptions): void {
  // Even in development, so that a misspelled scope never leaves a route unguarded.
  if (route.config?.scope === undefined && !route.config?.anyMethod) {
    throw new Error(`${route.method} ${route.url} does not say which scope it needs`)
  }
  // Unknown query parameters are refused everywhere, because a misspelled one would be ignored silently.
  route.schema = { querystring: Body({}), ...route.schema }
  announceDeprecated(route)
}
