// The API server: hooks, the guarded /api scope, and every route listed by hand.
import type { TlsOptions } from 'node:tls'
import Fastify, { type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import { Fault } from '../platform/errors.ts'
import { clientOf } from '../platform/http/client-address.ts'
import { randomLabel } from '../platform/ids.ts'
import { schemas } from '../schemas/all.ts'
import { Body } from '../schemas/common.ts'
import { authRoutes } from './auth/auth.ts'
import { deployHookCallRoutes } from './hooks/deploy.ts'
import { gitHookRoutes } from './hooks/git.ts'
import { useCompression } from './http/answers/compression.ts'
import { announceDeprecated } from './http/answers/deprecation.ts'
import { sendFault, toFault } from './http/answers/problem.ts'
import { refuseUnknownVersion, useVersions, versionOf } from './http/answers/versions.ts'
import { createGuard, createRecheck } from './http/bearer.ts'
import { answerCors, corsHeadersUnread, useCors } from './http/cors.ts'
import type { Deps } from './http/deps.ts'
import { createOnce, createReplay } from './http/idempotency.ts'
import { BoundedMessage, boundBodies } from './http/intake/bounded-bodies.ts'
import { buildSerializer } from './http/intake/compilers.ts'
import { groupConnections } from './http/intake/connections.ts'
import { refuseUnexpectedBody, refuseUnstorableAddress, useJsonBodies } from './http/intake/json-bodies.ts'
import { collectMethods } from './http/intake/methods.ts'
import { createParserErrors } from './http/intake/parser-errors.ts'
import { requireHttps, shedLoad } from './http/intake/transport.ts'
import { bodyLimitBytes, completeFault, useValidation } from './http/intake/validation.ts'
import { useServedWaits } from './http/live/served-waits.ts'
import { createStreams } from './http/live/sse.ts'
import { createTokenWatch } from './http/live/token-watch.ts'
import { createWaits } from './http/live/waiting.ts'
import { createMetrics, type Metrics, observeRequests } from './http/observe/observe.ts'
import { createOutageLog } from './http/observe/outage-log.ts'
import { traceRequests } from './http/observe/trace-requests.ts'
import { useOpenApi } from './http/openapi/openapi.ts'
import { createAllowance } from './http/shares/allowance.ts'
import { createAddressNotice, createRateLimit } from './http/shares/rate-limit.ts'
import { createShares, decorateShares, giveBack } from './http/shares/shares.ts'
import { createTurns, takeTurns } from './http/shares/turns.ts'
import { accountRoutes } from './routes/account.ts'
import { cronRoutes } from './routes/crons.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { deployHookRoutes } from './routes/deploy-hooks.ts'
import { deploymentCreationRoutes } from './routes/deployment-creation.ts'
import { deploymentLogRoutes } from './routes/deployment-logs.ts'
import { deploymentShareRoutes } from './routes/deployment-shares.ts'
import { deploymentRoutes } from './routes/deployments.ts'
import { discoveryRoutes } from './routes/discovery.ts'
import { dnsKeyRoutes } from './routes/dns-keys.ts'
import { dnsRecordRoutes } from './routes/dns-records.ts'
import { dnssecRoutes } from './routes/dnssec.ts'
import { domainRoutes } from './routes/domains.ts'
import { eventRoutes } from './routes/events.ts'
import { invitationRoutes } from './routes/invitations.ts'
import { mailRoutes } from './routes/mail.ts'
import { memberRoutes } from './routes/members.ts'
import { oidcExchangeRoutes, oidcTrustRoutes } from './routes/oidc.ts'
import { operatorAccountRoutes } from './routes/operator-accounts.ts'
import { operatorDomainRoutes } from './routes/operator-domains.ts'
import { operatorJobRoutes } from './routes/operator-jobs.ts'
import { operatorLimitRoutes } from './routes/operator-limits.ts'
import { operatorNodeRoutes } from './routes/operator-nodes.ts'
import { operatorTakedownRoutes } from './routes/operator-takedowns.ts'
import { operatorTicketRoutes } from './routes/operator-tickets.ts'
import { platformRoutes } from './routes/platform.ts'
import { productionRoutes } from './routes/production.ts'
import { projectRoutes } from './routes/projects.ts'
import { pullRequestRoutes } from './routes/pull-requests.ts'
import { pushHookRoutes } from './routes/push-hooks.ts'
import { redeploymentRoutes } from './routes/redeployments.ts'
import { repositoryAccessRoutes } from './routes/repository-access.ts'
import { rrsetRoutes } from './routes/rrsets.ts'
import { runtimeLogRoutes } from './routes/runtime-logs.ts'
import { searchRoutes } from './routes/search.ts'
import { ticketRoutes } from './routes/tickets.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { trafficRoutes } from './routes/traffic.ts'
import { uploadRoutes } from './routes/uploads.ts'
import { variableRoutes } from './routes/variables.ts'
import { webhookRoutes } from './routes/webhooks.ts'
import { zonePrimaryRoutes } from './routes/zone-primaries.ts'
import { zoneRoutes } from './routes/zones.ts'

const failuresPerMinute = 60
// Bodies that still come and answers that are still read have no place among the requests under way.
const openPerPlace = 10
const maxUploadsWaiting = 32

// Nobody holds a connection without asking: heads must come quickly, bodies soon, and answers must be read.
const headersTimeoutMs = 20_000
const requestTimeoutMs = 30_000
const connectionsCheckingIntervalMs = 5_000
// Longer than the longest wait, in which nothing is sent.
const idleConnectionMs = 90_000

// Refused alike in development and production: a misspelt route must not run unguarded.
const apiRoutes = [
  projectRoutes,
  variableRoutes,
  pushHookRoutes,
  deployHookRoutes,
  pullRequestRoutes,
  cronRoutes,
  repositoryAccessRoutes,
  oidcTrustRoutes,
  deploymentCreationRoutes,
  deploymentRoutes,
  deploymentLogRoutes,
  uploadRoutes,
  productionRoutes,
  deploymentShareRoutes,
  redeploymentRoutes,
  runtimeLogRoutes,
  domainRoutes,
  dnsRecordRoutes,
  rrsetRoutes,
  dnsKeyRoutes,
  dnssecRoutes,
  discoveryRoutes,
  zonePrimaryRoutes,
  zoneRoutes,
  trafficRoutes,
  tokenRoutes,
  memberRoutes,
  invitationRoutes,
  eventRoutes,
  accountRoutes,
  searchRoutes,
  ticketRoutes,
  webhookRoutes,
  deliveryRoutes,
  operatorTicketRoutes,
  operatorAccountRoutes,
  operatorDomainRoutes,
  operatorLimitRoutes,
  operatorNodeRoutes,
  operatorJobRoutes,
  operatorTakedownRoutes,
]

export type App = FastifyInstance & { metrics: Metrics }

export async function buildApp(deps: Deps, tls?: TlsOptions): Promise<App> {
  const { config } = deps
  const sharing = (kind: string, told: boolean) => deps.sharedLimits && { limits: deps.sharedLimits, kind, told }
  const failuresPerAddress = createRateLimit(failuresPerMinute, sharing('address', false))
  const addressNotice = createAddressNotice(failuresPerAddress)
  const addressLeft = (ip: string) => addressNotice(clientOf(ip))
  const options: FastifyServerOptions = {
    loggerInstance: deps.log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    trustProxy: config.trustedProxies.length > 0 ? config.trustedProxies : false,
    bodyLimit: bodyLimitBytes,
    schemaController: { compilersFactory: { buildSerializer } },
    requestTimeout: requestTimeoutMs,
    connectionTimeout: idleConnectionMs,
    genReqId: (raw) => {
      const own = raw.headers['x-request-id']
      return typeof own === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(own) ? own : `req_${randomLabel(20)}`
    },
    // Few requests write a line of their own; those name the request themselves.
    childLoggerFactory: (logger) => logger,
    // A domain name has up to 253 characters.
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (error, request, reply) => {
      reply.headers({ 'x-request-id': request.id, 'api-version': versionOf(request), ...addressLeft(request.ip) })
      // No scope has the hooks of an address that cannot be read.
      if (answerCors(config.corsOrigins, request, reply)) return reply
      return sendFault(toFault(error), config.baseUrl, request, reply)
    },
    clientErrorHandler: createParserErrors(config.baseUrl, corsHeadersUnread(config.corsOrigins), addressLeft),
    // A connection that is still idle when the server stops is closed at once, and a request that came on one is served.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }
  // The type of a server depends on its TLS, which no route cares about.
  const bounds = {
    IncomingMessage: BoundedMessage,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: connectionsCheckingIntervalMs,
  }
  const server = tls ? { https: { ...tls, ...bounds } } : { http: bounds }
  const app: FastifyInstance = Fastify({ ...options, ...server } as FastifyServerOptions)
  boundBodies(app.server, tls ? 'secureConnection' : 'connection')

  const shares = createShares(
    {
      requestsPerOwner: config.maxInFlightPerAccount,
      requests: config.maxInFlight * openPerPlace,
      waits: config.maxWaits,
      streams: config.maxStreams,
    },
    createAllowance(deps.db),
    deps.sharedLimits,
  )
  const metrics = createMetrics(shares, deps.registry)
  deps.load?.add('requests', () => shares.open.requests)
  const streams = createStreams(shares)
  const recheck = createRecheck(deps.tokenDirectory)
  const waits = createWaits(shares, deps.notifications, recheck)
  app.decorate('metrics', metrics)
  app.decorate('shares', shares)
  app.decorate('streams', streams)
  app.decorate('waits', waits)
  app.decorate('recheck', recheck)
  app.decorate('watchToken', createTokenWatch(deps.db, deps.notifications))
  app.decorate('outages', createOutageLog(deps))
  app.addHook('onClose', async () => app.outages.close())
  app.decorateRequest('actor', null as never)
  app.decorateRequest('idempotency', null)
  app.decorateRequest('place', null)
  decorateShares(app)
  useValidation(app)
  useJsonBodies(app)
  observeRequests(app, metrics, config.requestLogLevel)
  traceRequests(app)
  groupConnections(app)
  let closing = false
  app.addHook('preClose', async () => {
    closing = true
    streams.endAll()
    waits.endAll()
  })
  // A connection would be kept alive for a next request otherwise, which might come when the server is gone.
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing || deps.draining?.aborted) reply.header('connection', 'close')
    done()
  })

  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('api-version', versionOf(request))
    reply.header('x-content-type-options', 'nosniff')
    if (request.protocol === 'https') reply.header('strict-transport-security', 'max-age=63072000; includeSubDomains')
    done()
  })
  app.setErrorHandler(async (error, request, reply) => {
    const fault = await completeFault(toFault(error), request).catch(toFault)
    metrics.problems.inc({ code: fault.code })
    return sendFault(fault, config.baseUrl, request, reply)
  })
  app.setNotFoundHandler(() => {
    throw new Fault('route_not_found')
  })
  // After the guard, and before a body is looked at that nobody wants.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    done(request.is404 ? new Fault('route_not_found') : null)
  })

  await useOpenApi(app)
  for (const schema of schemas) app.addSchema(schema)
  await app.register(platformRoutes, { deps })

  await app.register(
    async (api) => {
      const guard = createGuard({
        directory: deps.tokenDirectory,
        perToken: createRateLimit(config.rateLimitPerMinute, sharing('token', true)),
        perAccount: createRateLimit(config.rateLimitPerAccountPerMinute, sharing('account', true)),
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
      // What was refused before its token was looked at.
      api.addHook('onSend', (request, reply, _payload, done) => {
        if (!reply.hasHeader('ratelimit')) reply.headers(addressLeft(request.ip))
        done()
      })
      giveBack(api, shares)
      useVersions(api)
      useCompression(api)
      useServedWaits(api, { db: deps.db, config, shares })
      // A body may come half a minute after its head, when the token is one that may not do this any more.
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
      api.addHook('onRoute', (route) => {
        if (route.config?.scope === undefined && !route.config?.anyMethod) {
          throw new Error(`${route.method} ${route.url} does not say which scope it needs`)
        }
        // A parameter that is not known is refused everywhere: misspelt, it would be ignored in silence.
        route.schema = { querystring: Body({}), ...route.schema }
        announceDeprecated(route)
      })
      const once = createOnce(deps)
      const inUploadTurn = createTurns('deployments with files', maxUploadsWaiting)
      const refuseOtherMethods = collectMethods(api)
      for (const routes of apiRoutes) await api.register(routes, { deps, once, inUploadTurn })
      refuseOtherMethods()
    },
    { prefix: '/api' },
  )
  await app.register(gitHookRoutes, { deps })
  await app.register(deployHookCallRoutes, { deps })
  await app.register(oidcExchangeRoutes, { deps })
  await app.register(mailRoutes, { deps })
  await app.register(authRoutes, { deps })
  return app as App
}
