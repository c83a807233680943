// The tables of a run and one verdict per wanted bound; ratios are medians of ratios taken side by side.
import { quantile, table, verdict } from '../figures.ts'
import type { Changes } from './changes.ts'
import { middle, ratio, type Slice } from './load.ts'

const wanted = { PowerDNS: 0.5, Knot: 0.35, changeMs: 100, startS: 20, memoryMb: 1024, slower: 1.3 }

export type Scale = {
  seedMs: number
  startMs: number
  startedBytes: number
  /** After the load and the changes. */
  loadedBytes: number
  few: Slice[]
  many: Slice[]
  /** Questions that were not asked before. */
  fresh: Slice | null
}

const mb = (bytes: number) => (bytes / 2 ** 20).toFixed(0)

function slicesRow(name: string, slices: Slice[], last: string[]): string[] {
  const rates = slices.map(({ perSecond }) => perSecond)
  const shown = [middle(slices, 'perSecond'), Math.min(...rates), Math.max(...rates)].map((rate) => rate.toFixed(0))
  return [name, ...shown, middle(slices, 'cpuUs').toFixed(1), ...last]
}

/** Ours is the first. */
export function reportAnswers(measured: { name: string; slices: Slice[]; residentBytes: number }[]): void {
  const ours = measured[0]!.slices
  const rows = [['1,000 zones', 'answers/s', 'least', 'most', 'CPU µs each', 'MB', 'ours / it']]
  for (const { name, slices, residentBytes } of measured) {
    rows.push(slicesRow(name, slices, [mb(residentBytes), ratio(ours, slices).toFixed(2)]))
  }
  console.log(`${table(rows)}\n`)
  for (const { name, slices } of measured.slice(1)) {
    const bound = wanted[name as 'PowerDNS' | 'Knot'] as number | undefined
    if (bound === undefined) continue
    const reached = ratio(ours, slices)
    console.log(verdict(reached >= bound, `answers/s at least ${bound} of ${name}`, reached.toFixed(2)))
  }
  console.log('')
}

export function reportChanges(zones: number, { ms, writesPerSecond }: Changes): void {
  const shares = [0.5, 0.9, 0.99].map((share) => quantile(ms, share))
  const row = [zones.toLocaleString('en'), ms.length, writesPerSecond.toFixed(0)].map(String)
  const rows = [
    ['zones', 'writes', 'writes/s', 'p50 ms', 'p90 ms', 'p99 ms', 'most ms'],
    [...row, ...[...shares, Math.max(...ms)].map((value) => value.toFixed(1))],
  ]
  console.log(`commit to new answer on both listeners\n${table(rows)}\n`)
  const bound = `p99 of change to answer under ${wanted.changeMs} ms with ${zones.toLocaleString('en')} zones`
  console.log(`${verdict(shares[2]! < wanted.changeMs, bound, `${shares[2]!.toFixed(1)} ms`)}\n`)
}

export function reportScale(scale: Scale, sizes: { few: number; many: number }): void {
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
  const start = `start with ${many} zones under ${wanted.startS} s`
  console.log(verdict(scale.startMs < wanted.startS * 1000, start, seconds(scale.startMs)))
  const mostBytes = Math.max(scale.startedBytes, scale.loadedBytes)
  const memory = `memory with ${many} zones under ${wanted.memoryMb} MB`
  console.log(verdict(mostBytes < wanted.memoryMb * 2 ** 20, memory, `${mb(mostBytes)} MB`))
  if (scale.fresh) {
    const slower = ratio(scale.few, scale.many)
    const bound = `answers/s with ${few} zones at most ${wanted.slower} times those with ${many}`
    console.log(verdict(slower <= wanted.slower, bound, slower.toFixed(2)))
  }
  console.log('')
}
