// CORS: pages of other origins use the API by a token that they hold themselves. There are no cookies to abuse.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { headers } from './openapi/openapi-answers.ts'

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
// Whatever an operation may answer with, and what HTTP itself has.
const responseHeaders = [...Object.keys(headers), 'Allow', 'Content-Range', 'Sunset'].sort().join(', ')
// As long as any browser remembers it.
const preflightSeconds = 86_400

const allowing = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': responseHeaders,
})

/** For an answer to headers that could not be read: which page it is for is unknown then, so a list allows none. */
export const corsHeadersUnread = (origins: readonly string[]) => (origins.includes('*') ? allowing('*') : {})

/** Lets pages read the answer. True for a preflight, which is answered: it never carries the token. */
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

/** Must come before whatever may refuse a request: a page can read only answers that allow its origin. */
export function useCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.addHook('onRequest', (request, reply, done) => {
    if (!answerCors(origins, request, reply)) done()
  })
}
