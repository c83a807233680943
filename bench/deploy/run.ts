// `npm run bench -- deploy`: a folder with the CLI and with rsync, and a Next.js starter and the same commands by hand.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buildParts } from '../../build/parts.ts'
import { startGitHost } from '../../test/helpers/git-host.ts'
import { quietDisk } from '../../test/helpers/quiet-disk.ts'
import { commitTo, createRepository } from '../../test/helpers/repository.ts'
import { openBare } from '../build/bare.ts'
import { openPlatform, type Platform } from '../build/platform.ts'
import { median, medianRatio, table, verdict } from '../figures.ts'
import { findProgram } from '../programs.ts'
import { nextStarter, page, smallServer } from './next.ts'
import { type DeployBench, figures } from './rows.ts'
import { measureUploads } from './upload.ts'

const limits = { first: 1.15, second: 0.5 }

export const group = { about: 'A folder from the command line, and a Next.js starter', figures, run }

async function run(bench: DeployBench): Promise<void> {
  const { directory, atEnd, only } = bench
  const repositories = join(directory, 'repositories')
  await mkdir(repositories)
  const host = await startGitHost(repositories)
  atEnd(() => host.close())
  const platform = await openPlatform(bench, host.template)
  if (only !== 'next' && findProgram('rsync') !== null) await uploads(bench, platform)
  if (only === 'upload') return
  console.error('Next.js starter …')
  const files = bench.smoke ? smallServer : await nextStarter(join(directory, 'starter'))
  const bare = await openBare(join(directory, 'bare'))
  const quietMs = bench.size(5_000, 0)
  const rounds: { bare: number; first: number; second: number }[] = []
  for (let round = 0; round < bench.rounds(3); round++) {
    const name = `next-${round}`
    await createRepository(repositories, `bench/${name}`, files)
    const repo = `bench/${name}`
    // A starter's server is started with `npm start`.
    await platform.createProject(name, { framework: 'node', repo })
    const byHand = async () => {
      await quietDisk(quietMs)
      return bare.build(host.template.replace('{repo}', repo))
    }
    const early = round % 2 === 0 ? await byHand() : null
    await quietDisk(quietMs)
    const first = await platform.deploy(name)
    await commitTo(repositories, repo, 'main', { 'app/page.js': page('second') })
    const second = await platform.deploy(name)
    rounds.push({ bare: early ?? (await byHand()), first, second })
  }
  report(bench, rounds)
  console.log(`\nbuilds ran ${(await platform.sandboxed()) ? 'in the sandbox' : 'without a sandbox'}`)
}

async function uploads(bench: DeployBench, platform: Platform): Promise<void> {
  // The CLI as the server serves it.
  await buildParts(['cli'])
  await measureUploads(bench, platform)
  console.log()
}

function report(bench: DeployBench, rounds: { bare: number; first: number; second: number }[]): void {
  const of = (figure: 'bare' | 'first' | 'second') => rounds.map((round) => round[figure])
  const toBare = medianRatio(of('first'), of('bare'))
  const toFirst = medianRatio(of('second'), of('first'))
  bench.record('first', toBare)
  bench.record('second', toFirst)
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
  console.log(verdict(toBare <= limits.first, `first build at most ${limits.first} of bare`, toBare.toFixed(2)))
  console.log(verdict(toFirst <= limits.second, `second at most ${limits.second} of the first`, toFirst.toFixed(2)))
}
