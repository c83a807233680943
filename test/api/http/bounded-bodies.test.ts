// What is refused is refused before its body was sent, on every route; and no body is read in absurdly small pieces.
import { channel } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'
import { startApi } from '../../helpers/api.ts'

type Route = { method: string; url: string }

const routes: Route[] = []
const underWay = { now: 0, most: 0 }
const note = (message: unknown) => {
  const { fastify } = message as { fastify: FastifyInstance }
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push({ method: one, url: url.replaceAll(/:\w+|\*/g, 'x') })
  })
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.id !== 'counted') return done()
    underWay.most = Math.max(underWay.most, ++underWay.now)
    reply.raw.once('close', () => underWay.now--)
    done()
  })
}
channel('fastify.initialization').subscribe(note)
const perMinute = 1_000
const api = await startApi({ RATE_LIMIT_PER_MINUTE: String(perMinute) })
channel('fastify.initialization').unsubscribe(note)
afterAll(() => api.stop())
const origin = await api.listen()
const port = Number(new URL(origin).port)

// What Node's parser hands over, whatever becomes of it. Node uses its parsers again for other connections.
let parsed = 0
const counted = new WeakSet<object>()
api.app.server.on('connection', ({ parser }: Socket & { parser?: Record<number, (chunk: Buffer) => void> }) => {
  if (!parser || counted.has(parser)) return
  counted.add(parser)
  const onBody = 3
  const original = parser[onBody]!
  parser[onBody] = function (chunk) {
    parsed++
    original.call(this, chunk)
  }
})

type Answer = { status: number; head: string; closed: boolean }

const sockets = new Set<Socket>()
afterAll(() => sockets.forEach((socket) => void socket.destroy()))

/** Sends the head, and no body unless `body` is given; the answer, as soon as its head is there. */
function send(
  { method, url }: Route,
  headers: Record<string, string>,
  body?: Buffer,
  localAddress = nextAddress(),
): Promise<Answer> {
  const all = { host: new URL(api.config.baseUrl).host, origin: new URL(api.config.baseUrl).origin, ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return new Promise((resolve) => {
    // Limits of an address that hold for others would refuse for another reason.
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    sockets.add(socket)
    let text = ''
    const answer = (closed: boolean) =>
      resolve({ status: Number(text.split(' ')[1] ?? 0), head: text.split('\r\n\r\n')[0]!.toLowerCase(), closed })
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (!body && text.includes('\r\n\r\n')) answer(false)
    })
    socket.on('end', () => answer(true))
    socket.on('error', () => answer(false))
    socket.write(`${method} ${url} HTTP/1.1\r\n${lines.join('')}\r\n`)
    if (body) socket.write(body)
  })
}

let addresses = 0
const nextAddress = () => `127.3.${addresses >> 7}.${(addresses++ & 127) + 1}`

const authorized = { authorization: `Bearer ${api.token}` }
const chunked = { 'transfer-encoding': 'chunked' }
const json = { 'content-type': 'application/json' }
const withBody = () => routes.filter(({ method }) => !['GET', 'HEAD', 'OPTIONS', 'TRACE'].includes(method))
const below = (path: string) => withBody().filter(({ url }) => url.startsWith(path))

async function refusals(tried: Route[], headers: Record<string, string>, from?: string): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (let at = 0; at < tried.length; at += 40) {
    const some = tried.slice(at, at + 40)
    const answers = await Promise.all(some.map((route) => send(route, headers, undefined, from)))
    for (const [index, { status }] of answers.entries()) {
      const name = `${some[index]!.method} ${some[index]!.url}`
      found.set(name, status)
    }
  }
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  return found
}

const others = (found: Map<string, number>, statuses: number[]) =>
  [...found].filter(([, status]) => !statuses.includes(status))

describe('before a byte of its body was sent', () => {
  test('every route refuses a bad token', async () => {
    const found = await refusals(below('/api'), { ...json, ...chunked, authorization: 'Bearer none' })
    expect(found.size).toBeGreaterThan(80)
    expect(others(found, [401, 429])).toEqual([])
  })

  test('every route refuses a wrong type', async () => {
    const found = await refusals(below('/'), { ...authorized, 'content-type': 'text/none', 'content-length': '10' })
    // Those that look at no body take any type, and know from the address that this is not for them.
    expect(others(found, [415, 405, 403])).toEqual([
      ['POST /hooks/git/x', 401],
      ['POST /hooks/deploy/x', 404],
      ['POST /mail/unsubscribe', 404],
    ])
  })

  test('every route refuses a size that is too large', async () => {
    const huge = { ...authorized, 'content-length': '1000000000000' }
    const found = new Map([
      ...(await refusals(
        below('/').filter(({ url }) => !['/api/uploads/x', '/api/deployments/archive'].includes(url)),
        { ...huge, ...json },
      )),
      ...(await refusals([{ method: 'PUT', url: '/api/dns/x/zone' }], { ...huge, 'content-type': 'text/dns' })),
      ...(await refusals([{ method: 'POST', url: '/api/uploads' }], { ...huge, 'content-type': 'application/x-tar' })),
    ])
    expect(others(found, [413, 405, 403])).toEqual([
      ['POST /hooks/git/x', 401],
      ['POST /hooks/deploy/x', 404],
      ['POST /mail/unsubscribe', 404],
    ])
  })

  test('every route refuses a token above its limit', async () => {
    const { secret } = (await api.call('POST', '/tokens', { body: { name: 'busy', scopes: ['*'] } })).body
    for (let n = 0; n < perMinute; n++)
      await api.app.inject({ url: '/api/regions', headers: { authorization: `Bearer ${secret}` } })
    const found = await refusals(below('/api'), { ...json, ...chunked, authorization: `Bearer ${secret}` })
    expect(others(found, [429])).toEqual([])
  })

  test('routes without a token refuse an address above its limit', async () => {
    const busy = { ...json, ...chunked, 'sec-fetch-site': 'same-origin' }
    const password = { method: 'POST', url: '/auth/password' }
    const exchange = { method: 'POST', url: '/auth/oidc/token' }
    for (const { method, url } of [password, exchange]) {
      const payload = url.includes('oidc')
        ? { project: 'prj_x', token: 'a.b.c' }
        : { email: 'a@b.example', password: 'no' }
      for (let n = 0; n < 130; n++) {
        await api.app.inject({
          method: method as 'POST',
          url,
          payload,
          headers: { 'sec-fetch-site': 'same-origin' },
          remoteAddress: '127.4.0.1',
        })
      }
    }
    const found = await refusals([password, exchange], busy, '127.4.0.1')
    expect([...found.values()]).toEqual([429, 429])
  })

  test('a client that waits to be told is told only where its body is wanted', async () => {
    const waiting = { ...json, expect: '100-continue', 'content-length': '2' }
    const refused = await send({ method: 'POST', url: '/api/projects' }, { ...waiting, authorization: 'Bearer none' })
    expect(refused.status).toBe(401)
    expect((await send({ method: 'POST', url: '/api/projects' }, { ...waiting, ...authorized })).status).toBe(100)
    expect((await send({ method: 'POST', url: '/hooks/deploy/x' }, waiting)).status).toBe(404)
  })
})

describe('a body of a million bytes in chunks of one byte', () => {
  const body = Buffer.from(`${'1\r\na\r\n'.repeat(1_000_000)}0\r\n\r\n`)
  // What one read of a connection brings is parsed before anybody can say no.
  const perRead = (64 << 10) / '1\r\na\r\n'.length

  test.each([
    ['POST', '/auth/password', {}, 413],
    ['PUT', '/auth/password', {}, 413],
    ['POST', '/auth/oidc/token', {}, 400],
    ['POST', '/auth/device', {}, 413],
    ['POST', '/hooks/deploy/x', {}, 404],
    ['POST', '/hooks/git/prj_none', {}, 401],
    ['POST', '/mail/unsubscribe', {}, 404],
    ['POST', '/none', {}, 404],
    ['GET', '/healthz', {}, 200],
    ['GET', '/api/regions', authorized, 200],
    ['POST', '/api/projects', authorized, 400],
    ['POST', '/api/deployments?project=x', { ...authorized, 'content-type': 'application/x-tar' }, 404],
    ['POST', '/api/deployments/archive?project=x', { ...authorized, 'content-type': 'application/gzip' }, 404],
    ['POST', '/api/deployments', authorized, 400],
    ['POST', '/api/uploads', { ...authorized, 'content-type': 'application/x-tar' }, 400],
    ['PUT', '/api/dns/none.example/zone', { ...authorized, 'content-type': 'text/dns' }, 400],
  ])('by %s %s is given up within two reads, and answered', async (method, url, headers, status) => {
    parsed = 0
    const answer = await send(
      { method, url },
      { ...json, ...chunked, 'sec-fetch-site': 'same-origin', ...headers },
      body,
    )
    expect(answer.status).toBe(status)
    expect(answer.head).toContain('connection: close')
    expect(parsed).toBeLessThan(2 * perRead)
  })
})

test('a body in pieces of a sensible size is read, however many they are', async () => {
  const size = 512
  const chunk = `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`
  const body = Buffer.from(`${chunk.repeat(4_000)}0\r\n\r\n`)
  const headers = { ...authorized, ...chunked, 'content-type': 'application/x-tar', connection: 'close' }
  const answer = await send({ method: 'POST', url: '/api/uploads' }, headers, body)
  // Read to its end, and then it is no archive.
  expect(answer.status).toBe(422)
})

test('who sends on after a refusal gets the answer all the same, and no more is parsed', async () => {
  const megabyte = { ...json, 'content-length': String(900 << 10), authorization: 'Bearer none' }
  const answer = await send({ method: 'POST', url: '/api/uploads' }, megabyte, Buffer.alloc(900 << 10))
  expect([answer.status, answer.closed]).toEqual([401, true])
})

test('a small body that was refused costs no connection', async () => {
  const small = { ...json, 'content-length': '2', authorization: 'Bearer none' }
  const answer = await send({ method: 'POST', url: '/api/projects' }, small)
  expect(answer.head).toContain('connection: keep-alive')
})

test('requests that come without waiting for a response are worked on one at a time', async () => {
  const headers = `host: localhost\r\nx-request-id: counted\r\nauthorization: Bearer ${api.token}\r\n`
  const one = `GET /api/projects HTTP/1.1\r\n${headers}`
  const socket = connect(port, '127.0.0.1')
  sockets.add(socket)
  const answer = socket.toArray()
  socket.write(`${`${one}\r\n`.repeat(50)}${one}connection: close\r\n\r\n`)
  expect(String(Buffer.concat(await answer)).match(/HTTP\/1.1 200 /g)).toHaveLength(51)
  expect(underWay.most).toBe(1)
})
