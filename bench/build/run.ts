// `npm run bench -- build`: from POST to READY against the same steps by hand, in turns, and what a network costs.
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startGitHost } from '../../test/helpers/git-host.ts'
import { createRepository } from '../../test/helpers/repository.ts'
import { median, table, verdict } from '../figures.ts'
import { type Bare, openBare } from './bare.ts'
import { measureNetwork } from './network.ts'
import { type Platform, startPlatform } from './platform.ts'
import { type Files, staticSite, viteSite } from './sites.ts'

const wanted = { staticAboveMs: 160, vite: 1.1, second: 0.4 }
// What a round leaves behind for the disk and the processor is not charged to the next one.
const settleMs = 150

type World = {
  platform: Platform
  bare: Bare
  /** A repository of these files; returns its address. */
  host(name: string, files: Files): Promise<string>
}
/** Milliseconds of one round. */
type Round = { bare: number; first: number; second: number }

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      static: { type: 'string', default: '9' },
      vite: { type: 'string', default: '9' },
      network: { type: 'string', default: '15' },
    },
  })
  const [loadBefore] = loadavg()
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // PostgreSQL and builds run as other users under root and must get through.
  await chmod(directory, 0o711)
  const closers: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    if (values.only === '' || values.only === 'network') await measureNetwork(directory, Number(values.network))
    if (values.only === 'network') return
    const repositories = join(directory, 'repositories')
    await mkdir(repositories)
    const git = await startGitHost(repositories)
    closers.push(() => git.close())
    const platform = await startPlatform(directory, git.template)
    closers.push(() => platform.stop())
    const world: World = {
      platform,
      bare: await openBare(join(directory, 'bare')),
      async host(name, files) {
        await createRepository(repositories, `bench/${name}`, files)
        return git.template.replace('{repo}', `bench/${name}`)
      },
    }
    if (values.only !== 'vite') reportStatic(await measureStatic(world, Number(values.static)))
    const lockfile = values.only === 'static' ? null : await world.bare.lockfile()
    if (lockfile !== null) reportVite(await measureVite(world, lockfile, Number(values.vite)))
    else if (values.only !== 'static') console.log('skipped the Vite project: npm does not reach its registry')
    console.log(`\nbuilds ran ${(await platform.sandboxed()) ? 'in the sandbox' : 'without a sandbox'}`)
    console.log(`load average before the start ${loadBefore!.toFixed(1)} on ${availableParallelism()} processors`)
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** Runs `one` in every round, the sides in turns; the first round warms up and does not count. */
async function inRounds(
  rounds: number,
  bare: (round: number) => Promise<number>,
  ours: (round: number) => Promise<Omit<Round, 'bare'>>,
) {
  const measured: Round[] = []
  for (let round = 0; round <= rounds; round++) {
    let bareMs = 0
    const byHand = async () => {
      await sleep(settleMs)
      bareMs = await bare(round)
    }
    if (round % 2 === 0) await byHand()
    await sleep(settleMs)
    const rest = await ours(round)
    if (round % 2 === 1) await byHand()
    if (round > 0) measured.push({ bare: bareMs, ...rest })
  }
  return measured
}

async function measureStatic({ platform, bare, host }: World, rounds: number): Promise<Round[]> {
  console.error('static site …')
  const urls: string[] = []
  for (let round = 0; round <= rounds; round++) {
    urls.push(await host(`static-${round}`, staticSite(`static ${round}`)))
    await platform.createProject(`static-${round}`, { framework: 'static', repo: `bench/static-${round}` })
  }
  return inRounds(
    rounds,
    (round) => bare.copy(urls[round]!),
    async (round) => {
      const first = await platform.deploy(`static-${round}`)
      await sleep(settleMs)
      return { first, second: await platform.deploy(`static-${round}`) }
    },
  )
}

async function measureVite({ platform, bare, host }: World, lockfile: string, rounds: number): Promise<Round[]> {
  console.error('Vite project …')
  const urls: string[] = []
  for (let round = 0; round <= rounds; round++) {
    urls.push(await host(`vite-${round}`, viteSite(`vite ${round}`, lockfile)))
    // `npm ci` would refuse a lockfile that was written at a mirror without the packages of every platform.
    const settings = { framework: 'vite', repo: `bench/vite-${round}`, settings: { installCommand: 'npm install' } }
    await platform.createProject(`vite-${round}`, settings)
  }
  return inRounds(
    rounds,
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

function reportStatic(rounds: Round[]): void {
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
  const bound = `static site at most ${wanted.staticAboveMs} ms above the bare steps`
  console.log(`${verdict(above('first') <= wanted.staticAboveMs, bound, `${ms(above('first'))} ms`)}\n`)
}

function reportVite(rounds: Round[]): void {
  const ratio = (above: keyof Round, below: keyof Round) => median(rounds.map((round) => round[above] / round[below]))
  const toBare = ratio('first', 'bare')
  const toFirst = ratio('second', 'first')
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
  console.log(verdict(toBare <= wanted.vite, `first build at most ${wanted.vite} of the bare steps`, toBare.toFixed(2)))
  const second = `second build at most ${wanted.second} of the first`
  console.log(verdict(toFirst <= wanted.second, second, toFirst.toFixed(2)))
}
