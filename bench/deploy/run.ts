// `npm run bench -- deploy`: a folder by the command line against rsync, and a Next.js starter against the same commands by hand.
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildParts } from '../../build/parts.ts'
import { startGitHost } from '../../test/helpers/git-host.ts'
import { quietDisk } from '../../test/helpers/quiet-disk.ts'
import { commitTo, createRepository } from '../../test/helpers/repository.ts'
import { openBare } from '../build/bare.ts'
import { type Platform, startPlatform } from '../build/platform.ts'
import { median, table, verdict } from '../figures.ts'
import { nextStarter, page } from './next.ts'
import { measureUploads } from './upload.ts'

const wanted = { first: 1.15, second: 0.5 }

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '3' },
      uploads: { type: 'string', default: '6' },
    },
  })
  const [loadBefore] = loadavg()
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  // PostgreSQL and builds run as other users under root and must get through.
  await chmod(directory, 0o711)
  const closers: (() => unknown)[] = [() => rm(directory, { recursive: true, force: true })]
  try {
    const repositories = join(directory, 'repositories')
    await mkdir(repositories)
    const host = await startGitHost(repositories)
    closers.push(() => host.close())
    const platform = await startPlatform(directory, host.template)
    closers.push(() => platform.stop())
    if (values.only !== 'next') await uploads(platform, join(directory, 'uploads'), Number(values.uploads))
    if (values.only === 'upload') return
    console.error('Next.js starter …')
    const files = await nextStarter(join(directory, 'starter'))
    const bare = await openBare(join(directory, 'bare'))
    const rounds: { bare: number; first: number; second: number }[] = []
    for (let round = 0; round < Number(values.rounds); round++) {
      const name = `next-${round}`
      await createRepository(repositories, `bench/${name}`, files)
      const repo = `bench/${name}`
      // The server of a starter is started by `npm start`.
      await platform.createProject(name, { framework: 'node', repo })
      const byHand = async () => {
        await quietDisk()
        return bare.build(host.template.replace('{repo}', repo))
      }
      const early = round % 2 === 0 ? await byHand() : null
      await quietDisk()
      const first = await platform.deploy(name)
      await commitTo(repositories, repo, 'main', { 'app/page.js': page('second') })
      const second = await platform.deploy(name)
      rounds.push({ bare: early ?? (await byHand()), first, second })
    }
    report(rounds)
    const sandboxed = (await platform.sandboxed()) ? 'in a sandbox' : 'without a sandbox'
    console.log(
      `\nbuilds ${sandboxed}; ${availableParallelism()} cores; load ${loadBefore!.toFixed(2)} before, ${rounds.length} rounds`,
    )
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

async function uploads(platform: Platform, directory: string, rounds: number): Promise<void> {
  // The server hands out what is built.
  await buildParts(['cli'])
  await mkdir(directory)
  await measureUploads(platform, directory, rounds)
  console.log()
}

function report(rounds: { bare: number; first: number; second: number }[]): void {
  const of = (figure: 'bare' | 'first' | 'second') => rounds.map((round) => round[figure])
  const toBare = median(rounds.map(({ first, bare }) => first / bare))
  const toFirst = median(rounds.map(({ second, first }) => second / first))
  const row = (name: string, values: number[], ratio: string) => [
    name,
    ...[median(values), Math.min(...values), Math.max(...values)].map((ms) => ms.toFixed(0)),
    ratio,
  ]
  const rows = [
    ['Next.js starter, a server', 'median ms', 'least', 'most', 'ratio'],
    row('git clone, npm install, npm run build', of('bare'), ''),
    row('POST to READY, first build', of('first'), `${toBare.toFixed(2)} of bare`),
    row('POST to READY, one page changed', of('second'), `${toFirst.toFixed(2)} of first`),
  ]
  console.log(`${table(rows)}\n`)
  console.log(verdict(toBare <= wanted.first, `first build at most ${wanted.first} of bare`, toBare.toFixed(2)))
  console.log(verdict(toFirst <= wanted.second, `second at most ${wanted.second} of the first`, toFirst.toFixed(2)))
}
