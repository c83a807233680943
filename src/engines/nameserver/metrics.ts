// What the nameservers count. Plain numbers on the way of a packet, shown to Prometheus when it asks.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { rcodes, typeNumbers } from './wire.ts'

export type DropReason = 'unreadable' | 'source' | 'rate' | 'connections' | 'fault'

export type NameserverMetrics = {
  registry: Registry
  /** Counts an answer that is sent. */
  count(type: number, rcode: number): void
  /** Counts a packet that gets none. */
  drop(reason: DropReason): void
  /** True for the few packets whose time is taken. */
  isSampled(): boolean
  observe(seconds: number): void
}

const typeNames = new Map<number, string>(Object.entries(typeNumbers).map(([name, number]) => [number, name]))
const rcodeNames = new Map<number, string>(Object.entries(rcodes).map(([name, number]) => [number, name]))
const rcodeRange = 32
// Reading the clock twice for every packet would cost more than a cached answer does.
const sampleEvery = 64

export function createNameserverMetrics(
  registry: Registry = new Registry(),
  zones: () => number,
  ageSeconds: () => number,
): NameserverMetrics {
  // Types that have no name here share a number: a label of the sender's choice would grow without bound.
  const counts = new Float64Array(258 * rcodeRange)
  const dropped: Record<DropReason, number> = { unreadable: 0, source: 0, rate: 0, connections: 0, fault: 0 }
  let packets = 0
  new Counter({
    name: 'berth_nameserver_queries_total',
    help: 'Queries answered by the nameservers, by type asked for and code of the answer.',
    labelNames: ['type', 'rcode'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [index, count] of counts.entries()) {
        if (count === 0) continue
        const type = typeNames.get(Math.floor(index / rcodeRange)) ?? 'other'
        this.inc({ type, rcode: rcodeNames.get(index % rcodeRange) ?? 'other' }, count)
      }
    },
  })
  new Counter({
    name: 'berth_nameserver_dropped_total',
    help: 'Packets and connections that the nameservers gave no answer, by reason.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [reason, count] of Object.entries(dropped)) this.inc({ reason }, count)
    },
  })
  const seconds = new Histogram({
    name: 'berth_nameserver_answer_seconds',
    help: `Time from a packet to its answer; one in ${sampleEvery} is measured.`,
    buckets: [0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.001, 0.01, 0.1, 1],
    registers: [registry],
  })
  new Gauge({
    name: 'berth_nameserver_zones',
    help: 'Zones the nameservers know.',
    registers: [registry],
    collect() {
      this.set(zones())
    },
  })
  new Gauge({
    name: 'berth_nameserver_snapshot_age_seconds',
    help: 'For how long the zones have not been known to be those of the database; 0 while they are.',
    registers: [registry],
    collect() {
      this.set(ageSeconds())
    },
  })
  return {
    registry,
    count(type, rcode) {
      counts[(type < 258 ? type : 0) * rcodeRange + (rcode & 31)]! += 1
    },
    drop(reason) {
      dropped[reason]++
    },
    isSampled: () => packets++ % sampleEvery === 0,
    observe: (elapsed) => seconds.observe(elapsed),
  }
}
