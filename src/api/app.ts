// Assembles the API: what all requests pass through, the guarded routes below /api, and the public ones.
import type { TlsOptions } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { Fault } from '../platform/errors.ts'
import { schemas } from '../schemas/all.ts'
import { publicRoutes } from './all-routes.ts'
import { guardedRoutes } from './guarded.ts'
import { createRecheck } from './http/bearer.ts'
import type { Deps } from './http/deps.ts'
import { createStreams } from './http/live/sse.ts'
import { createTokenWatch } from './http/live/token-watch.ts'
import { createWaits } from './http/live/waiting.ts'
import { createMetrics, type Metrics, observeRequests } from './http/observe/observe.ts'
import { createOutageLog } from './http/observe/outage-log.ts'
import { traceRequests } from './http/observe/trace-requests.ts'
import { useOpenApi } from './http/openapi/openapi.ts'
import { groupConnections } from './http/requests/connections.ts'
import { useJsonBodies } from './http/requests/json-bodies.ts'
import { completeFault, useValidation } from './http/requests/validation.ts'
import { sendFault, toFault } from './http/responses/problem.ts'
import { versionOf } from './http/responses/versions.ts'
import { createAllowance } from './http/shares/allowance.ts'
import { createAddressNotice, createRateLimit } from './http/shares/rate-limit.ts'
import { createShares, decorateShares } from './http/shares/shares.ts'
import { createServer } from './server.ts'

const failuresPerMinute = 60
// Bodies that still arrive and responses that are still read don't count as in flight.
const openPerInFlight = 10

export type App = FastifyInstance & { metrics: Metrics }

export async function buildApp(deps: Deps, tls?: TlsOptions): Promise<App> {
  const { sharedLimits: limits } = deps
  const failuresPerAddress = createRateLimit(failuresPerMinute, limits && { limits, kind: 'address' })
  const addressHeaders = createAddressNotice(failuresPerAddress)
  const app = createServer(deps, tls, addressHeaders)
  const metrics = decorate(app, deps)
  useValidation(app)
  useJsonBodies(app)
  observeRequests(app, metrics, deps.config.requestLogLevel)
  traceRequests(app)
  groupConnections(app)
  endConnections(app, deps)
  setHeaders(app)
  handleErrors(app, deps, metrics)
  await useOpenApi(app)
  for (const schema of schemas) app.addSchema(schema)
  await app.register(guardedRoutes, { prefix: '/api', deps, failuresPerAddress, addressHeaders })
  for (const routes of publicRoutes) await app.register(routes, { deps })
  return app as App
}

/** What handlers and hooks use of the server. */
function decorate(app: FastifyInstance, deps: Deps): Metrics {
  const { config, db, notifications, tokenDirectory } = deps
  const limits = {
    requestsPerOwner: config.maxInFlightPerAccount,
    requests: config.maxInFlight * openPerInFlight,
    waits: config.maxWaits,
    streams: config.maxStreams,
  }
  const shares = createShares(limits, createAllowance(db), deps.sharedLimits)
  const metrics = createMetrics(shares, deps.registry)
  const recheck = createRecheck(tokenDirectory)
  deps.load?.add('requests', () => shares.open.requests)
  app.decorate('metrics', metrics)
  app.decorate('shares', shares)
  app.decorate('streams', createStreams(shares))
  app.decorate('waits', createWaits(shares, notifications, recheck))
  app.decorate('recheck', recheck)
  app.decorate('watchToken', createTokenWatch(db, notifications))
  app.decorate('outages', createOutageLog(deps))
  app.addHook('onClose', async () => app.outages.close())
  app.decorateRequest('actor', null as never)
  app.decorateRequest('idempotency', null)
  app.decorateRequest('inFlight', null)
  decorateShares(app)
  return metrics
}

/** Ends streams and waits on shutdown, and keeps no connection on which a request could arrive too late. */
function endConnections(app: FastifyInstance, { draining }: Deps): void {
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
    app.streams.endAll()
    app.waits.endAll()
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing || draining?.aborted) reply.header('connection', 'close')
    done()
  })
}

function setHeaders(app: FastifyInstance): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('api-version', versionOf(request))
    reply.header('x-content-type-options', 'nosniff')
    if (request.protocol === 'https') reply.header('strict-transport-security', 'max-age=63072000; includeSubDomains')
    done()
  })
}

function handleErrors(app: FastifyInstance, { config }: Deps, metrics: Metrics): void {
  app.setErrorHandler(async (error, request, reply) => {
    const fault = await completeFault(toFault(error), request).catch(toFault)
    metrics.problems.inc({ code: fault.code })
    return sendFault(fault, config.baseUrl, request, reply)
  })
  app.setNotFoundHandler(() => {
    throw new Fault('route_not_found')
  })
  // After the guard, so that routes can't be probed without a token, and before the body is read.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    done(request.is404 ? new Fault('route_not_found') : null)
  })
}
