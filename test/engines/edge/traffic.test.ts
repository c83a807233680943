// Every request to a host that somebody has is counted once, with what was sent, whatever answers it.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get, request } from 'node:http'
import type { ClientHttp2Session } from 'node:http2'
import { connect } from 'node:net'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ServerProjects } from '../../../src/engines/edge/hosts/server-projects.ts'
import { createEntry, type Host } from '../../../src/engines/edge/hosts/targets.ts'
import { countResponse, createTraffic } from '../../../src/engines/edge/hosts/traffic.ts'
import { createEdge } from '../../../src/engines/edge/serve/server.ts'
import { edgeAt } from '../../../src/schemas/traffic-columns.ts'
import { until } from '../../helpers/until.ts'
import { ask, type HttpsWorld, startHttpsWorld } from './https-world.ts'

const servers: ServerProjects = {
  ready: async () => {},
  retire: async () => {},
  halt: async () => {},
  close: async () => {},
  proxy(request, response) {
    if (request.url === '/never') return
    response.writeHead({ '/broken': 503, '/odd': 999 }[request.url!] ?? 200)
    if (request.url === '/stream') response.write('abcdefghi')
    else response.end(request.method === 'HEAD' ? undefined : 'hello')
  },
  upgrade(_request, socket, _head, { answered }) {
    answered?.(101)
    socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
    // Its end is found only by reading.
    socket.resume().on('end', () => socket.end())
  },
}

const large = randomBytes(24_000_000)
let world: HttpsWorld
let session: ClientHttp2Session
beforeAll(async () => {
  world = await startHttpsWorld({ servers })
  const files = { 'index.html': 'x'.repeat(1_000), '404.html': 'lost', _redirects: '/old / 302' }
  // Larger than what is kept in memory, and than what a connection holds.
  const binaries = { 'medium.bin': large.subarray(0, 300_000), 'large.bin': large }
  await world.site('files', { ...files, ...binaries })
  await world.secure('files', 'files.test', ['files.test', 'www.files.test'])
  await world.newProject('live')
  await world.deploy('live', {}, { kind: 'node', production: true })
  await until(() => world.edge.snapshot!.find('live.localhost')?.target)
  session = await world.session('files.test')
})
afterAll(() => world.stop())
beforeEach(async () => {
  await world.edge.flushTraffic()
  await world.db.traffic.deleteMany()
})

type Row = { requests: number; bytes: number; status: number[]; timed: number }

/** What was counted, by host, once there are as many requests as were made. */
function counted(requests: number): Promise<Record<string, Row>> {
  return until(async () => {
    await world.edge.flushTraffic()
    const rows = await world.db.traffic.findMany({ where: { step: 'minute' } })
    const hosts: Record<string, Row> = {}
    for (const row of rows) {
      const status = [row.s1, row.s2, row.s3, row.s4, row.s5].map(Number)
      const durations = Object.entries(row).flatMap(([name, value]) => (/^d\d/.test(name) ? [Number(value)] : []))
      const sum = hosts[row.host] ?? { requests: 0, bytes: 0, status: [0, 0, 0, 0, 0], timed: 0 }
      hosts[row.host] = {
        requests: sum.requests + status.reduce((all, count) => all + count, 0),
        bytes: sum.bytes + Number(row.bytes),
        status: sum.status.map((count, index) => count + status[index]!),
        timed: sum.timed + durations.reduce((all, count) => all + count, 0),
      }
    }
    const all = Object.values(hosts).reduce((sum, one) => sum + one.requests, 0)
    return all >= requests && hosts
  })
}

type Kind = { path: string; method?: string; headers?: Record<string, string>; status: number }

const kinds: Kind[] = [
  { path: '/', status: 200 },
  { path: '/?query', status: 200 },
  { path: '/', method: 'HEAD', status: 200 },
  { path: '/medium.bin', headers: { range: 'bytes=0-99' }, status: 206 },
  { path: '/medium.bin', headers: { range: 'bytes=99999999-' }, status: 416 },
  { path: '/medium.bin', status: 200 },
  { path: '/missing', status: 404 },
  { path: '/%zz', status: 400 },
  { path: '/old', status: 302 },
  { path: '/', method: 'POST', status: 405 },
]

test('over HTTP/1.1: files, conditions, ranges, HEAD, redirects and refusals', async () => {
  let bytes = 0
  for (const { path, method, headers, status } of kinds) {
    const answer = await world.get('files.localhost', path, headers, method)
    expect(answer.status).toBe(status)
    bytes += answer.body.length
  }
  const { headers } = await world.get('files.localhost', '/')
  bytes += 1_000
  expect((await world.get('files.localhost', '/', { 'if-none-match': headers.etag! })).status).toBe(304)
  const { 'files.localhost': row, ...others } = await counted(12)
  expect(row).toEqual({ requests: 12, bytes, status: [0, 6, 2, 4, 0], timed: 12 })
  expect(others).toEqual({})
})

test('over HTTPS, HTTP/1.1 and HTTP/2 alike, also at www of the domain and on the way to HTTPS', async () => {
  const { etag } = (await world.get('files.localhost', '/')).headers
  await counted(1)
  await world.db.traffic.deleteMany()
  const current: Kind = { path: '/', headers: { 'if-none-match': etag! }, status: 304 }
  let bytes = 0
  for (const { path, method = 'GET', headers = {}, status } of [...kinds, current]) {
    const answer = await world.fetch('files.test', path, { method, headers })
    expect(answer.status).toBe(status)
    const second = await ask(session, { ':path': path, ':method': method, ...headers })
    expect(second.status).toBe(status)
    bytes += answer.body.length + second.body.length
  }
  await world.fetch('www.files.test', '/', {})
  expect((await world.get('files.test', '/')).status).toBe(308)
  const rows = await counted(24)
  expect(rows).toEqual({ 'files.test': { requests: 24, bytes: bytes + 1_000, status: [0, 11, 5, 8, 0], timed: 24 } })
})

test('an answer of a server with a status that nobody has defined is counted as a failure', async () => {
  expect((await world.get('live.localhost', '/odd')).status).toBe(999)
  const { 'live.localhost': row } = await counted(1)
  expect(row).toEqual({ requests: 1, bytes: 5, status: [0, 0, 0, 0, 1], timed: 1 })
})

test('a download that is broken off counts what was sent until then', async () => {
  await new Promise<void>((resolve) => {
    const sent = get({ port: world.port, path: '/large.bin', headers: { host: 'files.localhost' } }, (response) => {
      response.once('data', () => {
        sent.destroy()
        resolve()
      })
    })
    sent.on('error', () => {})
  })
  const { 'files.localhost': row } = await counted(1)
  expect(row).toMatchObject({ requests: 1, status: [0, 1, 0, 0, 0] })
  expect(row!.bytes).toBeGreaterThan(0)
  expect(row!.bytes).toBeLessThan(large.length)
})

describe('of a server project', () => {
  test('its answers are counted, their bodies, and visitors who leave', async () => {
    for (const method of ['GET', 'POST', 'HEAD']) await world.get('live.localhost', '/', {}, method)
    expect((await world.get('live.localhost', '/broken')).status).toBe(503)
    const leave = (path: string, event: string) =>
      new Promise<void>((resolve) => {
        const sent = request({ port: world.port, path, headers: { host: 'live.localhost' } })
        sent.on('error', () => {}).on('close', () => resolve())
        sent.on(event, (response) => {
          if (event === 'response') response.once('data', () => sent.destroy())
          else sent.destroy()
        })
        sent.end()
      })
    await leave('/stream', 'response')
    await leave('/never', 'finish')
    const { 'live.localhost': row } = await counted(6)
    expect(row).toEqual({ requests: 6, bytes: 15 + 9, status: [0, 4, 0, 1, 1], timed: 6 })
  })

  test('a WebSocket is a request of its own class and has no response time; where there is none, it is a 404', async () => {
    for (const host of ['live.localhost', 'files.localhost']) {
      const socket = connect(world.port, '127.0.0.1')
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
      await once(socket, 'data')
      socket.end()
      // Also a connection that was refused is closed, not only ended.
      await once(socket.resume(), 'close')
    }
    const rows = await counted(2)
    expect(rows['live.localhost']).toMatchObject({ status: [1, 0, 0, 0, 0], timed: 0 })
    expect(rows['files.localhost']).toMatchObject({ status: [0, 0, 0, 1, 0] })
    await until(async () => (await counted(2))['live.localhost']!.bytes === 36)
  })
})

test('what nobody has is counted for nobody', async () => {
  await world.get('unknown.test', '/')
  await world.get('10.1.2.3', '/')
  await world.get('files.localhost', '/')
  expect(Object.keys(await counted(1))).toEqual(['files.localhost'])
  expect(await world.db.traffic.count({ where: { step: 'minute' } })).toBe(1)
})

test('a second edge adds to the first, and what it counted is written when it closes', async () => {
  const { config, db, notifications, artifacts } = world
  const other = createEdge({ config, db, notifications, artifacts, log: pino({ level: 'silent' }) })
  const { port } = await other.listen()
  await world.get('files.localhost', '/')
  await new Promise((resolve) =>
    get({ port, path: '/', headers: { host: 'files.localhost' } }, (answer) => resolve(answer.resume())),
  )
  await other.close()
  expect((await counted(2))['files.localhost']).toMatchObject({ requests: 2, bytes: 2_000 })
})

describe('however many hosts a project has', () => {
  const host: Host = { projectId: 'prj_1', target: null, hsts: false, barred: false, gate: null, pins: null }
  const hosts = (kind: 'production' | 'deployment') =>
    Array.from({ length: 10_000 }, (_, index) => createEntry(`${kind}-${index}.test`, host, kind))
  const visit = (traffic: ReturnType<typeof createTraffic>, places: ReturnType<typeof hosts>) => {
    for (const place of places) countResponse(traffic.of(place), 200, 1, 1)
  }

  test('some have counters of their own, and all others share one', () => {
    const traffic = createTraffic()
    const [deployments, production] = [hosts('deployment'), hosts('production')]
    visit(traffic, deployments)
    visit(traffic, production)
    visit(traffic, production)
    const taken = traffic.take()
    expect(taken).toHaveLength(50 + 20 + 1)
    expect(taken.reduce((sum, { counts }) => sum + counts[edgeAt.bytes]!, 0)).toBe(30_000)
    expect(taken.find(({ host }) => host === '')!.counts[edgeAt.bytes]).toBe(30_000 - 50 * 2 - 20)
    expect(traffic.take()).toEqual([])
  })

  test('they are given out anew each hour, and nothing is lost at its end', () => {
    let nowMs = 0
    const traffic = createTraffic(() => nowMs)
    const places = hosts('production')
    visit(traffic, places.slice(0, 60))
    const late = traffic.of(places[0]!)
    traffic.take()
    visit(traffic, places.slice(55))
    expect(traffic.take().map(({ host }) => host)).toEqual([''])
    nowMs = 3_600_000
    traffic.take()
    visit(traffic, places.slice(55, 57))
    countResponse(late, 200, 1, 1)
    expect(traffic.take().map(({ host }) => host)).toEqual([
      'production-55.test',
      'production-56.test',
      'production-0.test',
    ])
  })

  test('a name that is taken down counts for nobody', () => {
    const traffic = createTraffic()
    visit(traffic, [createEntry('', { ...host, projectId: '' }, 'production')])
    expect(traffic.take()).toEqual([])
  })
})
