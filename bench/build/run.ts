// `npm run bench -- build`: from POST to READY compared with the same steps by hand, in turns, and the cost of a network.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGitHost } from '../../test/helpers/git-host.ts'
import { createRepository } from '../../test/helpers/repository.ts'
import { median, medianRatio, table, verdict } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import { type Bare, openBare } from './bare.ts'
import { measureNetwork } from './network.ts'
import { openPlatform, type Platform } from './platform.ts'
import { copiedSite, type Files, staticSite, viteSite } from './sites.ts'

const limits = { staticAboveMs: 160, vite: 1.1, second: 0.4 }
// Lets the disk and CPU settle, so that a round doesn't slow down the next one.
const settleMs = 150

type World = {
  platform: Platform
  bare: Bare
  /** Creates a repository of these files; returns its URL. */
  host(name: string, files: Files): Promise<string>
  rounds: number
  /** Warm-up rounds, which don't count. */
  warmUps: number
}
/** Milliseconds of one round. */
type Round = { bare: number; first: number; second: number }

const figures = {
  static: {
    what: 'POST to READY, a static site of 60 files: time above the bare steps',
    against: '`git clone`, `cp -r`',
  },
  first: {
    what: 'POST to READY, first build of a Vite project, time',
    against: '`git clone`, `npm install`, `npm run build`',
  },
  second: { what: 'POST to READY, second build of a Vite project, time', against: 'its first build' },
} satisfies Record<string, Figure>

type BuildBench = Bench<keyof typeof figures>

export const group = { about: 'Deployments against the same steps by hand', figures, run }

async function run(bench: BuildBench): Promise<void> {
  const { directory, atEnd } = bench
  const wants = (part: string) => bench.only === '' || bench.only === part
  if (wants('network')) await measureNetwork(bench, bench.rounds(15))
  if (bench.only === 'network') return
  const repositories = join(directory, 'repositories')
  await mkdir(repositories)
  const git = await startGitHost(repositories)
  atEnd(() => git.close())
  const platform = await openPlatform(bench, git.template)
  const world: World = {
    platform,
    bare: await openBare(join(directory, 'bare')),
    async host(name, files) {
      await createRepository(repositories, `bench/${name}`, files)
      return git.template.replace('{repo}', `bench/${name}`)
    },
    rounds: bench.rounds(9),
    warmUps: bench.size(1, 0),
  }
  if (wants('static')) reportStatic(bench, await measureStatic(world))
  if (wants('vite')) {
    const lockfile = bench.smoke ? null : await world.bare.lockfile()
    const filesOf = (title: string) => (lockfile === null ? copiedSite(title) : viteSite(title, lockfile))
    reportVite(bench, await measureVite(world, filesOf))
  }
  console.log(`\nbuilds ran ${(await platform.sandboxed()) ? 'in the sandbox' : 'without a sandbox'}`)
}

/** Measures both sides in every round, in turns, without the warm-up rounds. */
async function inRounds(
  { rounds, warmUps }: World,
  bare: (round: number) => Promise<number>,
  ours: (round: number) => Promise<Omit<Round, 'bare'>>,
) {
  const measured: Round[] = []
  for (let round = 0; round < warmUps + rounds; round++) {
    let bareMs = 0
    const byHand = async () => {
      await sleep(settleMs)
      bareMs = await bare(round)
    }
    if (round % 2 === 0) await byHand()
    await sleep(settleMs)
    const rest = await ours(round)
    if (round % 2 === 1) await byHand()
    if (round >= warmUps) measured.push({ bare: bareMs, ...rest })
  }
  return measured
}

async function measureStatic(world: World): Promise<Round[]> {
  const { platform, bare, host, rounds, warmUps } = world
  console.error('static site …')
  const urls: string[] = []
  for (let round = 0; round < warmUps + rounds; round++) {
    urls.push(await host(`static-${round}`, staticSite(`static ${round}`)))
    await platform.createProject(`static-${round}`, { framework: 'static', repo: `bench/static-${round}` })
  }
  return inRounds(
    world,
    (round) => bare.copy(urls[round]!),
    async (round) => {
      const first = await platform.deploy(`static-${round}`)
      await sleep(settleMs)
      return { first, second: await platform.deploy(`static-${round}`) }
    },
  )
}

async function measureVite(world: World, filesOf: (title: string) => Files): Promise<Round[]> {
  const { platform, bare, host, rounds, warmUps } = world
  console.error('Vite project …')
  const urls: string[] = []
  for (let round = 0; round < warmUps + rounds; round++) {
    urls.push(await host(`vite-${round}`, filesOf(`vite ${round}`)))
    // `npm ci` would refuse a lockfile written with a mirror that lacks packages of some platforms.
    const settings = { framework: 'vite', repo: `bench/vite-${round}`, settings: { installCommand: 'npm install' } }
    await platform.createProject(`vite-${round}`, settings)
  }
  return inRounds(
    world,
    (round) => bare.build(urls[round]!),
    async (round) => {
      const first = await platform.deploy(`vite-${round}`)
      await sleep(settleMs)
      return { first, second: await platform.deploy(`vite-${round}`) }
    },
  )
}

const ms = (value: number) => value.toFixed(0)

function rowOf(name: string, values: number[], against: string): string[] {
  return [name, ms(median(values)), ms(Math.min(...values)), ms(Math.max(...values)), against]
}

function reportStatic(bench: BuildBench, rounds: Round[]): void {
  const above = (figure: 'first' | 'second') => median(rounds.map((round) => round[figure] - round.bare))
  const rows = [
    ['static site, 60 files, 1.5 MB', 'median ms', 'least', 'most', 'above bare ms'],
    rowOf(
      'git clone --depth 1, cp -r',
      rounds.map(({ bare }) => bare),
      '',
    ),
    rowOf(
      'POST to READY',
      rounds.map(({ first }) => first),
      ms(above('first')),
    ),
    rowOf(
      'POST to READY, files stored already',
      rounds.map(({ second }) => second),
      ms(above('second')),
    ),
  ]
  console.log(`${table(rows)}\n`)
  bench.record('static', `${ms(above('first'))} ms`)
  const bound = `static site at most ${limits.staticAboveMs} ms above the bare steps`
  console.log(`${verdict(above('first') <= limits.staticAboveMs, bound, `${ms(above('first'))} ms`)}\n`)
}

function reportVite(bench: BuildBench, rounds: Round[]): void {
  const of = (figure: keyof Round) => rounds.map((round) => round[figure])
  const toBare = medianRatio(of('first'), of('bare'))
  const toFirst = medianRatio(of('second'), of('first'))
  bench.record('first', toBare)
  bench.record('second', toFirst)
  const rows = [
    ['Vite project, npm cache empty', 'median ms', 'least', 'most', 'ratio'],
    rowOf(
      'git clone, npm install, npm run build',
      rounds.map(({ bare }) => bare),
      '',
    ),
    rowOf(
      'POST to READY, first build',
      rounds.map(({ first }) => first),
      `${toBare.toFixed(2)} of bare`,
    ),
    rowOf(
      'POST to READY, second build',
      rounds.map(({ second }) => second),
      `${toFirst.toFixed(2)} of first`,
    ),
  ]
  console.log(`${table(rows)}\n`)
  console.log(verdict(toBare <= limits.vite, `first build at most ${limits.vite} of the bare steps`, toBare.toFixed(2)))
  const second = `second build at most ${limits.second} of the first`
  console.log(verdict(toFirst <= limits.second, second, toFirst.toFixed(2)))
}
