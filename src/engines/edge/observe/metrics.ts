// The edge's metrics: plain numbers on the hot path, read when Prometheus scrapes them.
import type { ServerResponse } from 'node:http'
import { Counter, Gauge, Registry } from 'prom-client'
import { createLatency, type Latency } from './latency.ts'

export type EdgeMetrics = {
  registry: Registry
  /** Counts a response whose headers are written. */
  count(response: ServerResponse, bytes: number): void
  countStatus(status: number, bytes: number): void
} & Latency

type Sizes = { hosts(): number; certificates(): number }

export function createEdgeMetrics(registry: Registry = new Registry(), sizes: Sizes): EdgeMetrics {
  const requests = [0, 0, 0, 0, 0, 0]
  let sent = 0
  new Counter({
    name: 'berth_edge_requests_total',
    help: 'Requests answered by the edge, by class of status.',
    labelNames: ['status'],
    registers: [registry],
    collect() {
      this.reset()
      for (let group = 1; group <= 5; group++) this.inc({ status: `${group}xx` }, requests[group]!)
    },
  })
  new Counter({
    name: 'berth_edge_sent_bytes_total',
    help: 'Bytes of bodies sent by the edge.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(sent)
    },
  })
  new Gauge({
    name: 'berth_edge_hosts',
    help: 'Host names the edge knows.',
    aggregator: 'max',
    registers: [registry],
    collect() {
      this.set(sizes.hosts())
    },
  })
  new Gauge({
    name: 'berth_edge_certificates',
    help: 'Certificates the edge has in service.',
    aggregator: 'max',
    registers: [registry],
    collect() {
      this.set(sizes.certificates())
    },
  })
  function countStatus(status: number, bytes: number): void {
    const group = Math.min(5, Math.trunc(status / 100))
    requests[group] = (requests[group] ?? 0) + 1
    sent += bytes
  }
  return {
    registry,
    count: (response, bytes) => countStatus(response.statusCode, bytes),
    countStatus,
    ...createLatency(registry),
  }
}
