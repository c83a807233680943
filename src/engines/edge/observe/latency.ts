// Measures how long the edge takes to respond, in plain arrays: prom-client's histogram costs a microsecond per request.
import type { Metric, Registry } from 'prom-client'
import { durationBoundsMs as boundsMs } from '../../../schemas/traffic-columns.ts'

/** `plain`: on the socket; `full`: by the HTTP handler; `server`: by a project's server. */
const kinds = ['plain', 'full', 'server'] as const
export type AnswerKind = (typeof kinds)[number]

const name = 'berth_edge_request_duration_seconds'

export type Latency = {
  /** `startedMs` is `performance.now()` at the start of the request. Returns the elapsed time. */
  observe(kind: AnswerKind, startedMs: number): number
}

export function createLatency(registry: Registry): Latency {
  // Per kind: counts per bucket (the last one for everything above) and the sum.
  const counts = kinds.map(() => new Float64Array(boundsMs.length + 1))
  const sumsMs = kinds.map(() => 0)

  function valuesOf(kind: AnswerKind, index: number) {
    let count = 0
    const buckets = [...boundsMs, Number.POSITIVE_INFINITY].map((boundMs, bucket) => {
      count += counts[index]![bucket]!
      const le = Number.isFinite(boundMs) ? boundMs / 1000 : '+Inf'
      return { metricName: `${name}_bucket`, labels: { kind, le }, value: count }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: { kind }, value: sumsMs[index]! / 1000 },
      { metricName: `${name}_count`, labels: { kind }, value: count },
    ]
  }

  const metric = {
    name,
    help: 'Time from a request to the end of its answer, by what answered.',
    type: 'histogram',
    aggregator: 'sum',
    reset: () => {},
    get: async () => ({ ...metric, values: kinds.flatMap(valuesOf) }),
  }
  registry.registerMetric(metric as unknown as Metric)

  return {
    observe(kind, startedMs) {
      const elapsedMs = performance.now() - startedMs
      const index = kinds.indexOf(kind)
      let bucket = 0
      while (bucket < boundsMs.length && elapsedMs > boundsMs[bucket]!) bucket++
      counts[index]![bucket]! += 1
      sumsMs[index]! += elapsedMs
      return elapsedMs
    },
  }
}
