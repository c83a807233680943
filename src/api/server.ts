// The HTTP server under the API: its limits on slow clients, and responses to requests that no route sees.
import type { TlsOptions } from 'node:tls'
import Fastify, { type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import { randomLabel } from '../platform/ids.ts'
import { answerCors, corsHeadersUnread } from './http/cors.ts'
import type { Deps } from './http/deps.ts'
import { BoundedMessage, boundBodies } from './http/requests/bounded-bodies.ts'
import { buildSerializer } from './http/requests/compilers.ts'
import { createParserErrors } from './http/requests/parser-errors.ts'
import { bodyLimitBytes } from './http/requests/validation.ts'
import { sendFault, toFault } from './http/responses/problem.ts'
import { versionOf } from './http/responses/versions.ts'

const headersTimeoutMs = 20_000
const requestTimeoutMs = 30_000
const connectionsCheckingIntervalMs = 5_000
// Longer than the longest wait, in which nothing is sent.
const idleConnectionMs = 90_000

/** `addressHeaders`: the rate limit headers of an address. */
export function createServer(
  { config, log }: Deps,
  tls: TlsOptions | undefined,
  addressHeaders: (ip: string) => Record<string, string>,
): FastifyInstance {
  const options: FastifyServerOptions = {
    loggerInstance: log,
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
    // Few requests log anything themselves, and those that do add the request id. A child logger for each would be waste.
    childLoggerFactory: (logger) => logger,
    // A domain name has up to 253 characters.
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (error, request, reply) => {
      reply.headers({ 'x-request-id': request.id, 'api-version': versionOf(request), ...addressHeaders(request.ip) })
      // No hooks run for a URL that can't be parsed.
      if (answerCors(config.corsOrigins, request, reply)) return reply
      return sendFault(toFault(error), config.baseUrl, request, reply)
    },
    clientErrorHandler: createParserErrors(config.baseUrl, corsHeadersUnread(config.corsOrigins), addressHeaders),
    // On shutdown, idle connections close at once, and a request that is already on its way is served.
    forceCloseConnections: 'idle',
    return503OnClosing: false,
  }
  const limits = {
    IncomingMessage: BoundedMessage,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: connectionsCheckingIntervalMs,
  }
  // The type of a server depends on its TLS, which no route cares about.
  const server = tls ? { https: { ...tls, ...limits } } : { http: limits }
  const app = Fastify({ ...options, ...server } as FastifyServerOptions) as FastifyInstance
  boundBodies(app.server, tls ? 'secureConnection' : 'connection')
  return app
}
