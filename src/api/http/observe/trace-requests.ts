// A span for every request: a child of the caller's trace if it sends a traceparent, and the parent of the jobs it
// queues.
import type { Span } from '@opentelemetry/api'
import type { FastifyInstance } from 'fastify'
import { idsOf, isTracing, startSpan, within } from '../../../platform/observe/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
  }
}

/**
 * Does nothing while tracing is off. Attributes name the route but no URL, which may contain anything a caller typed.
 */
export function traceRequests(app: FastifyInstance): void {
  if (!isTracing()) return
  app.decorateRequest('span', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const route = request.routeOptions.url ?? 'unmatched'
    const { traceparent } = request.headers
    const span = startSpan(`${request.method} ${route}`, {
      kind: 'SERVER',
      parent: idsOf(traceparent) ? String(traceparent) : null,
      attributes: { 'http.request.method': request.method, 'http.route': route, 'berth.request.id': request.id },
    })
    request.span = span
    done()
  })
  // Only here, because the body is read outside the context of the first hook.
  app.addHook('preValidation', (request, _reply, done) => (request.span ? within(request.span, done) : done()))
  app.addHook('onResponse', (request, reply, done) => {
    const { span, actor } = request
    if (span) {
      span.setAttributes({
        'http.response.status_code': reply.statusCode,
        ...(actor && { 'berth.account.id': actor.accountId }),
      })
      if (reply.statusCode >= 500) span.setStatus({ code: 2 })
      span.end()
    }
    done()
  })
}
