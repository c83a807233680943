import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPlainRequest } from '../../../src/engines/edge/bare/plain-request.ts'
import { closed } from '../../helpers/closed.ts'
import { startWorld, type World } from './world.ts'

let world: World
let etag: string
beforeAll(async () => {
  world = await startWorld()
  const files = {
    'index.html': 'home',
    'page.html': 'p'.repeat(5_000),
    '404.html': 'none',
    'empty.txt': '',
    'a.txt': 'a',
    'b/index.html': 'b',
    _headers: '/a.txt\n  X-A: ä\n  Set-Cookie: a=b',
    _redirects: '/old /a.txt 301\n/shown /a.txt 200',
  }
  await world.site('plain', files)
  // Loads what is answered from memory from then on.
  for (const path of ['/', '/page', '/empty.txt', '/a.txt', '/b/']) {
    const { headers } = await world.get('plain.localhost', path)
    if (path === '/page') etag = headers.etag!
  }
})
afterAll(() => world.stop())

const last = 'GET /a.txt HTTP/1.1\r\nHost: plain.localhost\r\nConnection: close\r\n\r\n'

/** Everything that comes for these pieces, each sent when the one before was answered. */
async function conversation(pieces: string[], first = ''): Promise<string> {
  const socket = connect({ port: world.port, host: '127.0.0.1', noDelay: true })
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => resolve()))
  if (first !== '') {
    socket.write(first, 'latin1')
    // Nobody answers it, and nothing tells that it was read; together with the rest it gets the same answer.
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  for (const piece of pieces) {
    if (socket.destroyed || socket.writableEnded) break
    socket.write(piece, 'latin1')
    await Promise.race([answered(socket), closed])
  }
  await closed
  return text.replace(/^Date: .*$/gm, 'Date: now')
}

async function answered(socket: Socket): Promise<void> {
  await new Promise((resolve) => socket.once('data', resolve))
  // The rest of the same answer is on its way; if it comes later, the next piece is only sent sooner.
  await new Promise((resolve) => setTimeout(resolve, 5))
}

/** The same request in one piece and torn apart after its first letter, which leaves it to Node's parser. */
async function both(request: string): Promise<[string, string]> {
  return Promise.all([conversation([request, last]), conversation([request.slice(1), last], request.slice(0, 1))])
}

const get = (path: string, ...headers: string[]) =>
  `GET ${path} HTTP/1.1\r\n${['Host: plain.localhost', ...headers].map((line) => `${line}\r\n`).join('')}\r\n`

describe('an answer on the bare socket is, byte for byte, the one that Node would write', () => {
  const requests: [string, () => string][] = [
    ['a file', () => get('/a.txt')],
    ['a page at its clean address', () => get('/page')],
    ['a page that is compressed', () => get('/page', 'Accept-Encoding: gzip, deflate, br')],
    ['a client that wants gzip alone', () => get('/page', 'accept-encoding:gzip')],
    ['a file without bytes', () => get('/empty.txt')],
    ['the host in capitals and with a port', () => get('/a.txt').replace('plain.localhost', 'PLAIN.localhost:80')],
    ['a query', () => get('/a.txt?x=%20&y')],
    ['a tag that fits', () => get('/page', `If-None-Match: ${etag}`)],
    ['a tag among several, marked weak', () => get('/page', `If-None-Match: "x", W/${etag}`)],
    ['a tag of another file', () => get('/page', 'If-None-Match: "x"')],
    ['blanks around a value', () => get('/page', 'Accept-Encoding: \t br \t ')],
    ['a missing file', () => get('/missing.txt')],
    ['a redirect', () => get('/old')],
    ['a rewrite', () => get('/shown')],
    ['an address with an escape', () => get('/%61.txt')],
    ['a range', () => get('/page', 'Range: bytes=0-9')],
    ['an upgrade', () => get('/a.txt', 'Connection: Upgrade', 'Upgrade: h2c')],
    ['another host', () => get('/').replace('plain.', 'other.')],
  ]
  test.each(requests)('%s', async (_, request) => {
    const [plain, node] = await both(request())
    expect(plain).toBe(node)
    expect(plain).toContain('HTTP/1.1 ')
  })
})

const doubtful: [string, string][] = [
  ['two hosts', get('/', 'Host: other.localhost')],
  ['no host', 'GET / HTTP/1.1\r\nAccept: */*\r\n\r\n'],
  ['a body', get('/', 'Content-Length: 3')],
  ['a body in chunks', get('/', 'Transfer-Encoding: chunked')],
  ['both, as smugglers do', get('/', 'Content-Length: 3', 'Transfer-Encoding: chunked')],
  ['a blank before the colon', get('/', 'Content-Length : 3')],
  ['a folded line', get('/', 'X-A: b', ' c: d')],
  ['a bare line feed', 'GET / HTTP/1.1\nHost: plain.localhost\r\n\r\n'],
  ['a bare line feed in a value', get('/', 'X-A: b\nContent-Length: 3')],
  ['a bare carriage return', get('/', 'X-A: b\rc')],
  ['a zero octet', get('/', 'X-A: b\0')],
  ['octets above ASCII', get('/', 'X-A: \xe9')],
  ['a header without a name', get('/', ': b')],
  ['an older version', get('/').replace('1.1', '1.0')],
  ['another version', get('/').replace('1.1', '1.2')],
  ['a blank in the address', get('/a .txt')],
  ['two blanks before the version', get('/').replace(' HTTP', '  HTTP')],
  ['another method', get('/').replace('GET', 'GEt')],
  ['a whole address', get('http://plain.localhost/')],
  ['two requests at once', get('/') + get('/a.txt')],
  ['less than a request', get('/').slice(0, -2)],
  ['too much of one', get('/', `X-A: ${'b'.repeat(9_000)}`)],
  ['the last words of a client', get('/', 'Connection: close')],
  ['an expectation', get('/', 'Expect: 100-continue')],
  ['two preferences', get('/', 'Accept-Encoding: br', 'Accept-Encoding: gzip')],
]

describe('nothing doubtful is answered on the bare socket', () => {
  test.each(doubtful)('%s', (_, request) => {
    expect(readPlainRequest(Buffer.from(request, 'latin1'))).toBeNull()
  })
})

test('what Node refuses or reads otherwise, however a request is damaged, is never answered on the bare socket', async () => {
  const whole = get('/page?x', 'Accept: */*', 'Accept-Encoding: br', `If-None-Match: ${etag}`, 'Cookie: a=b; c="d"')
  const octet = fc.constantFrom('\r', '\n', '\r\n', ' ', '\t', ':', '\0', '\x7f', '\xff', 'a', ',', 'Host: b\r\n')
  const damage = fc.record({ at: fc.nat(whole.length), drop: fc.nat(3), put: octet })
  let compared = 0
  await fc.assert(
    fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (damages) => {
      let request = whole
      for (const { at, drop, put } of damages) request = request.slice(0, at) + put + request.slice(at + drop)
      // Only what would be answered here can differ; Node answers the rest either way.
      if (!readPlainRequest(Buffer.from(request, 'latin1'))) return
      compared++
      const [plain, node] = await both(request)
      expect(plain).toBe(node)
    }),
    { numRuns: 400 },
  )
  // Damage that left nothing to compare would prove nothing.
  expect(compared).toBeGreaterThan(20)
})

test('a body that looks like a request is a body', async () => {
  const inner = get('/a.txt')
  const post = `POST / HTTP/1.1\r\nHost: plain.localhost\r\nContent-Length: ${inner.length}\r\n\r\n`
  const text = await conversation([get('/'), post, inner])
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 405'])
})

test('plain and other requests take turns on one connection', async () => {
  const text = await conversation([get('/'), get('/a.txt'), get('/page', 'Range: bytes=0-0'), get('/a.txt'), last])
  const statuses = text.match(/HTTP\/1\.1 \d+/g)!.map((line) => line.slice(9))
  expect(statuses).toEqual(['200', '200', '206', '200', '200'])
})

test('a client that asks and does not read is held back, and gets every answer when it does', async () => {
  const socket = connect({ port: world.port, host: '127.0.0.1', noDelay: true })
  socket.pause()
  const count = 2_000
  for (let i = 0; i < count; i++) {
    socket.write(get('/page'))
    if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  socket.write(last)
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  socket.resume()
  await closed(socket)
  expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(count + 1)
})

test('an edge that stops does not wait for connections on which nothing is under way', async () => {
  const other = await startWorld()
  await other.site('a', { 'index.html': 'home' })
  await other.get('a.localhost', '/')
  const socket = connect(other.port, '127.0.0.1', () => socket.write(get('/').replace('plain', 'a')))
  await new Promise((resolve) => socket.once('data', resolve))
  const ended = closed(socket)
  await other.stop()
  await ended
})

test('the level of the log does not change who answers: at debug, the same requests are plain, with a line each', async () => {
  const lines: { path: string; status: number; plain?: true }[] = []
  const log = pino({ level: 'debug' }, { write: (line) => lines.push(JSON.parse(line)) })
  const debugged = await startWorld({ log })
  try {
    await debugged.site('plain', { 'a.txt': 'a' })
    const { headers } = await debugged.get('plain.localhost', '/a.txt')
    // On connections of their own: one that Node has got stays with Node.
    for (const extra of ['', `If-None-Match: ${headers.etag}\r\n`]) {
      const socket = connect({ port: debugged.port, host: '127.0.0.1' })
      socket.write(`GET /a.txt?secret HTTP/1.1\r\nHost: plain.localhost\r\n${extra}\r\n`)
      await once(socket, 'data')
      socket.destroy()
    }
    const requests = lines.filter(({ path }) => path !== undefined)
    // The first one loads the file; what is in memory is answered on the socket.
    expect(requests.slice(1)).toMatchObject([
      { path: '/a.txt', status: 200, plain: true },
      { path: '/a.txt', status: 304, plain: true },
    ])
  } finally {
    await debugged.stop()
  }
})
