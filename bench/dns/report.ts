// The tables and verdicts of a run; ratios are medians of ratios measured in the same round.
import { quantile, table, verdict } from '../figures.ts'
import type { Bench } from '../group.ts'
import type { Changes } from './changes.ts'
import { middle, ratio, type Slice } from './load.ts'
import type { Compared, FigureName, Peer } from './rows.ts'

const limits = { PowerDNS: 1.1, Knot: 0.8, changeMs: 10, startS: 20, memoryMb: 1024, slower: 1.3, growth: 1.1 }
const floodLimits = { PowerDNS: 1.0, Knot: 0.4 }
const maxLargeRatio = 2
const signedLimits = { PowerDNS: 0.9 }
const signedChangeMs = 25

type Bounds = { [peer in Peer]?: number }
type Recorder = Pick<Bench<FigureName>, 'record'>

export type Scale = {
  seedMs: number
  startMs: number
  startedBytes: number
  /** After the load and the changes. */
  loadedBytes: number
  few: Slice[]
  many: Slice[]
  /** Queries for new names. */
  fresh: Slice | null
}

const mb = (bytes: number) => (bytes / 2 ** 20).toFixed(0)

function slicesRow(name: string, slices: Slice[], last: string[]): string[] {
  const rates = slices.map(({ perSecond }) => perSecond)
  const shown = [middle(slices, 'perSecond'), Math.min(...rates), Math.max(...rates)].map((rate) => rate.toFixed(0))
  return [name, ...shown, middle(slices, 'cpuUs').toFixed(1), ...last]
}

type Measured = { name: string; slices: Slice[]; residentBytes: number }

/** Ours comes first. */
export function reportAnswers(bench: Recorder, what: Compared, measured: Measured[]): void {
  const bounds: Bounds = what === 'answers' ? limits : what === 'signed' ? signedLimits : floodLimits
  const ours = measured[0]!.slices
  const rows = [[what, 'answers/s', 'least', 'most', 'CPU µs each', 'MB', 'ours / it']]
  for (const { name, slices, residentBytes } of measured) {
    rows.push(slicesRow(name, slices, [mb(residentBytes), ratio(ours, slices).toFixed(2)]))
  }
  console.log(`${table(rows)}\n`)
  for (const { name, slices } of measured.slice(1)) {
    if (!isPeer(name)) continue
    const reached = ratio(ours, slices)
    bench.record(`${what} ${name}`, reached)
    const bound = bounds[name]
    if (bound === undefined) continue
    console.log(
      verdict(reached >= bound, `answers/s at least ${bound.toFixed(1)} of ${name}, ${what}`, reached.toFixed(2)),
    )
  }
  console.log('')
}

const isPeer = (name: string): name is Peer => name === 'PowerDNS' || name === 'Knot'

const p99 = (ms: number[]) => quantile(ms, 0.99)

export type Flood = {
  what: Compared
  measured: Measured[]
  /** Our memory before and after. */
  bytes: [before: number, after: number]
  /** Answer times of ordinary queries during as many other queries per second, ordinary ones or a flood. */
  othersMs: { ordinary: number[]; flood: number[] }
}

export function reportFlood(bench: Recorder, { what, measured, bytes: [before, after], othersMs }: Flood): void {
  reportAnswers(bench, what, measured)
  const grown = `memory after the flood at most ${limits.growth} times that before, ${what}`
  console.log(verdict(after <= before * limits.growth, grown, `${mb(before)} to ${mb(after)} MB`))
  const times = `${p99(othersMs.flood).toFixed(2)} ms, ${p99(othersMs.ordinary).toFixed(2)} beside ordinary questions`
  console.log(`        p99 of other zones’ answers beside 10,000/s of them: ${times}\n`)
}

export function reportLarge(size: number, large: Changes, small: Changes, kind = 'zone'): number {
  const row = (name: string, { ms, othersMs }: Changes) =>
    [name, ms.length, ...[0.5, 0.99].map((share) => quantile(ms, share).toFixed(1)), p99(othersMs).toFixed(2)].map(
      String,
    )
  const rows = [[`changes of a ${kind} of`, 'writes', 'p50 ms', 'p99 ms', 'others’ answers, p99 ms']]
  rows.push(row(`${size.toLocaleString('en')} records`, large), row('10 records', small))
  console.log(`${table(rows)}\n`)
  const reached = p99(large.ms) / p99(small.ms)
  const bound = `p99 of change to answer in the large ${kind} at most ${maxLargeRatio} times that in the small one`
  console.log(`${verdict(reached <= maxLargeRatio, bound, reached.toFixed(2))}\n`)
  return reached
}

export function reportChanges(zones: number, { ms, writesPerSecond }: Changes, signed = false): string {
  const maxMs = signed ? signedChangeMs : limits.changeMs
  const kind = signed ? 'signed zones' : 'zones'
  const shares = [0.5, 0.9, 0.99].map((share) => quantile(ms, share))
  const row = [zones.toLocaleString('en'), ms.length, writesPerSecond.toFixed(0)].map(String)
  const rows = [
    [kind, 'writes', 'writes/s', 'p50 ms', 'p90 ms', 'p99 ms', 'most ms'],
    [...row, ...[...shares, Math.max(...ms)].map((value) => value.toFixed(1))],
  ]
  console.log(`commit to new answer on both listeners\n${table(rows)}\n`)
  const bound = `p99 of change to answer under ${maxMs} ms with ${zones.toLocaleString('en')} ${kind}`
  console.log(`${verdict(shares[2]! < maxMs, bound, `${shares[2]!.toFixed(1)} ms`)}\n`)
  return `${shares[2]!.toFixed(1)} ms`
}

export function reportScale(bench: Recorder, scale: Scale, sizes: { few: number; many: number }): void {
  const [few, many] = [sizes.few, sizes.many].map((size) => size.toLocaleString('en'))
  if (scale.fresh) {
    const rows = [['zones', 'answers/s', 'least', 'most', 'CPU µs each']]
    rows.push(slicesRow(few!, scale.few, []), slicesRow(many!, scale.many, []))
    rows.push(slicesRow(`${many}, new questions`, [scale.fresh], []))
    console.log(`${table(rows)}\n`)
  }
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  console.log(
    `${many} zones: filled in ${seconds(scale.seedMs)}; memory ${mb(scale.startedBytes)} MB after the start,`,
    `${mb(scale.loadedBytes)} MB after the load`,
  )
  bench.record('start', seconds(scale.startMs))
  bench.record('memory', `${mb(Math.max(scale.startedBytes, scale.loadedBytes))} MB`)
  const start = `start with ${many} zones under ${limits.startS} s`
  console.log(verdict(scale.startMs < limits.startS * 1000, start, seconds(scale.startMs)))
  const maxBytes = Math.max(scale.startedBytes, scale.loadedBytes)
  const memory = `memory with ${many} zones under ${limits.memoryMb} MB`
  console.log(verdict(maxBytes < limits.memoryMb * 2 ** 20, memory, `${mb(maxBytes)} MB`))
  if (scale.fresh) {
    const slower = ratio(scale.few, scale.many)
    const bound = `answers/s with ${few} zones at most ${limits.slower} times those with ${many}`
    console.log(verdict(slower <= limits.slower, bound, slower.toFixed(2)))
  }
  console.log('')
}
