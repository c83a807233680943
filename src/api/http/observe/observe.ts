// One log line and one measurement per request, and the metrics of the process.
import type { FastifyInstance } from 'fastify'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Shares } from '../shares/shares.ts'

export type Metrics = { registry: Registry; requestSeconds: Histogram; problems: Counter; open: Gauge }

export function createMetrics(shares: Shares, registry = new Registry()): Metrics {
  return {
    registry,
    requestSeconds: new Histogram({
      name: 'berth_http_request_duration_seconds',
      help: 'Time from the first byte of a request to the last of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
      registers: [registry],
    }),
    problems: new Counter({
      name: 'berth_http_problems_total',
      help: 'Requests refused or failed, by code.',
      labelNames: ['code'],
      registers: [registry],
    }),
    open: new Gauge({
      name: 'berth_http_open',
      help: 'Requests of valid tokens that are open, waits, and streams.',
      labelNames: ['kind'],
      registers: [registry],
      collect() {
        for (const [kind, count] of Object.entries(shares.open)) this.set({ kind }, count)
      },
    }),
  }
}

/** URLs of deploy hooks have a secret in their path, and misspelled ones have it anywhere. */
function withoutSecrets(path: string): string {
  return path.replace(/(br[a-z])_[0-9A-Za-z]{8,}/g, '$1_…')
}

export function observeRequests(app: FastifyInstance, metrics: Metrics, level: 'info' | 'debug'): void {
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'unmatched'
    const durationMs = reply.elapsedTime
    metrics.requestSeconds.observe({ method: request.method, route, status: reply.statusCode }, durationMs / 1000)
    request.log[level](
      {
        requestId: request.id,
        method: request.method,
        route,
        // Without the query, which may contain anything a caller typed.
        path: withoutSecrets(request.url.split('?', 1)[0]!),
        status: reply.statusCode,
        durationMs: Math.round(durationMs * 100) / 100,
        tokenId: request.actor?.tokenId,
        address: request.ip,
      },
      'request',
    )
    done()
  })
}
