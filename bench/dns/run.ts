// `npm run bench -- dns`: answers compared with Knot and PowerDNS in turns, also for unique names; the time from change to
// answer, also in a large zone; the same with signed zones; and 100,000 zones.
import { join } from 'node:path'
import { compiledProgram } from '../edge/processes.ts'
import type { Bench } from '../group.ts'
import { findProgram } from '../programs.ts'
import { askWhile, type Changes, measureChanges } from './changes.ts'
import { expectAnswers } from './client.ts'
import { load, loadInTurns } from './load.ts'
import { floods, makeFlood, makeMix, randomNumbers, writeMix } from './mix.ts'
import { reportAnswers, reportChanges, reportFlood, reportLarge, reportScale, type Scale } from './report.ts'
import { type FigureName, figures } from './rows.ts'
import {
  type Server,
  signedName,
  startFloor,
  startKnot,
  startOurs,
  startPowerDns,
  startPowerDnsSigned,
} from './servers.ts'
import { addKeys, transferZoneFiles } from './signed.ts'
import { largeZone, seed, seedLarge, writeZoneFiles, zoneName } from './zones.ts'

const floodPerSecond = 10_000
const signedParts = ['signed', 'signed-floods', 'signed-changes', 'signed-large'] as const
const parts = ['answers', 'floods', 'changes', 'large', ...signedParts, 'scale'] as const
type Part = (typeof parts)[number]

type DnsBench = Bench<keyof typeof figures> & {
  dnsperf: string | null
  sizes: { few: number; many: number }
  questions: number
  ours: Server
  url: string
  /** Whether the zones are signed and queried with DO. */
  signed: boolean
  mixFile: string
  /** Starts our server on another database; stopped with the benchmark. */
  startAnother(name: string, size: number, large?: number): Promise<{ server: Server; url: string; seedMs: number }>
}

export const group = { about: 'The nameserver against PowerDNS with its caches and Knot', figures, run }

async function run(bench: Bench<FigureName>): Promise<void> {
  const { directory, atEnd } = bench
  const selected = (bench.only === '' ? parts : bench.only.split(',')) as Part[]
  const unknown = selected.find((part) => !parts.includes(part))
  if (unknown !== undefined) throw new Error(`There is no part ${unknown}. The parts are ${parts.join(', ')}.`)
  const sizes = { few: bench.size(1_000, 20), many: bench.size(100_000, 50) }
  const questions = bench.size(20_000, 500)
  const postgres = await bench.startPostgres(false)
  const program = await compiledProgram()
  const startAnother: DnsBench['startAnother'] = async (name, size, large = 0) => {
    const startedMs = performance.now()
    const url = await seed(postgres, name, size)
    if (large > 0) await seedLarge(url, large)
    if (name.startsWith(signedName)) await addKeys(url)
    const seedMs = performance.now() - startedMs
    const server = await startOurs(program, directory, name, url)
    atEnd(() => server.stop())
    return { server, url, seedMs }
  }
  const { server: ours, url } = await startAnother('few', sizes.few)
  const mixFile = join(directory, 'mix')
  const mix = makeMix(questions, sizes.few, 1)
  await writeMix(mixFile, mix)
  await expectAnswers(ours.name, ours.ports[0]!, mix)
  const own = { ours, url, signed: false, mixFile, startAnother, sizes, questions, dnsperf: findProgram('dnsperf') }
  const plain: DnsBench = { ...bench, ...own }
  await runParts(plain, { answers: 'answers', floods: 'floods', changes: 'changes', large: 'large' }, selected)
  if (signedParts.some((part) => selected.includes(part))) {
    const { server, url } = await startAnother(signedName, sizes.few)
    const names = { answers: 'signed', floods: 'signed-floods', changes: 'signed-changes', large: 'signed-large' }
    await runParts({ ...plain, ours: server, url, signed: true }, names as Record<Kind, Part>, selected)
  }
  if (selected.includes('scale')) reportScale(bench, await measureScale(plain), sizes)
}

type Kind = 'answers' | 'floods' | 'changes' | 'large'

/** The limits for signed or unsigned zones. */
async function runParts(bench: DnsBench, names: Record<Kind, Part>, selected: Part[]): Promise<void> {
  const { signed, sizes } = bench
  const kinds = (Object.keys(names) as Kind[]).filter((kind) => selected.includes(names[kind]))
  if (kinds.includes('answers') || kinds.includes('floods')) await compareAnswers(bench, kinds)
  if (kinds.includes('changes')) {
    const changes = await measureChanges(bench, anyOf(sizes.few, bench), bench.seconds(10))
    bench.record(signed ? 'signedChanges' : 'changes', reportChanges(sizes.few, changes, signed))
  }
  if (kinds.includes('large')) await compareLarge(bench)
}

/** Changes in any of this many zones. */
function anyOf(zones: number, { url, ours: server, signed }: Pick<DnsBench, 'url' | 'ours' | 'signed'>) {
  const random = randomNumbers(3)
  return { url, server, signed, zone: () => zoneName(2 + Math.floor(random() * (zones - 1))), other: zoneName(1) }
}

async function compareAnswers(bench: DnsBench, kinds: Kind[]): Promise<void> {
  const { directory, dnsperf, ours, mixFile, signed, sizes } = bench
  if (dnsperf === null) return
  const zones = await (signed ? transferZoneFiles(directory, ours, sizes.few) : writeZoneFiles(directory, sizes.few))
  if (zones === null) return
  const mix = makeMix(bench.questions, sizes.few, 1)
  const servers = [ours]
  const peers: Server[] = []
  try {
    for (const start of [signed ? startPowerDnsSigned : startPowerDns, startKnot]) {
      const peer = await start(directory, zones, sizes.few)
      if (peer) peers.push(peer)
    }
    servers.push(...peers)
    for (const { name, ports } of servers) for (const port of ports) await expectAnswers(name, port, mix, signed)
    if (kinds.includes('floods')) await compareFloods({ ...bench, dnsperf }, servers)
    if (!kinds.includes('answers')) return
    const floor = await startFloor(directory)
    peers.push(floor)
    servers.push(floor)
    const targets = servers.map((server) => ({ server, mixFile, dnssecOk: signed }))
    const slices = await loadInTurns(bench, dnsperf, targets, signed ? 'signed answers/s' : 'answers/s')
    const bytes = await Promise.all(servers.map((server) => server.residentBytes()))
    const measured = servers.map(({ name }, i) => ({ name, slices: slices[i]!, residentBytes: bytes[i]! }))
    reportAnswers(bench, signed ? 'signed' : 'answers', measured)
  } finally {
    for (const peer of peers) await peer.stop()
  }
}

/** Unique names, for which answer caches don't help. */
async function compareFloods(bench: DnsBench & { dnsperf: string }, servers: Server[]): Promise<void> {
  const { directory, dnsperf, ours, signed, sizes } = bench
  for (const kind of Object.keys(floods) as (keyof typeof floods)[]) {
    const what = signed ? (`${kind}, signed` as const) : kind
    const flood = makeFlood(kind, bench.size(600_000, 20_000), sizes.few)
    const mixFile = join(directory, `flood-${kind.replaceAll(' ', '-')}`)
    await writeMix(mixFile, flood)
    // Only a few: all of them would fill the peers' caches before the first round.
    for (const { name, ports } of servers)
      await expectAnswers(name, ports[0]!, flood.slice(0, bench.size(2_000, 200)), signed)
    const before = await ours.residentBytes()
    const targets = servers.map((server) => ({ server, mixFile, dnssecOk: signed }))
    const slices = await loadInTurns(bench, dnsperf, targets, what)
    const bytes = await Promise.all(servers.map((server) => server.residentBytes()))
    const measured = servers.map(({ name }, i) => ({ name, slices: slices[i]!, residentBytes: bytes[i]! }))
    const beside = async (file: string) => {
      let over = false
      const answerTimes = askWhile(ours.ports[0]!, zoneName(1), () => !over)
      await load(
        dnsperf,
        { server: ours, mixFile: file, dnssecOk: signed },
        ['-l', bench.size(bench.seconds(4), 0.25)],
        floodPerSecond,
      )
      over = true
      return answerTimes
    }
    const othersMs = { ordinary: await beside(bench.mixFile), flood: await beside(mixFile) }
    reportFlood(bench, { what, measured, bytes: [before, bytes[0]!], othersMs })
  }
}

/** Changes in a large and a small zone, in turns. */
async function compareLarge(bench: DnsBench): Promise<void> {
  const { signed } = bench
  const largeRecords = bench.size(100_000, 200)
  const { server, url } = await bench.startAnother(signed ? `${signedName}_large` : 'large', 10, largeRecords)
  const sums: Record<'large' | 'small', Changes> = {
    large: { writesPerSecond: 0, ms: [], othersMs: [] },
    small: { writesPerSecond: 0, ms: [], othersMs: [] },
  }
  for (let round = 0; round < bench.rounds(4); round++) {
    // A new zone each time, so that it stays small.
    const zones = { large: largeZone, small: zoneName(2 + round) }
    for (const name of ['large', 'small'] as const) {
      const place = { url, server, signed, zone: () => zones[name], other: zoneName(1) }
      const { ms, othersMs } = await measureChanges(bench, place, bench.seconds(3))
      // No spread arguments: there are thousands.
      sums[name].ms = sums[name].ms.concat(ms)
      sums[name].othersMs = sums[name].othersMs.concat(othersMs)
    }
  }
  const ratio = reportLarge(largeRecords, sums.large, sums.small, signed ? 'signed zone' : 'zone')
  bench.record(signed ? 'signedLarge' : 'large', ratio)
}

async function measureScale(bench: DnsBench): Promise<Scale> {
  const { directory, dnsperf, ours, mixFile, sizes } = bench
  console.error(`${sizes.many.toLocaleString('en')} zones …`)
  const { server: many, url, seedMs } = await bench.startAnother('many', sizes.many)
  const startedBytes = await many.residentBytes()
  const mix = makeMix(bench.questions, sizes.many, 2)
  await expectAnswers(many.name, many.ports[0]!, mix)
  const scale: Scale = { seedMs, startMs: many.startMs, startedBytes, loadedBytes: 0, few: [], many: [], fresh: null }
  if (dnsperf !== null) {
    const manyFile = join(directory, 'mix-many')
    await writeMix(manyFile, mix)
    const targets = [
      { server: ours, mixFile },
      { server: many, mixFile: manyFile },
    ]
    const [few, more] = await loadInTurns(bench, dnsperf, targets, 'many zones')
    scale.few = few!
    scale.many = more!
    const freshFile = join(directory, 'mix-fresh')
    // Spread over many zones, few are queried twice.
    await writeMix(freshFile, makeMix(bench.size(200_000, 1_000), sizes.many, 4))
    scale.fresh = await load(dnsperf, { server: many, mixFile: freshFile }, ['-n', 1])
  }
  reportChanges(
    sizes.many,
    await measureChanges(bench, anyOf(sizes.many, { url, ours: many, signed: false }), bench.seconds(3)),
  )
  scale.loadedBytes = await many.residentBytes()
  return scale
}
