// The tables and verdicts of a run; every ratio is the median of ratios measured in the same round.
import { median, medianRatio, table } from '../figures.ts'
import type { Measured } from './drive.ts'

/** The result of a slice of load; CPU time is the server's, per request. */
export type Round = Measured & { cpuUs: number }
export type Side = 'ours' | 'floor'
/** The results of an endpoint by side and size, round by round. */
export type Measurements = { endpoint: string; rounds: Record<number, Record<Side, Round[]>> }

const limits = { throughput: 0.6, p99: 2, growth: 1.3, memoryMb: 300 }

type Figure = 'perSecond' | 'p99Ms' | 'p50Ms' | 'cpuUs'

const of = (measured: Round[], figure: Figure) => median(measured.map((one) => one[figure]))
export const ratio = (above: Round[], below: Round[], figure: Figure) =>
  medianRatio(
    above.map((one) => one[figure]),
    below.map((one) => one[figure]),
  )

export function report(all: Measurements[], sizes: number[], memoryMb: number, floorMemoryMb: number): string {
  const rows = [
    [
      'endpoint',
      'rows',
      'ours/s',
      'floor/s',
      'ratio',
      'p50 ms',
      'floor',
      'p99 ms',
      'floor',
      'p99 ratio',
      'cpu µs',
      'floor',
      'growth',
      'p99',
    ],
  ]
  const misses: Record<'throughput' | 'p99' | 'growth', string[]> = { throughput: [], p99: [], growth: [] }
  const failures: string[] = []
  const [small, large] = [Math.min(...sizes), Math.max(...sizes)]
  for (const { endpoint, rounds } of all) {
    for (const size of sizes) {
      const { ours, floor } = rounds[size]!
      const throughput = ratio(ours, floor, 'perSecond')
      const p99 = ratio(ours, floor, 'p99Ms')
      const where = `${endpoint} at ${size.toLocaleString('en')}`
      if (throughput < limits.throughput) misses.throughput.push(`${where} (${throughput.toFixed(2)})`)
      if (p99 > limits.p99) misses.p99.push(`${where} (${p99.toFixed(2)})`)
      let growth = ['', '']
      if (size === large && large !== small) {
        const slower = ratio(rounds[small]!.ours, ours, 'perSecond')
        const later = ratio(ours, rounds[small]!.ours, 'p99Ms')
        if (slower > limits.growth) misses.growth.push(`${endpoint} throughput (${slower.toFixed(2)})`)
        if (later > limits.growth) misses.growth.push(`${endpoint} p99 (${later.toFixed(2)})`)
        growth = [slower.toFixed(2), later.toFixed(2)]
      }
      for (const [side, measured] of Object.entries({ ours, floor })) {
        const failed = measured.reduce((sum, one) => sum + one.failures, 0)
        if (failed > 0) failures.push(`${where}: ${failed} requests failed on ${side}`)
      }
      rows.push([
        endpoint,
        size.toLocaleString('en'),
        of(ours, 'perSecond').toFixed(0),
        of(floor, 'perSecond').toFixed(0),
        throughput.toFixed(2),
        of(ours, 'p50Ms').toFixed(1),
        of(floor, 'p50Ms').toFixed(1),
        of(ours, 'p99Ms').toFixed(1),
        of(floor, 'p99Ms').toFixed(1),
        p99.toFixed(2),
        of(ours, 'cpuUs').toFixed(0),
        of(floor, 'cpuUs').toFixed(0),
        ...growth,
      ])
    }
  }
  const verdict = (bound: string, missed: string[]) =>
    `${missed.length === 0 ? 'met    ' : 'missed '} ${bound}${missed.length === 0 ? '' : `: ${missed.join(', ')}`}`
  const memory = memoryMb < limits.memoryMb ? [] : [`${memoryMb.toFixed(0)} MB`]
  return [
    table(rows),
    '',
    `resident memory under load: ours ${memoryMb.toFixed(0)} MB, floor ${floorMemoryMb.toFixed(0)} MB`,
    verdict(`throughput at least ${limits.throughput} of the floor`, misses.throughput),
    verdict(`p99 at most ${limits.p99} times the floor's`, misses.p99),
    verdict(`resident memory under ${limits.memoryMb} MB`, memory),
    verdict(`at most ${limits.growth} times worse with ${large.toLocaleString('en')} rows`, misses.growth),
    ...failures.map((line) => `WRONG   ${line}`),
  ].join('\n')
}
