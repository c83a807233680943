// Worker processes of one server: they share its ports, are replaced without a failed request, and are started again.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createAccount } from '../../src/services/accounts/accounts.ts'
import { drainNodes, listAllNodes } from '../../src/services/nodes/nodes.ts'
import { type HttpsWorld, startHttpsWorld } from '../engines/edge/https-world.ts'
import { type Program, startProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'
import { keptHttp, keptHttp2, startVisitors } from '../helpers/visitors.ts'

vi.setConfig({ testTimeout: 180_000 })

let world: HttpsWorld
let program: Program
let token: string

const environment = () => ({
  DATABASE_URL: world.databaseUrl,
  DATA_DIR: world.config.dataDir,
  SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
  RATE_LIMIT_PER_MINUTE: '1000000',
  WORKERS: '2',
  DRAIN_SECONDS: '1',
})

beforeAll(async () => {
  world = await startHttpsWorld()
  await world.site('shop', { 'index.html': 'open' })
  await world.secure('shop', 'shop.test')
  token = (await createAccount(world.db, 'client')).token
  program = await startProgram('api,edge', environment())
  await program.ready()
})
afterAll(async () => {
  if (program && program.child.exitCode === null) await program.stop('SIGKILL')
  await world.stop()
})

/** The worker processes of the server. */
function workers(): number[] {
  const pid = program.child.pid!
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

async function metric(line: RegExp): Promise<number> {
  return Number(line.exec(await program.metrics())?.[1])
}
const countOf = (route: string) =>
  metric(new RegExp(`berth_http_request_duration_seconds_count\\{method="GET",route="${route}",status="200"\\} (\\d+)`))
const answered = () => countOf('/api/regions')
const ready = () => metric(/berth_workers\{state="ready"\} (\d+)/)

async function ask(): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  return (await fetch(`http://127.0.0.1:${program.ports.PORT}/api/regions`, { headers })).status
}

/** A handshake with a session of before, if one is given; resolves with whether it was resumed, and a new session. */
function handshake(session?: Buffer): Promise<{ resumed: boolean; session: Buffer }> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: '127.0.0.1',
      port: program.ports.EDGE_HTTPS_PORT,
      servername: 'shop.test',
      ca: world.authority.rootPem,
      ...(session && { session }),
    })
    let fresh = session
    socket.on('session', (sent) => {
      fresh = sent
    })
    // Tickets come before the first answer.
    socket.once('data', () => {
      resolve({ resumed: socket.isSessionReused(), session: fresh! })
      socket.destroy()
    })
    socket.once('error', reject)
    socket.write('GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n')
  })
}

test('one port of metrics tells the sums and the readiness of all', async () => {
  expect(workers()).toHaveLength(2)
  const before = (await answered()) || 0
  for (let n = 0; n < 10; n++) expect(await ask()).toBe(200)
  await until(async () => (await answered()) === before + 10)
  expect(await ready()).toBe(2)
  expect(await metric(/berth_build_info\{[^}]*roles="api,edge"\} (\d+)/)).toBe(1)
  expect(await metric(/berth_edge_hosts (\d+)/)).toBe(await world.edge.snapshot!.size)
  expect(await program.readiness()).toMatchObject({
    code: 200,
    status: 'ok',
    checks: { workers: 'ok', database: 'ok', api: 'ok', edge: 'ok' },
  })
})

test('a TLS session is resumed by whichever worker gets the connection', async () => {
  let { session } = await handshake()
  for (let n = 0; n < 6; n++) {
    const again = await handshake(session)
    expect(again.resumed).toBe(true)
    session = again.session
  }
})

test('a worker that dies is started again, and what it counted stays', async () => {
  const before = await answered()
  const [victim, other] = workers()
  process.kill(victim!, 'SIGKILL')
  await until(async () => !workers().includes(victim!))
  // The other one serves meanwhile.
  expect(await ask()).toBe(200)
  await until(async () => workers().length === 2 && (await ready()) === 2, 90_000)
  expect(workers()).toContain(other)
  expect(await metric(/berth_worker_deaths_total (\d+)/)).toBe(1)
  expect(await answered()).toBe(before + 1)
  expect(program.output()).toContain('exited unexpectedly')
})

test('SIGHUP replaces all of them one by one, and no request fails', async () => {
  const before = workers()
  const { session } = await handshake()
  const { PORT, EDGE_HTTP_PORT, EDGE_HTTPS_PORT } = program.ports
  const ca = world.authority.rootPem
  const visitors = startVisitors({
    read: {
      status: 200,
      ask: keptHttp(PORT, { path: '/api/projects', headers: { authorization: `Bearer ${token}` } }),
    },
    health: { status: 200, ask: keptHttp(PORT, { path: '/readyz', headers: {} }) },
    metrics: { status: 200, ask: keptHttp(program.ports.METRICS_PORT, { path: '/readyz', headers: {} }) },
    page: { status: 200, ask: keptHttp(EDGE_HTTP_PORT, { path: '/', headers: { host: 'shop.localhost' } }) },
    https: { status: 200, ask: keptHttp(EDGE_HTTPS_PORT, { path: '/', headers: { host: 'shop.test' } }, ca) },
    http2: { status: 200, ask: keptHttp2(EDGE_HTTPS_PORT, 'shop.test', ca) },
  })
  program.child.kill('SIGHUP')
  await until(() => workers().length === 2 && workers().every((pid) => !before.includes(pid)), 120_000)
  await visitors.stop()
  expect(visitors.failures).toEqual([])
  for (const [kind, count] of Object.entries(visitors.answered)) expect([kind, count > 10]).toEqual([kind, true])
  expect((await handshake(session)).resumed).toBe(true)
  // What those that left had counted is still there.
  await until(async () => (await countOf('/api/projects')) === visitors.answered.read)
})

test('is one node, whose drain reaches all of them and ends again', async () => {
  const [node, ...others] = await listAllNodes(world.db)
  expect(others).toEqual([])
  const allSay = async (status: number) => {
    const asked = Array.from({ length: 4 }, () => fetch(`http://127.0.0.1:${program.ports.PORT}/readyz`))
    return (await Promise.all(asked)).every((answer) => answer.status === status)
  }
  for (const [draining, status] of [
    [true, 503],
    [false, 200],
  ] as const) {
    await drainNodes(world.db, node!.id, draining)
    await until(() => allSay(status))
    await until(async () => (await program.readiness())?.code === status)
  }
})

test('SIGTERM drains all of them and leaves none behind', async () => {
  const pids = workers()
  const stopped = program.stop()
  await until(async () => (await program.readiness())?.code === 503)
  expect(await ask()).toBe(200)
  expect(await stopped).toBe(0)
  const left = execFileSync('ps', ['-o', 'pid=', '-p', `${pids.join(',')},1`], { encoding: 'utf8' })
  expect(left.trim().split(/\s+/)).toEqual(['1'])
})

test('a server whose port is taken says so once and ends', async () => {
  const taken = createServer().listen(program.ports.PORT, '127.0.0.1')
  const failed = await startProgram('api,edge', environment(), program.ports)
  await until(() => failed.child.exitCode !== null, 90_000)
  taken.close()
  expect(failed.child.exitCode).toBe(1)
  expect(failed.output().match(/is in use/g)).toHaveLength(1)
})
