// The edge with few and with many deployments: time to first byte, and memory.
import { quantile, table, verdict } from '../figures.ts'
import type { EdgeProcess } from './processes.ts'
import type { EdgeBench } from './rows.ts'
import { deploymentHost, domainHost, filePath } from './seed.ts'
import { arrive, type Visitor } from './visits.ts'

export type Sizes = { few: number; many: number }
type Side = keyof Sizes
/** Milliseconds to the first byte, one per request; memory in bytes. */
type Scale = {
  cold: Record<Side, number[]>
  warm: Record<Side, number[]>
  anyHost: number[]
  startedBytes: Record<Side, number>
  sweptBytes: number
}

const limits = { memoryMb: 400, slower: 1.1 }
// The number of warm-up hosts that aren't measured when they are new.
const warmHosts = 2
const blocks = 20

type Guest = { side: Side; edge: EdgeProcess; visitor: Visitor }

/** An edge on a database with this many deployments, as one process or with worker processes. */
export type Start = (size: number, workers?: number) => Promise<EdgeProcess>

export async function measureScale(bench: EdgeBench, start: Start, sizes: Sizes): Promise<Scale> {
  const starts = bench.size(6, 1)
  const coldWarmUpVisits = bench.size(1_000, 10)
  const measured: Scale = {
    cold: { few: [], many: [] },
    warm: { few: [], many: [] },
    anyHost: [],
    startedBytes: { few: 0, many: 0 },
    sweptBytes: 0,
  }
  const { few } = sizes
  for (let round = 0; round < starts; round++) {
    console.error(`first byte, start ${round + 1} of ${starts} …`)
    const guests: Guest[] = []
    try {
      for (const side of round % 2 === 0 ? (['few', 'many'] as const) : (['many', 'few'] as const)) {
        const edge = await start(sizes[side])
        guests.push({ side, edge, visitor: await arrive(edge.port) })
      }
      for (const guest of guests) measured.startedBytes[guest.side] = await guest.edge.residentBytes()
      // The code is warm by now; the deployments of the other hosts must still be read from disk.
      for (const { visitor } of guests) {
        for (let i = 0; i < coldWarmUpVisits; i++)
          await visitor.firstByte(deploymentHost((i % warmHosts) + 1), filePath)
      }
      for (let number = warmHosts + 1; number <= few; number++) {
        for (const { side, visitor } of guests) {
          measured.cold[side].push(await visitor.firstByte(deploymentHost(number), filePath))
        }
      }
      if (round < starts - 1) continue
      await visitInTurns(guests, few, measured.warm, bench.size(300, 5))
      const many = guests.find(({ side }) => side === 'many')!
      measured.anyHost = await sweep(many.visitor, sizes.many, bench.size(3_000, 100))
      measured.sweptBytes = await many.edge.residentBytes()
    } finally {
      for (const { visitor, edge } of guests) {
        visitor.leave()
        await edge.stop()
      }
    }
  }
  return measured
}

/** Repeated visits to a few hosts of both edges, through both kinds of host name. */
async function visitInTurns(guests: Guest[], few: number, warm: Record<Side, number[]>, visits: number): Promise<void> {
  const visit = (visitor: Visitor, i: number) =>
    visitor.firstByte(i % 2 === 0 ? deploymentHost((i % few) + 1) : domainHost((i % few) + 1), filePath)
  for (const { visitor } of guests) for (let i = 0; i < 10 * visits; i++) await visit(visitor, i)
  for (let block = 0; block < blocks; block++) {
    for (const { side, visitor } of block % 2 === 0 ? guests : guests.toReversed()) {
      for (let i = 0; i < visits; i++) warm[side].push(await visit(visitor, i))
    }
  }
}

/** Visits every deployment and domain once, so that the edge holds as much as it ever will; then random hosts. */
async function sweep(visitor: Visitor, size: number, visits: number): Promise<number[]> {
  console.error(`every one of ${size.toLocaleString('en')} deployments and domains …`)
  for (let number = 1; number <= size; number++) {
    await visitor.firstByte(deploymentHost(number), filePath)
    await visitor.firstByte(domainHost(number), filePath)
  }
  const times: number[] = []
  for (let i = 0; i < visits; i++) {
    times.push(await visitor.firstByte(deploymentHost(1 + Math.floor(Math.random() * size)), filePath))
  }
  return times
}

export function reportScale(bench: EdgeBench, measured: Scale, sizes: Sizes): void {
  const rows = [['first byte', 'deployments', 'p50 µs', 'p90 µs', 'p99 µs']]
  const row = (name: string, side: Side, times: number[]) => {
    const shown = [0.5, 0.9, 0.99].map((share) => (quantile(times, share) * 1000).toFixed(0))
    rows.push([name, sizes[side].toLocaleString('en'), ...shown])
  }
  for (const side of ['few', 'many'] as const) row('new host', side, measured.cold[side])
  for (const side of ['few', 'many'] as const) row('known host', side, measured.warm[side])
  row('any host at random', 'many', measured.anyHost)
  console.log(`${table(rows)}\n`)
  const mb = (bytes: number) => (bytes / 2 ** 20).toFixed(0)
  const { startedBytes, sweptBytes } = measured
  const [few, many] = [sizes.few, sizes.many].map((size) => size.toLocaleString('en'))
  console.log(
    `resident memory: ${mb(startedBytes.few)} MB with ${few}, ${mb(startedBytes.many)} MB with ${many},`,
    `${mb(sweptBytes)} MB when each was visited`,
  )
  const maxBytes = Math.max(startedBytes.many, sweptBytes)
  bench.record('memory', `${mb(sweptBytes)} MB`)
  const memory = `memory with ${many} deployments and as many domains under ${limits.memoryMb} MB`
  console.log(verdict(maxBytes < limits.memoryMb * 2 ** 20, memory, `${mb(maxBytes)} MB`))
  for (const kind of ['cold', 'warm'] as const) {
    const ratio = quantile(measured[kind].many, 0.5) / quantile(measured[kind].few, 0.5)
    bench.record(kind === 'cold' ? 'newHost' : 'knownHost', ratio)
    const which = kind === 'cold' ? 'new' : 'known'
    const bound = `first byte of a ${which} host no slower than with ${few} (within ${limits.slower})`
    console.log(verdict(ratio <= limits.slower, bound, ratio.toFixed(2)))
  }
}
