// `npm run bench -- dns`: answers against Knot and PowerDNS in turns, also to names that are never repeated, from change to
// answer, also in a large zone, all of that with signed zones, and 100,000 zones.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { findProgram } from '../edge/peers.ts'
import { compile } from '../edge/processes.ts'
import { expectAnswers } from './asker.ts'
import { askWhile, type Changes, measureChanges } from './changes.ts'
import { load, loadInTurns } from './load.ts'
import { floods, makeFlood, makeMix, randomNumbers, writeMix } from './mix.ts'
import {
  reportAnswers,
  reportChanges,
  reportFlood,
  reportLarge,
  reportScale,
  reportSigned,
  type Scale,
} from './report.ts'
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

const sizes = { few: 1_000, many: 100_000 }
const questions = 20_000
// Spread over many zones, few of them are asked for a second time.
const newQuestions = 200_000
const floodQuestions = 600_000
const floodPerSecond = 10_000
const signedParts = ['signed', 'signed-floods', 'signed-changes', 'signed-large'] as const
const parts = ['answers', 'floods', 'changes', 'large', ...signedParts, 'scale'] as const
type Part = (typeof parts)[number]

type Bench = {
  directory: string
  dnsperf: string | null
  rounds: number
  seconds: number
  largeRecords: number
  ours: Server
  url: string
  /** Whether the zones are signed, and asked for with DO. */
  signed: boolean
  mixFile: string
  /** Ours on another database; ended with the benchmark. */
  startAnother(name: string, size: number, large?: number): Promise<{ server: Server; url: string; seedMs: number }>
}

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      // For example `--only answers,changes` leaves the 100,000 zones out.
      only: { type: 'string', default: parts.join(',') },
      rounds: { type: 'string', default: '4' },
      seconds: { type: 'string', default: '4' },
      // Records of the large zone. Signing 100,000 takes most of the time of `--only signed-large`.
      large: { type: 'string', default: '100000' },
    },
  })
  const wanted = values.only.split(',') as Part[]
  const unknown = wanted.find((part) => !parts.includes(part))
  if (unknown !== undefined) throw new Error(`There is no part ${unknown}; known are ${parts.join(', ')}.`)
  const [loadBefore] = loadavg()
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // PostgreSQL runs as another user under root and must get through.
  await chmod(directory, 0o711)
  const closers: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    const postgres = await startEmbeddedPostgres({ directory: join(directory, 'postgres'), durable: false })
    closers.push(() => postgres.stop())
    const program = await compile(join(directory, 'compiled'))
    const startAnother: Bench['startAnother'] = async (name, size, large = 0) => {
      const startedMs = performance.now()
      const url = await seed(postgres, name, size)
      if (large > 0) await seedLarge(url, large)
      if (name.startsWith(signedName)) await addKeys(url)
      const seedMs = performance.now() - startedMs
      const server = await startOurs(program, directory, name, url)
      closers.push(() => server.stop())
      return { server, url, seedMs }
    }
    const { server: ours, url } = await startAnother('few', sizes.few)
    const mixFile = join(directory, 'mix')
    const mix = makeMix(questions, sizes.few, 1)
    await writeMix(mixFile, mix)
    await expectAnswers(ours.name, ours.ports[0]!, mix)
    const dnsperf = findProgram('dnsperf')
    if (dnsperf === null) console.log('dnsperf is not installed: nothing is said about answers a second.\n')
    const [rounds, seconds, largeRecords] = [values.rounds, values.seconds, values.large].map(Number) as Triple
    const own = { ours, url, signed: false, mixFile }
    const bench: Bench = { directory, dnsperf, rounds, seconds, largeRecords, ...own, startAnother }
    await runParts(bench, { answers: 'answers', floods: 'floods', changes: 'changes', large: 'large' }, wanted)
    if (signedParts.some((part) => wanted.includes(part))) {
      const { server, url } = await startAnother(signedName, sizes.few)
      const names = { answers: 'signed', floods: 'signed-floods', changes: 'signed-changes', large: 'signed-large' }
      await runParts({ ...bench, ours: server, url, signed: true }, names as Record<Kind, Part>, wanted)
    }
    if (wanted.includes('scale')) reportScale(await measureScale(bench), sizes)
    console.log(`load average before the start ${loadBefore!.toFixed(1)} on ${availableParallelism()} processors`)
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

type Triple = [number, number, number]
type Kind = 'answers' | 'floods' | 'changes' | 'large'

/** What is wanted of zones of one sort. */
async function runParts(bench: Bench, names: Record<Kind, Part>, wanted: Part[]): Promise<void> {
  const { signed } = bench
  const kinds = (Object.keys(names) as Kind[]).filter((kind) => wanted.includes(names[kind]))
  if (kinds.includes('answers') || kinds.includes('floods')) await compareAnswers(bench, kinds)
  if (kinds.includes('changes')) {
    reportChanges(sizes.few, await measureChanges(anyOf(sizes.few, bench), 10), signed)
  }
  if (kinds.includes('large')) await compareLarge(bench)
}

/** Changes in any of so many zones. */
function anyOf(zones: number, { url, ours: server, signed }: Pick<Bench, 'url' | 'ours' | 'signed'>) {
  const random = randomNumbers(3)
  return { url, server, signed, zone: () => zoneName(2 + Math.floor(random() * (zones - 1))), other: zoneName(1) }
}

async function compareAnswers(bench: Bench, kinds: Kind[]): Promise<void> {
  const { directory, dnsperf, ours, mixFile, rounds, seconds, signed } = bench
  if (dnsperf === null) return
  const zones = await (signed ? transferZoneFiles(directory, ours, sizes.few) : writeZoneFiles(directory, sizes.few))
  if (zones === null) return console.log('dig is not installed: there are no zones for the peers.\n')
  const mix = makeMix(questions, sizes.few, 1)
  const servers = [ours]
  const peers: Server[] = []
  try {
    for (const [name, start] of [
      ['PowerDNS', signed ? startPowerDnsSigned : startPowerDns],
      ['Knot', startKnot],
    ] as const) {
      const peer = await start(directory, zones, sizes.few)
      if (peer) peers.push(peer)
      else console.log(`${name} is not installed: it is left out.`)
    }
    servers.push(...peers)
    for (const { name, ports } of servers) for (const port of ports) await expectAnswers(name, port, mix, signed)
    if (kinds.includes('floods')) await compareFloods({ ...bench, dnsperf }, servers)
    if (!kinds.includes('answers')) return
    const floor = await startFloor(directory)
    peers.push(floor)
    servers.push(floor)
    const targets = servers.map((server) => ({ server, mixFile, dnssecOk: signed }))
    const slices = await loadInTurns(dnsperf, targets, rounds, seconds, signed ? 'signed answers/s' : 'answers/s')
    const bytes = await Promise.all(servers.map((server) => server.residentBytes()))
    const report = signed ? reportSigned : reportAnswers
    report(servers.map(({ name }, i) => ({ name, slices: slices[i]!, residentBytes: bytes[i]! })))
  } finally {
    for (const peer of peers) await peer.stop()
  }
}

/** Names that are asked for once: the caches of answers do not help. */
async function compareFloods(bench: Bench & { dnsperf: string }, servers: Server[]): Promise<void> {
  const { directory, dnsperf, ours, rounds, seconds, signed } = bench
  for (const kind of Object.keys(floods) as (keyof typeof floods)[]) {
    const what = signed ? `${kind}, signed` : kind
    const flood = makeFlood(kind, floodQuestions, sizes.few)
    const mixFile = join(directory, `flood-${kind.replaceAll(' ', '-')}`)
    await writeMix(mixFile, flood)
    // A few: all of them would fill the caches of the peers before the first round.
    for (const { name, ports } of servers) await expectAnswers(name, ports[0]!, flood.slice(0, 2_000), signed)
    const before = await ours.residentBytes()
    const targets = servers.map((server) => ({ server, mixFile, dnssecOk: signed }))
    const slices = await loadInTurns(dnsperf, targets, rounds, seconds, what)
    const bytes = await Promise.all(servers.map((server) => server.residentBytes()))
    const measured = servers.map(({ name }, i) => ({ name, slices: slices[i]!, residentBytes: bytes[i]! }))
    const beside = async (file: string) => {
      let over = false
      const asked = askWhile(ours.ports[0]!, zoneName(1), () => !over)
      await load(dnsperf, { server: ours, mixFile: file, dnssecOk: signed }, ['-l', seconds], floodPerSecond)
      over = true
      return asked
    }
    const othersMs = { ordinary: await beside(bench.mixFile), flood: await beside(mixFile) }
    reportFlood({ what, measured, bytes: [before, bytes[0]!], othersMs })
  }
}

/** Changes in a large zone and in a small one, in turns. */
async function compareLarge({ startAnother, signed, largeRecords }: Bench): Promise<void> {
  const { server, url } = await startAnother(signed ? `${signedName}_large` : 'large', 10, largeRecords)
  const sums: Record<'large' | 'small', Changes> = {
    large: { writesPerSecond: 0, ms: [], othersMs: [] },
    small: { writesPerSecond: 0, ms: [], othersMs: [] },
  }
  for (let round = 0; round < 4; round++) {
    // A new one each time, so that it stays small.
    const zones = { large: largeZone, small: zoneName(2 + round) }
    for (const name of ['large', 'small'] as const) {
      const place = { url, server, signed, zone: () => zones[name], other: zoneName(1) }
      const { ms, othersMs } = await measureChanges(place, 3)
      // Not by spreading: there are thousands.
      sums[name].ms = sums[name].ms.concat(ms)
      sums[name].othersMs = sums[name].othersMs.concat(othersMs)
    }
  }
  reportLarge(largeRecords, sums.large, sums.small, signed ? 'signed zone' : 'zone')
}

async function measureScale(bench: Bench): Promise<Scale> {
  const { directory, dnsperf, ours, mixFile, rounds, seconds } = bench
  console.error(`${sizes.many.toLocaleString('en')} zones …`)
  const { server: many, url, seedMs } = await bench.startAnother('many', sizes.many)
  const startedBytes = await many.residentBytes()
  const mix = makeMix(questions, sizes.many, 2)
  await expectAnswers(many.name, many.ports[0]!, mix)
  const scale: Scale = { seedMs, startMs: many.startMs, startedBytes, loadedBytes: 0, few: [], many: [], fresh: null }
  if (dnsperf !== null) {
    const manyFile = join(directory, 'mix-many')
    await writeMix(manyFile, mix)
    const targets = [
      { server: ours, mixFile },
      { server: many, mixFile: manyFile },
    ]
    const [few, more] = await loadInTurns(dnsperf, targets, Math.max(2, rounds - 1), seconds, 'many zones')
    scale.few = few!
    scale.many = more!
    const freshFile = join(directory, 'mix-fresh')
    await writeMix(freshFile, makeMix(newQuestions, sizes.many, 4))
    scale.fresh = await load(dnsperf, { server: many, mixFile: freshFile }, ['-n', 1])
  }
  reportChanges(sizes.many, await measureChanges(anyOf(sizes.many, { url, ours: many, signed: false }), 3))
  scale.loadedBytes = await many.residentBytes()
  return scale
}
