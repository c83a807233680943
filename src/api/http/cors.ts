// CORS: pages of other origins use the API by a token that they hold themselves. There are no cookies to abuse.
import type { FastifyInstance } from 'fastify'
import { headers } from './openapi-answers.ts'

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

/** Must come before whatever may refuse a request: a page can read only answers that allow its origin. */
export function useCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  const all = origins.includes('*')
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers
    if (!all) reply.header('vary', 'Origin')
    if (origin === undefined || !(all || origins.includes(origin))) return done()
    reply.header('access-control-allow-origin', all ? '*' : origin)
    // A preflight never carries the token, so it is answered before anybody asks for one.
    if (request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined) {
      reply.header('access-control-allow-methods', methods)
      reply.header('access-control-allow-headers', requestHeaders)
      reply.header('access-control-max-age', String(preflightSeconds))
      return void reply.code(204).send()
    }
    reply.header('access-control-expose-headers', responseHeaders)
    done()
  })
}
