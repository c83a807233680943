// A folder of 60 files and 1.5 MB with `berth deploy`, all of it and with one changed file, compared with rsync.
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Platform } from '../build/platform.ts'
import { freePort } from '../children.ts'
import { median, table, verdict } from '../figures.ts'
import { findProgram } from '../programs.ts'
import type { DeployBench } from './rows.ts'

const run = promisify(execFile)
const maxRatio = 1.3
// Sent in addition to the changed bytes: the list of all files, a log and some request headers.
const maxBesideBytes = 32_000
const fileCount = 60
const fileBytes = 25_000
const servedWithinMs = 30_000

type Kind = 'first' | 'change' | 'upload' | 'local' | 'synced' | 'daemon' | 'node' | 'start'
type Figures = Map<Kind, number[]>

const pathOf = (index: number) => join('assets', String(index % 6), `part-${index}.js`)

/** Compressible words like those of pages, but unique. */
const content = () =>
  `${randomBytes(fileBytes * 0.36)
    .toString('hex')
    .slice(0, fileBytes * 0.7)}${' word'.repeat(fileBytes * 0.06)}`

async function makeSite(directory: string): Promise<void> {
  for (let index = 0; index < fileCount - 1; index++) {
    await mkdir(join(directory, pathOf(index), '..'), { recursive: true })
    await writeFile(join(directory, pathOf(index)), content())
  }
  await writeFile(join(directory, 'index.html'), content())
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await work()
  return performance.now() - startedMs
}

export async function measureUploads(bench: DeployBench, platform: Platform): Promise<void> {
  const directory = join(bench.directory, 'uploads')
  const rounds = bench.rounds(6)
  const changesPerRound = bench.size(3, 1)
  const home = join(directory, 'home')
  await mkdir(home, { recursive: true })
  const file = join(home, 'berth')
  await writeFile(file, await (await fetch(`${platform.url}/cli`)).text())
  const berth = async (args: string[], url = platform.url) => {
    const env = { PATH: process.env.PATH, HOME: home, BERTH_URL: url, BERTH_TOKEN: platform.token }
    const { stdout } = await run(process.execPath, [file, ...args, '--json'], { env })
    return JSON.parse(stdout) as { id: string; state: string }
  }
  const send = (site: string, project: string, more: string[], url?: string) =>
    berth(['deploy', site, '--project', project, '--prebuilt', '--prod', ...more], url)
  const isReady = ({ id, state }: { id: string; state: string }) => {
    if (state !== 'READY') throw new Error(`${id} is not READY, but ${state}.`)
  }
  const deploy = async (site: string, project: string, url?: string) => isReady(await send(site, project, [], url))
  const daemon = await startDaemon(directory)
  const figures: Figures = new Map()
  const note = (kind: Kind, ms: number) => figures.set(kind, [...(figures.get(kind) ?? []), ms])
  const traffic: { up: number; down: number }[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      const names = ['site', 'copy', 'synced', 'other'] as const
      const [site, copy, synced, other] = names.map((name) => join(directory, `${name}-${round}`))
      const [project, otherProject] = [`folder-${round}`, `other-${round}`]
      await makeSite(site!)
      for (const one of [copy!, synced!, other!, join(directory, 'module')])
        await cp(site!, one, { recursive: true, preserveTimestamps: true })
      await platform.createProject(project, { framework: 'static' })
      await platform.createProject(otherProject, { framework: 'static' })
      note('first', await timed(() => deploy(site!, project)))
      await deploy(other!, otherProject)
      for (let change = 0; change < changesPerRound; change++) {
        const path = pathOf(round * changesPerRound + change)
        await writeFile(join(site!, path), content())
        const peers: [Kind, () => Promise<unknown>][] = [
          ['change', () => deploy(site!, project)],
          ['local', () => run('rsync', ['-a', '--delete', `${site}/`, `${copy}/`])],
          ['synced', () => run('rsync', ['-a', '--delete', '--fsync', `${site}/`, `${synced}/`])],
          ['daemon', () => run('rsync', ['-a', '--delete', `${site}/`, `${daemon.url}/`])],
          ['node', () => run(process.execPath, ['-e', '0'])],
          ['start', () => run(process.execPath, [file, '--version'])],
        ]
        // Rotates who starts.
        const from = (round * changesPerRound + change) % peers.length
        for (const [kind, work] of [...peers.slice(from), ...peers.slice(0, from)]) note(kind, await timed(work))
        await expectServed(platform, project, path, await readFile(join(site!, path)))
        // A separate folder; otherwise rsync would find two changes.
        await writeFile(join(other!, path), content())
        let sent = { id: '', state: '' }
        note(
          'upload',
          await timed(async () => {
            sent = await send(other!, otherProject, ['--no-wait'])
          }),
        )
        isReady(await berth(['inspect', sent.id, '--wait']))
      }
      const counter = await startCounter(platform.url)
      await writeFile(join(site!, pathOf(0)), content())
      await deploy(site!, project, counter.url)
      traffic.push(counter.count())
      counter.stop()
    }
  } finally {
    await daemon.stop()
  }
  report(bench, figures, traffic)
}

function report(bench: DeployBench, figures: Figures, traffic: { up: number; down: number }[]): void {
  const local = median(figures.get('local')!)
  const row = (kind: Kind, name: string) => {
    const values = figures.get(kind)!
    return [
      name,
      ...[median(values), Math.min(...values), Math.max(...values)].map((ms) => ms.toFixed(0)),
      (median(values) / local).toFixed(2),
    ]
  }
  const rows = [
    [`${fileCount} files, 1.5 MB, to the same disk`, 'median ms', 'least', 'most', 'of rsync'],
    row('first', 'berth deploy, nothing known, until READY'),
    row('change', 'berth deploy, one file changed, until READY'),
    row('upload', 'the same with --no-wait: the upload alone'),
    row('local', 'rsync of the change, from folder to folder'),
    row('synced', 'the same with --fsync, as durable as a deployment'),
    row('daemon', 'the same to a daemon, not durable'),
    row('node', 'node, doing nothing'),
    row('start', 'berth --version'),
  ]
  const up = median(traffic.map(({ up }) => up))
  const down = median(traffic.map(({ down }) => down))
  const ratio = median(figures.get('change')!) / local
  for (const kind of ['upload', 'change'] as const) {
    bench.record(kind, median(figures.get(kind)!) / median(figures.get('daemon')!))
  }
  console.log(`${table(rows)}\n`)
  console.log(verdict(ratio <= maxRatio, `a change by the CLI at most ${maxRatio} of rsync`, ratio.toFixed(2)))
  const said = `${up - fileBytes} bytes more than the file's ${fileBytes} (${down} bytes came back)`
  console.log(verdict(up <= fileBytes + maxBesideBytes, 'only the changed file travels', said))
}

/** Waits until the edge serves the deployment. */
async function expectServed(platform: Platform, project: string, path: string, expected: Buffer): Promise<void> {
  const target = { host: '127.0.0.1', port: platform.edgePort, path: `/${path}` }
  const served = () =>
    new Promise<Buffer>((resolve, reject) => {
      const outgoing = request({ ...target, headers: { host: `${project}.localhost` } })
      outgoing.on('error', reject).on('response', async (answer) => resolve(Buffer.concat(await answer.toArray())))
      outgoing.end()
    })
  const endMs = performance.now() + servedWithinMs
  while (!(await served()).equals(expected)) {
    if (performance.now() > endMs) throw new Error(`The edge does not serve the new ${path}.`)
    await sleep(20)
  }
}

/** Forwards a port to the server and counts the bytes. */
async function startCounter(to: string) {
  let [up, down] = [0, 0]
  const { port } = new URL(to)
  const server = createServer((near) => {
    const far = connect(Number(port), '127.0.0.1')
    near.on('data', (chunk) => (up += chunk.length))
    far.on('data', (chunk) => (down += chunk.length))
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, count: () => ({ up, down }), stop: () => server.close() }
}

async function startDaemon(directory: string) {
  const program = findProgram('rsync')!
  const port = await freePort()
  const config = join(directory, 'rsyncd.conf')
  const module = join(directory, 'module')
  await mkdir(module)
  const owner = process.getuid?.() === 0 ? 'uid = 0\ngid = 0\n' : ''
  await writeFile(config, `use chroot = no\n${owner}[module]\npath = ${module}\nread only = no\n`)
  const args = ['--daemon', '--no-detach', '--address=127.0.0.1', `--port=${port}`, `--config=${config}`]
  const child = spawn(program, args, { stdio: 'ignore' })
  const url = `rsync://127.0.0.1:${port}/module`
  for (let tries = 0; ; tries++) {
    const isUp = await run(program, [`${url}/`]).then(
      () => true,
      () => false,
    )
    if (isUp) break
    if (tries > 300) throw new Error('The daemon of rsync does not answer.')
    await sleep(100)
  }
  return {
    url,
    stop: () =>
      new Promise<void>((resolve) => {
        child.once('exit', () => resolve())
        child.kill()
      }),
  }
}
