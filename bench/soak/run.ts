// `npm run soak -- --minutes N`: one node with all roles under mixed load; its memory by kind, minute by minute.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Child, freePort, startChild, withoutLimits } from '../children.ts'
import { table, verdict } from '../figures.ts'
import type { World } from './lanes.ts'
import type { Tally } from './load.ts'
import { descendants, mb, nativeBytes, probe, proportionalBytes, slope } from './memory.ts'
import { makeSite } from './site.ts'

const maxSlopeMb = 1
// A shorter fit shows the garbage collector rather than growth.
const minMinutes = 30
const sampleMs = 5_000
const checkout = resolve(import.meta.dirname, '../..')

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    /** Minutes left out of the fit, while caches fill and the heap finds its size. */
    warmup: { type: 'string' },
    /** Prefixes of lane names, comma-separated: "dns", "page", "api". */
    only: { type: 'string', default: '' },
    /** A multiple of the usual load. */
    scale: { type: 'string', default: '1' },
    'keep-logs': { type: 'string' },
  },
})
const minutes = Number(values.minutes)
const warmupMinutes = values.warmup === undefined ? Math.min(10, minutes / 3) : Number(values.warmup)

const directory = await mkdtemp(join(tmpdir(), 'berth-soak-'))
// As root, PostgreSQL and builds run as other users and need access.
await chmod(directory, 0o711)
const closers: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
const stopping = new AbortController()
process.once('SIGINT', () => stopping.abort())

try {
  const { server, world, probePath } = await startNode()
  const load = await startChild(join(import.meta.dirname, 'load.ts'), {})
  closers.push(() => load.stop())
  const only = values.only.split(',').filter((name) => name !== '')
  await load.ask({ begin: { ...world, only, scale: Number(values.scale) } })
  const failures = await watch(server, probePath, load)
  const { firstFailures } = await load.ask<Tally>('stop')
  for (const failure of firstFailures) console.log(`failed: ${failure}`)
  process.exitCode = failures ? 1 : 0
} finally {
  for (const close of closers.reverse()) await close()
}

type Started = { server: ChildProcess; world: World; probePath: string }

/** The platform as `npm start` runs it, with a site, a domain, a large zone and a webhook. */
async function startNode(): Promise<Started> {
  const [apiPort, edgePort, httpsPort] = [await freePort(), await freePort(), await freePort()]
  const [dnsPort, otherDnsPort] = [await freePort(), await freePort()]
  const dataDir = join(directory, 'data')
  const probePath = join(directory, 'probe')
  const logFile = values['keep-logs'] ?? join(directory, 'server.log')
  const log = openSync(logFile, 'a')
  const nodeArgs = (process.env.SOAK_NODE_ARGS ?? '').split(' ').filter((arg) => arg !== '')
  const program = [...nodeArgs, '--import', join(import.meta.dirname, 'probe.ts'), join(checkout, 'dist/src/cli.js')]
  const server = spawn(process.execPath, [...program, 'serve'], {
    cwd: directory,
    env: {
      ...process.env,
      ...withoutLimits,
      SOAK_PROBE: probePath,
      DATA_DIR: dataDir,
      PORT: String(apiPort),
      EDGE_HTTP_PORT: String(edgePort),
      EDGE_HTTPS_PORT: String(httpsPort),
      NAMESERVER_LISTEN: `127.0.0.1:${dnsPort},127.0.0.1:${otherDnsPort}`,
      METRICS_PORT: '0',
      WEBHOOK_ALLOW_PRIVATE: 'true',
      RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: '1000000000',
      MAX_IN_FLIGHT_PER_ACCOUNT: '1000',
    },
    stdio: ['ignore', log, log],
  })
  const exited = once(server, 'exit')
  closers.push(async () => {
    server.kill('SIGTERM')
    await exited
  })
  const keyFile = join(dataDir, 'test-key')
  await until('the platform to start', async () => {
    if (server.exitCode !== null) throw new Error(`the platform ended:\n${await readFile(logFile, 'utf8')}`)
    return (
      existsSync(keyFile) &&
      (await fetch(`http://127.0.0.1:${apiPort}/readyz`).then(
        (r) => r.ok,
        () => false,
      ))
    )
  })
  const token = (await readFile(keyFile, 'utf8')).trim()
  const world = await furnish({ apiPort, edgePort, httpsPort, dnsPort, token }, dataDir)
  return { server, world, probePath }
}

type Ports = Pick<World, 'apiPort' | 'edgePort' | 'httpsPort' | 'dnsPort' | 'token'>

async function furnish(ports: Ports, dataDir: string): Promise<World> {
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${ports.apiPort}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${ports.token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  const project = 'soak'
  const bare = join(dataDir, 'repos/soak/site.git')
  const paths = await makeSite(bare)
  await call('POST', '/projects', { name: project, framework: 'static', repo: 'soak/site' })
  const { id } = await call<{ id: string }>('POST', '/deployments', { project, production: true })
  let url = ''
  await until('the site to be deployed', async () => {
    const made = await call<{ state: string; url: string }>('GET', `/deployments/${id}?wait=10`)
    url = made.url
    return made.state === 'READY'
  })
  for (const name of ['soak.test', 'large.test']) await call('POST', '/domains', { project, name })
  await until(
    'the certificate',
    async () => (await call<{ ssl: string }>('GET', '/domains/soak.test?wait=10')).ssl === 'ACTIVE',
  )
  const receiver = createServer((request, response) => request.resume().on('end', () => response.writeHead(204).end()))
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  closers.push(async () => receiver.close().closeAllConnections())
  const { port } = receiver.address() as AddressInfo
  await call('POST', '/webhooks', { url: `http://127.0.0.1:${port}/`, events: ['*'] })
  return { ...ports, domain: 'soak.test', host: new URL(url).host, project, bare, paths }
}

/** Prints a line each minute and the slope at the end; returns whether anything failed. */
async function watch(server: ChildProcess, probePath: string, load: Child): Promise<boolean> {
  const heads = ['minute', 'RSS', 'heap used', 'heap total', 'external', 'buffers', 'native', 'PostgreSQL']
  const widths = [...heads, 'handles', 'files', 'delay p99', 'CPU', 'requests', 'failed']
  console.log(widths.map((head) => head.padStart(Math.max(9, head.length))).join(' '))
  const samples: { x: number; y: number }[] = []
  const startMs = performance.now()
  const passedMinutes = () => (performance.now() - startMs) / 60_000
  let reported = 0
  let cpuMs = (await probe(probePath)).cpuMs
  let cpuAtMs = startMs
  let tally: Tally = { requests: {}, failures: 0, late: 0, firstFailures: [] }
  while (passedMinutes() < minutes && !stopping.signal.aborted) {
    await sleep(sampleMs, undefined, { signal: stopping.signal }).catch(() => {})
    if (server.exitCode !== null || server.signalCode !== null) throw new Error('the platform ended during the soak')
    const { rss } = (await rssOf(server.pid!))!
    samples.push({ x: passedMinutes(), y: mb(rss) })
    if (passedMinutes() < reported + 1) continue
    reported++
    const probed = await probe(probePath)
    tally = await load.ask<Tally>('tally')
    const { memory } = probed
    const cpu = ((probed.cpuMs - cpuMs) / (performance.now() - cpuAtMs)) * 100
    cpuMs = probed.cpuMs
    cpuAtMs = performance.now()
    const postgres = descendants(server.pid!).filter(({ name }) => name === 'postgres')
    const requests = Object.values(tally.requests).reduce((sum, count) => sum + count, 0)
    const cells = [
      String(reported),
      ...[memory.rss, memory.heapUsed, memory.heapTotal, memory.external, memory.arrayBuffers].map((one) =>
        mb(one).toFixed(0),
      ),
      mb(nativeBytes(memory)).toFixed(0),
      mb(proportionalBytes(postgres.map(({ pid }) => pid))).toFixed(0),
      String(probed.handles),
      String(probed.descriptors),
      `${probed.delayP99Ms.toFixed(0)} ms`,
      `${cpu.toFixed(0)} %`,
      String(requests),
      String(tally.failures),
    ]
    console.log(cells.map((cell, at) => cell.padStart(Math.max(9, widths[at]!.length))).join(' '))
  }
  const counts = Object.entries(tally.requests).map(([name, count]) => [name, String(count)])
  console.log(`\n${table([['lane', 'requests'], ...counts])}\n`)
  const fitted = samples.filter(({ x }) => x >= warmupMinutes)
  const perMinute = slope(fitted)
  const [loadNow] = loadavg()
  console.log(
    `RSS ${fitted.at(0)?.y.toFixed(0)} MB after ${warmupMinutes.toFixed(0)} minutes, ${fitted.at(-1)?.y.toFixed(0)} MB at the end; late ${tally.late}; load average ${loadNow!.toFixed(1)} on ${availableParallelism()} processors`,
  )
  const judged = passedMinutes() >= minMinutes
  const bound = `RSS grows by at most ${maxSlopeMb} MB a minute after warm-up${judged ? '' : ` (not judged below ${minMinutes} minutes)`}`
  console.log(verdict(perMinute <= maxSlopeMb, bound, `${perMinute.toFixed(2)} MB a minute`))
  console.log(verdict(tally.failures === 0, 'no request fails', `${tally.failures} failed`))
  return tally.failures > 0 || (judged && perMinute > maxSlopeMb)
}

async function rssOf(pid: number): Promise<{ rss: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return { rss: Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]) * 1024 }
}

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 120_000
  while (!(await look())) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`)
    await sleep(100)
  }
}
