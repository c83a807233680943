// `npm run bench -- servers`: a server project through the edge, and the same program through Caddy and directly, in turns.

import { spawn } from 'node:child_process'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Manifest } from '../../src/platform/artifacts/artifacts.ts'
import { createArtifacts } from '../../src/platform/artifacts/local-artifacts.ts'
import { freePort, startChild } from '../children.ts'
import { type Peer, startCaddyWith } from '../edge/peers.ts'
import { compiledProgram, startEdge } from '../edge/processes.ts'
import { deploymentHost, seed } from '../edge/seed.ts'
import { median, medianRatio, table, verdict } from '../figures.ts'
import type { Bench, Figure } from '../group.ts'
import { findProgram } from '../programs.ts'
import { type Load, loadNames, loadsBy } from './loads.ts'

const minRatio = 1
const host = deploymentHost(1)
const program = join(import.meta.dirname, 'program.mjs')

/** By load and server, one per round: requests per second, and the server's CPU time per request. */
type Slice = { perSecond: number; cpuMicros: number }
type Measured = Map<Load, Map<Peer, Slice[]>>

const figures: Record<string, Figure> = Object.fromEntries(
  loadNames.map((name) => [
    name,
    { what: `${name}, per second`, against: 'Caddy `reverse_proxy`', needs: ['wrk', 'caddy'] },
  ]),
)

export const group = { about: 'A server project through the edge, against the same program behind Caddy', figures, run }

async function run(bench: Bench): Promise<void> {
  const { directory, atEnd } = bench
  const wrk = findProgram('wrk')
  if (wrk === null) return
  const postgres = await bench.startPostgres()
  const dataDir = join(directory, 'edge')
  await mkdir(dataDir)
  const databaseUrl = await seed(postgres, 'servers', dataDir, 1)
  await deploy(dataDir)
  const compiled = await compiledProgram()
  const environment = { DATABASE_URL: databaseUrl, DATA_DIR: dataDir }
  const edge = await startEdge(compiled, environment, join(directory, 'edge.log'), 'edge,runner')
  atEnd(() => edge.stop())
  const direct = await startProgram()
  atEnd(() => direct.stop())
  const caddy = await startCaddyWith(directory, [`reverse_proxy 127.0.0.1:${direct.port}`])
  if (caddy) atEnd(() => caddy.stop())
  const servers = [{ name: 'edge', ...edge }, ...(caddy ? [caddy] : []), direct]
  for (const server of servers) await expectAnswers(server)
  const messages = await startChild(join(import.meta.dirname, 'messages.ts'), {})
  atEnd(() => messages.stop())
  const loads = loadsBy(wrk, messages).filter(({ name }) => name.includes(bench.only))
  report(bench, await measure(bench, servers, loads))
}

/** Turns the only deployment into a server project. */
async function deploy(dataDir: string): Promise<void> {
  const artifacts = createArtifacts(join(dataDir, 'artifacts'))
  const tree = artifacts.serverDirectory('dpl_1')
  await mkdir(tree, { recursive: true })
  await copyFile(program, join(tree, 'program.mjs'))
  await writeFile(join(tree, 'package.json'), JSON.stringify({ scripts: { start: 'exec node program.mjs' } }))
  const manifest: Manifest = { version: 1, kind: 'node', root: '', files: {}, spaFallback: false, cleanUrls: true }
  await writeFile(join(dataDir, 'artifacts/manifests/dpl_1.json'), JSON.stringify(manifest))
}

/** The same program without a sandbox, for Caddy. */
async function startProgram(): Promise<Peer> {
  const port = await freePort()
  const env = { PATH: process.env.PATH, PORT: String(port), NODE_ENV: 'production' }
  const child = spawn(process.execPath, [program], { env, stdio: 'inherit' })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async () => {
    child.kill('SIGTERM')
    await exited
  }
  return { name: 'direct', port, pid: child.pid!, stop }
}

/** Checks that all send the same responses. */
async function expectAnswers({ name, port }: Peer): Promise<void> {
  const ask = (method: string, path: string, body = '') =>
    new Promise<string>((resolve) => {
      const sent = request({ port, host: '127.0.0.1', method, path, headers: { host } }, (response) => {
        let bytes = 0
        response.on('data', (part: Buffer) => {
          bytes += part.length
        })
        response.on('end', () => resolve(`${response.statusCode} ${bytes}`))
      })
      sent.on('error', (error) => resolve(error.message)).end(body)
    })
  const right = { '/': '200 2048', '/large': '200 1048576', '/events': '200 10000' }
  for (const [path, expected] of Object.entries(right)) {
    let answer = ''
    // The program may still be starting.
    for (let tries = 0; tries < 600 && answer !== expected; tries++) {
      answer = await ask('GET', path)
      if (answer !== expected) await sleep(50)
    }
    if (answer !== expected) throw new Error(`${name} answers ${path} with ${answer}`)
  }
  const upload = await ask('POST', '/upload', 'x'.repeat(64 << 10))
  if (upload !== '200 5') throw new Error(`${name} answers an upload with ${upload}`)
}

async function measure(bench: Bench, servers: Peer[], loads: Load[]): Promise<Measured> {
  const [rounds, seconds] = [bench.rounds(5), bench.seconds(3)]
  const measured: Measured = new Map()
  for (const load of loads) {
    const of = new Map(servers.map((server) => [server, [] as Slice[]]))
    measured.set(load, of)
    if (!bench.smoke) for (const { port } of servers) await load.run(port, host, 2)
    for (let round = 0; round < rounds; round++) {
      console.error(`${load.name}, round ${round + 1} of ${rounds} …`)
      // Alternates the order, so that a machine that gets slower or faster favours no side.
      for (const server of round % 2 === 0 ? servers : servers.toReversed()) {
        const beforeMs = await cpuMs(server.pid)
        const startedMs = performance.now()
        const perSecond = await load.run(server.port, host, seconds)
        const requests = (perSecond * (performance.now() - startedMs)) / 1000
        of.get(server)!.push({ perSecond, cpuMicros: (((await cpuMs(server.pid)) - beforeMs) * 1000) / requests })
      }
    }
  }
  return measured
}

const ticksPerSecond = 100

/** The CPU time of a process and its threads since its start. */
async function cpuMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /s, '').split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond
}

function report(bench: Bench, measured: Measured): void {
  const rows = [['', 'unit', 'edge /s', 'Caddy /s', 'direct /s', 'edge / Caddy', 'edge µs', 'Caddy µs']]
  const verdicts: string[] = []
  for (const [load, of] of measured) {
    const slicesOf = (name: string) => [...of].find(([server]) => server.name === name)?.[1] ?? []
    const [edge, caddy, direct] = ['edge', 'Caddy', 'direct'].map(slicesOf) as [Slice[], Slice[], Slice[]]
    const rate = (slices: Slice[]) => {
      return slices.length === 0 ? '–' : (median(slices.map((one) => one.perSecond)) * load.perRequest).toFixed(0)
    }
    const cpu = (slices: Slice[]) => {
      return slices.length === 0 ? '–' : (median(slices.map((one) => one.cpuMicros)) / load.perRequest).toFixed(1)
    }
    const [ours, theirs] = [edge, caddy].map((slices) => slices.map(({ perSecond }) => perSecond))
    const ratio = medianRatio(ours!, theirs!)
    const relation = caddy.length === 0 ? '–' : ratio.toFixed(2)
    if (caddy.length > 0) bench.record(load.name, ratio)
    rows.push([load.name, load.unit, rate(edge), rate(caddy), rate(direct), relation, cpu(edge), cpu(caddy)])
    if (caddy.length > 0)
      verdicts.push(verdict(ratio >= minRatio, `${load.name} at least ${minRatio} of Caddy`, relation))
  }
  console.log(`${table(rows)}\n\nµs: processor time of the proxy alone for each\n\n${verdicts.join('\n')}\n`)
}
