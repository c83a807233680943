// CORS: pages of other origins call the API with a token of their own. There are no cookies to abuse.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { headers } from './openapi/openapi-responses.ts'

const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const requestHeaders = [
  'Accept',
  'Api-Version',
  'Authorization',
  'Content-Digest',
  'Content-Range',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'If-None-Match',
  'Last-Event-ID',
  'Traceparent',
  'Tracestate',
  'X-Request-Id',
].join(', ')
// Every header that an operation may respond with, and those of HTTP itself.
const responseHeaders = [...Object.keys(headers), 'Allow', 'Content-Range', 'Sunset'].sort().join(', ')
// The longest that any browser caches a preflight.
const preflightSeconds = 86_400

const allowing = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': responseHeaders,
})

/** For a response to unreadable headers: the origin is unknown then, so a list of origins allows none. */
export const corsHeadersUnread = (origins: readonly string[]) => (origins.includes('*') ? allowing('*') : {})

/** Lets pages read the response. Returns true if it answered a preflight, which never carries the token. */
export function answerCors(origins: readonly string[], request: FastifyRequest, reply: FastifyReply): boolean {
  const { origin } = request.headers
  const all = origins.includes('*')
  if (!all && origins.length > 0) reply.header('vary', 'Origin')
  if (origin === undefined || !(all || origins.includes(origin))) return false
  reply.headers(allowing(all ? '*' : origin))
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false
  reply.header('access-control-allow-methods', methods)
  reply.header('access-control-allow-headers', requestHeaders)
  reply.header('access-control-max-age', String(preflightSeconds))
  reply.code(204).send()
  return true
}

/** Must be registered before anything that refuses requests: pages can only read responses that allow their origin. */
export function useCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.addHook('onRequest', (request, reply, done) => {
    if (!answerCors(origins, request, reply)) done()
  })
}
