import { randomBytes } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { type ClientHttp2Session, constants } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createServers, type Servers } from '../../../src/engines/servers/run/servers.ts'
import { createArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { createSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import { changeProject } from '../../../src/services/projects/projects.ts'
import { closed } from '../../helpers/closed.ts'
import { until } from '../../helpers/until.ts'
import { directly } from '../servers/direct.ts'
import { frame, openRaw, postHead } from './frames.ts'
import { ask, type HttpsWorld, startHttpsWorld } from './https-world.ts'

const large = randomBytes(3_000_000)
const faults: unknown[] = []
let world: HttpsWorld
let files: ClientHttp2Session
let server: ClientHttp2Session
let sandbox: Sandbox
let servers: Servers
let projects: ReturnType<typeof directly>
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-http2-'))
  const log = pino({ level: 'warn' }, { write: (line: string) => void faults.push(JSON.parse(line)) })
  sandbox = await createSandbox('none', { searchPath: process.env.PATH ?? '' })
  const artifacts = createArtifacts(directory)
  servers = createServers({
    sandbox,
    artifacts,
    start: { command: 'exec node server.mjs' },
    settingsOf: async () => ({ environment: { VERSION: 'http2' }, network: 'none' }),
    writeLog: async () => {},
  })
  // The edge reads what is deployed from where the servers have it.
  projects = directly(servers)
  world = await startHttpsWorld({ servers: projects, artifacts, log })
  await world.site('files', {
    'index.html': `<h1>hello</h1>${'<p>text</p>'.repeat(500)}`,
    'large.bin': large,
    '404.html': 'lost',
    _redirects: '/old /index.html 302',
    'odd.txt': 'odd',
    _headers: '/odd.txt\n  HTTP2-Settings: AAMAAABk\n  Age: 1\n  Age: 2\n',
  })
  await world.secure('files', 'files.test', ['files.test', 'www.files.test'])
  files = await world.session('files.test')

  await world.newProject('server')
  const { id } = await world.deploy('server', {}, { kind: 'node', production: true, ready: false })
  const tree = artifacts.serverDirectory(id)
  await mkdir(tree, { recursive: true })
  await copyFile(join(import.meta.dirname, '../servers/project.mjs'), join(tree, 'server.mjs'))
  await world.ready(id)
  await world.secure('server', 'server.test')
  server = await world.session('server.test')
  await until(async () => (await ask(server, { ':path': '/' })).status === 200)
})
afterAll(async () => {
  await world.stop()
  await sandbox.close()
  await rm(directory, { recursive: true, force: true })
})

const get = (path: string, headers = {}) => ask(files, { ':path': path, ...headers })

describe('over HTTP/2', () => {
  test('files come with the same headers as over HTTP/1.1, compressed, conditional, in parts and from disk', async () => {
    expect(files.alpnProtocol).toBe('h2')
    const page = await get('/', { 'accept-encoding': 'br' })
    const same = await world.fetch('files.test', '/', { headers: { 'accept-encoding': 'br' } })
    expect(page.status).toBe(200)
    expect(page.body.equals(same.body)).toBe(true)
    for (const name of ['etag', 'content-type', 'content-encoding', 'cache-control', 'vary', 'content-length']) {
      expect([name, page.headers[name]]).toEqual([name, same.headers[name]])
    }
    expect(page.headers).not.toHaveProperty('connection')
    expect(await get('/', { 'if-none-match': page.headers.etag, 'accept-encoding': 'br' })).toMatchObject({
      status: 304,
      text: '',
    })
    const head = await get('/', { ':method': 'HEAD' })
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(Number(head.headers['content-length'])).toBeGreaterThan(5_000)
    expect((await get('/large.bin')).body.equals(large)).toBe(true)
    const part = await get('/large.bin', { range: 'bytes=1000000-1000009' })
    expect(part).toMatchObject({ status: 206, body: large.subarray(1_000_000, 1_000_010) })
    expect(await get('/nope')).toMatchObject({ status: 404, text: 'lost' })
    expect(await get('/old')).toMatchObject({ status: 302, headers: { location: '/index.html' } })
    expect(await ask(files, { ':path': '/', ':method': 'POST' }, 'body')).toMatchObject({ status: 405 })
  })

  test('whatever headers a site asks for, its files come and the connection goes on', async () => {
    for (const method of ['GET', 'HEAD']) {
      const odd = await get('/odd.txt', { ':method': method })
      expect(odd).toMatchObject({ status: 200, headers: { age: '1, 2' } })
      expect(odd.headers).not.toHaveProperty('http2-settings')
    }
    expect(await get('/')).toMatchObject({ status: 200 })
  })

  test('many requests are answered on one connection at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, i) => get(i % 20 === 0 ? '/large.bin' : '/')))
    expect(answers.map(({ status }) => status)).toEqual(Array(60).fill(200))
  })

  test('a connection may be used for every host its certificate covers, and no other: 421', async () => {
    expect(await get('/', { ':authority': 'www.files.test' })).toMatchObject({ status: 200 })
    expect(await get('/', { ':authority': 'files.test:8443' })).toMatchObject({ status: 200 })
    expect(await get('/', { ':authority': 'server.test' })).toMatchObject({ status: 421 })
    expect(await get('/', { ':authority': 'files.test', host: 'server.test' })).toMatchObject({ status: 400 })
  })

  test('a visitor who leaves in the middle of a file is nobody’s fault', async () => {
    for (const code of [constants.NGHTTP2_CANCEL, constants.NGHTTP2_INTERNAL_ERROR]) {
      const stream = files.request({ ':path': '/large.bin' })
      const end = closed(stream)
      await once(stream, 'data')
      stream.close(code)
      await end
    }
    const gone = await world.session('files.test')
    const stream = gone.request({ ':path': '/large.bin' })
    stream.on('error', () => {})
    await once(stream, 'data')
    gone.destroy()
    expect(await get('/')).toMatchObject({ status: 200 })
    expect(faults).toEqual([])
  })

  test('a client that talks nonsense ends its own connection and no other', async () => {
    const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])
    // HEADERS that never end, DATA for no stream, a window that overflows, and noise.
    const endless = Buffer.from([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82])
    const orphan = Buffer.from([0, 0, 1, 0, 1, 0, 0, 0, 7, 0])
    const overflow = Buffer.from([0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff])
    const noise = [0, 0, 0, 0].map(() => randomBytes(200))
    for (const bytes of [
      randomBytes(64),
      ...[endless, orphan, overflow, ...noise].map((x) => Buffer.concat([preface, settings, x])),
    ]) {
      const socket = await world.handshake('files.test', { ca: world.authority.rootPem, ALPNProtocols: ['h2'] })
      const end = closed(socket.resume())
      socket.end(bytes)
      await end
    }
    expect(await get('/')).toMatchObject({ status: 200 })
    expect(faults).toEqual([])
  })

  test('the wish to stay with HTTPS is told too', async () => {
    const settings = { hsts: true }
    await changeProject(world.db, world.urls, world.actor, {
      key: 'files',
      input: { settings },
      precondition: () => {},
    })
    await until(async () => (await get('/')).headers['strict-transport-security'] === 'max-age=31536000')
    expect((await get('/nope')).headers['strict-transport-security']).toBe('max-age=31536000')
  })
})

describe('a server behind HTTP/2', () => {
  test('sees a request of HTTP/1.1: one host, one cookie header, where it came from, and nothing of the protocol', async () => {
    const answer = await ask(server, {
      ':path': '/headers?a=1',
      cookie: ['a=1', 'b=2'],
      'x-forwarded-proto': 'http',
      te: 'trailers',
    })
    expect(answer.status).toBe(201)
    expect(answer.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expect(answer.headers).toMatchObject({ 'x-public': 'yes' })
    for (const name of ['connection', 'x-private', 'keep-alive', 'transfer-encoding']) {
      expect(answer.headers).not.toHaveProperty(name)
    }
    const { raw, url } = JSON.parse(answer.text) as { raw: string[]; url: string }
    expect(url).toBe('/headers?a=1')
    const seen: Record<string, string[]> = {}
    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i]!.toLowerCase()
      seen[name] = [...(seen[name] ?? []), raw[i + 1]!]
    }
    const host = `server.test:${world.httpsPort}`
    expect(seen).toEqual({
      host: [host],
      cookie: ['a=1; b=2'],
      'x-forwarded-for': ['127.0.0.1'],
      'x-forwarded-host': [host],
      'x-forwarded-proto': ['https'],
      connection: ['keep-alive'],
    })
  })

  test('gets bodies of known and unknown length, and streams its answers', async () => {
    const body = randomBytes(512 << 10)
    const post = { ':path': '/echo', ':method': 'POST' }
    expect((await ask(server, post, body)).body.equals(body)).toBe(true)
    expect((await ask(server, { ...post, 'content-length': body.length }, body)).body.equals(body)).toBe(true)
    expect((await ask(server, { ':path': '/headers', ':method': 'POST' })).text).toContain('Transfer-Encoding')
    expect((await ask(server, { ':path': '/large?chunks=100' })).body.length).toBe(100 * 64 * 1024)
    expect(await ask(server, { ':path': '/', ':method': 'HEAD' })).toMatchObject({ status: 200, text: '' })
    expect(await ask(server, { ':path': '/early', ':method': 'POST' }, body)).toMatchObject({ status: 413 })
    const events = server.request({ ':path': '/events' })
    const [headers] = await once(events, 'response')
    expect(headers[':status']).toBe(200)
    events.close()
  })

  test('gets no requests that were reset before their turn', async () => {
    const proxied = vi.spyOn(projects, 'proxy')
    const reset = Buffer.alloc(4, 0)
    const { socket, goaways } = await openRaw(
      world,
      Array.from({ length: 500 }, (_, n) => [frame(1, 5, 2 * n + 1, postHead), frame(3, 0, 2 * n + 1, reset)]).flat(),
    )
    socket.write(frame(6, 0, 0, Buffer.alloc(8)))
    socket.end()
    await closed(socket)
    expect(goaways()).toEqual([])
    expect(proxied.mock.calls.length).toBeLessThan(100)
    proxied.mockRestore()
    const answers = await Promise.all(Array.from({ length: 120 }, () => ask(server, { ':path': '/' })))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
  })

  test('gets no flood of requests that are reset: the session ends after 512, and what came with them', async () => {
    let streams = 0
    const count = () => void streams++
    subscribe('http2.server.stream.created', count)
    const reset = Buffer.alloc(4, 0)
    // A header of 100 octets, so that a record of TLS has no more than 120 of these requests.
    const head = Buffer.concat([postHead, Buffer.from([0, 1, 0x78, 100]), Buffer.alloc(100, 0x61)])
    const { socket } = await openRaw(
      world,
      Array.from({ length: 4_000 }, (_, n) => [frame(1, 5, 2 * n + 1, head), frame(3, 0, 2 * n + 1, reset)]).flat(),
    )
    await closed(socket)
    unsubscribe('http2.server.stream.created', count)
    expect(streams).toBeGreaterThanOrEqual(512)
    expect(streams).toBeLessThan(640)
    expect((await ask(server, { ':path': '/' })).status).toBe(200)
  })

  test('gets no flood of tiny frames: the session ends, and the visitor is told to calm down', async () => {
    const tiny = frame(0, 0, 1, Buffer.from('x'))
    const { socket, goaways } = await openRaw(world, [
      frame(1, 4, 1, postHead),
      ...Array.from({ length: 60_000 }, () => tiny),
    ])
    await closed(socket)
    expect(goaways()).toContain(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    expect((await ask(server, { ':path': '/' })).status).toBe(200)
  })

  test('is left when the visitor leaves', async () => {
    const count = async () => Number((await ask(server, { ':path': '/aborted' })).text)
    const before = await count()
    const stream = server.request({ ':path': '/endless' })
    stream.on('error', () => {})
    await once(stream, 'data')
    stream.close(constants.NGHTTP2_CANCEL)
    await until(async () => (await count()) === before + 1)
  })

  test('that dies is a 502', async () => {
    expect(await ask(server, { ':path': '/crash' })).toMatchObject({ status: 502 })
    await until(async () => (await ask(server, { ':path': '/' })).status === 200)
    expect(faults).toEqual([])
  })
})

test('a WebSocket goes over HTTPS, and not to a host that the connection is not for', async () => {
  const upgrade = async (host: string) => {
    const socket = await world.handshake('server.test', { ALPNProtocols: ['http/1.1'] })
    socket.setEncoding('latin1')
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13'
    socket.write(`GET /socket HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n\r\n`)
    const [head] = await once(socket, 'data')
    return { socket, head: String(head) }
  }
  const { socket, head } = await upgrade('server.test')
  expect(head).toContain('HTTP/1.1 101 Switching Protocols')
  expect(head).toContain('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
  // "hi", masked with zeros; it comes back without its mask.
  socket.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
  expect(String((await once(socket, 'data'))[0])).toBe('\x81\x02hi')
  socket.destroy()
  await until(async () => {
    await world.edge.flushTraffic()
    const { _sum } = await world.db.traffic.aggregate({
      where: { step: 'hour', host: 'server.test' },
      _sum: { s1: true },
    })
    return _sum.s1 === 1n
  })
  const wrong = await upgrade('files.test')
  expect(wrong.head).toContain('HTTP/1.1 421 Misdirected Request')
  wrong.socket.destroy()
})
