// Metrics of the nameservers: plain counters per packet, collected when Prometheus scrapes.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { rcodes, typeNumbers } from '../../../dns/packet/numbers.ts'

const dropReasons = ['unreadable', 'source', 'rate', 'connections', 'fault', 'busy'] as const
export type DropReason = (typeof dropReasons)[number]

/** Counters of one thread, in shared memory. */
export type Tallies = {
  /** Counts a sent answer. */
  count(type: number, rcode: number): void
  /** Counts a packet without an answer. */
  drop(reason: DropReason): void
}

export type NameserverMetrics = Tallies & {
  registry: Registry
  /** True for the few packets whose duration is measured. */
  isSampled(): boolean
  observe(seconds: number): void
  /** Allocates shared memory for another thread's counters, which are added to this thread's. */
  addTallies(): SharedArrayBuffer
}

const typeNames = new Map<number, string>(Object.entries(typeNumbers).map(([name, number]) => [number, name]))
const rcodeNames = new Map<number, string>(Object.entries(rcodes).map(([name, number]) => [number, name]))
const rcodeRange = 32
// Unknown types share one number, because clients could otherwise create any number of label values.
const typeRange = 258
const counts = typeRange * rcodeRange
const tallyOctets = (counts + dropReasons.length) * 8
// Reading the clock twice per packet would cost more than answering from the cache.
const sampleEvery = 64

export function createTallies(memory: SharedArrayBuffer): Tallies {
  const tallies = new Float64Array(memory)
  const drops = Object.fromEntries(dropReasons.map((reason, index) => [reason, counts + index]))
  return {
    count(type, rcode) {
      tallies[(type < typeRange ? type : 0) * rcodeRange + (rcode & 31)]! += 1
    },
    drop(reason) {
      tallies[drops[reason]!]! += 1
    },
  }
}

export function createNameserverMetrics(
  registry: Registry = new Registry(),
  zones: () => number,
  ageSeconds: () => number,
): NameserverMetrics {
  const memories: Float64Array[] = []
  const addTallies = () => {
    const memory = new SharedArrayBuffer(tallyOctets)
    memories.push(new Float64Array(memory))
    return memory
  }
  const sum = (index: number) => memories.reduce((all, memory) => all + memory[index]!, 0)
  const own = createTallies(addTallies())
  let packets = 0
  new Counter({
    name: 'berth_nameserver_queries_total',
    help: 'Queries answered by the nameservers, by type asked for and code of the answer.',
    labelNames: ['type', 'rcode'],
    registers: [registry],
    collect() {
      this.reset()
      for (let index = 0; index < counts; index++) {
        const count = sum(index)
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
      for (const [index, reason] of dropReasons.entries()) this.inc({ reason }, sum(counts + index))
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
    ...own,
    addTallies,
    isSampled: () => packets++ % sampleEvery === 0,
    observe: (elapsed) => seconds.observe(elapsed),
  }
}
