// What the requests of a connection cost, however many came at once, and what is left of one whose connection is gone.
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { CountedRequest, limitRequestCosts } from '../../src/platform/http/request-intake.ts'
import { until } from '../helpers/until.ts'

/** The most calls in one turn of the event loop. */
function countByTurn() {
  const counts = { most: 0, now: 0 }
  return Object.assign(counts, {
    call() {
      if (counts.now++ === 0) setImmediate(() => Object.assign(counts, { now: 0 }))
      counts.most = Math.max(counts.most, counts.now)
    },
  })
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

/** `parsed` and `handled` count requests by turn. */
async function start(handle: (request: CountedRequest, response: ServerResponse) => void) {
  const [parsed, handled] = [countByTurn(), countByTurn()]
  class Request extends CountedRequest {
    constructor(socket: Socket) {
      super(socket)
      parsed.call()
    }
  }
  const server = createServer({ IncomingMessage: Request }, (request, response) => {
    handled.call()
    handle(request, response)
  })
  servers.push(server)
  limitRequestCosts(server, 'connection')
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, parsed, handled, port: (server.address() as AddressInfo).port }
}

function send(port: number, bytes: string): { socket: Socket; answer: Promise<string> } {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  const octets: Buffer[] = []
  socket.on('data', (some) => void octets.push(some))
  return { socket, answer: new Promise((resolve) => socket.on('close', () => resolve(String(Buffer.concat(octets))))) }
}

const get = (path: string | number, line = '') => `GET /${path} HTTP/1.1\r\nHost: a\r\n${line}\r\n`
const last = get('last', 'Connection: close\r\n')
const gets = (count: number) => Array.from({ length: count }, (_, n) => get(n)).join('')
const bodies = (answer: string) => [...answer.matchAll(/\r\n\r\n\/([a-z]+|\d+)/g)].map(([, path]) => path)
const answered = (request: CountedRequest, response: ServerResponse) => {
  request.resume()
  const body = request.url!
  response.writeHead(200, { 'content-length': body.length }).end(body)
}

describe('of requests that come without waiting for a response', () => {
  test('each begins when the one before it has its response, and all get theirs in order', async () => {
    const open: (() => void)[] = []
    let [most, begun] = [0, 0]
    const { port } = await start((request, response) => {
      begun++
      open.push(() => answered(request, response))
      most = Math.max(most, open.length)
    })
    const { answer } = send(port, gets(100) + last)
    for (let n = 0; n <= 100; n++) {
      await until(() => begun > n)
      open.shift()!()
    }
    expect(bodies(await answer)).toEqual([...Array.from({ length: 100 }, (_, n) => String(n)), 'last'])
    expect(most).toBe(1)
  })

  test('one is handled in a turn of the event loop, however many connections have them', async () => {
    const { port, handled } = await start(answered)
    const alone = send(port, gets(1_000) + last)
    expect(bodies(await alone.answer)).toHaveLength(1_001)
    expect(handled.most).toBe(1)

    const firsts = Array.from({ length: 8 }, () => send(port, get('first')))
    await until(() => firsts.every(({ socket }) => socket.bytesRead > 0))
    handled.most = 0
    for (const { socket } of firsts) socket.write(gets(200) + last)
    for (const { answer } of firsts) expect(bodies(await answer)).toHaveLength(202)
    // Those that nothing came before on their connection.
    expect(handled.most).toBeLessThanOrEqual(firsts.length + 1)
  })

  test.each([
    ['of known length', `Content-Length: 3000\r\n\r\n${'x'.repeat(3_000)}`],
    ['in chunks', `Transfer-Encoding: chunked\r\n\r\nbb8\r\n${'x'.repeat(3_000)}\r\n0\r\n\r\n`],
  ])('few are parsed in a turn, also behind a body %s', async (_, body) => {
    const { port, parsed } = await start(answered)
    const { answer } = send(port, `POST /post HTTP/1.1\r\nHost: a\r\n${body}${gets(1_000)}${last}`)
    expect(bodies(await answer)).toHaveLength(1_002)
    expect(parsed.most).toBeLessThan(40)
  })

  test('none begins after a response that closes the connection, or once the client is gone', async () => {
    const paths: string[] = []
    const open: (() => void)[] = []
    let gone = 0
    const { port } = await start((request, response) => {
      paths.push(request.url!)
      if (request.url === '/last') return answered(request, response)
      response.on('close', () => gone++)
      open.push(() => response.end())
    })
    await send(port, last + gets(10)).answer
    expect(paths).toEqual(['/last'])

    for (const leave of ['end', 'resetAndDestroy'] as const) {
      const { socket } = send(port, gets(10))
      await until(() => open.length === 1)
      socket[leave]()
      await until(() => gone === 1)
      open.shift()!()
      await send(port, last).answer
      expect(paths).toEqual(['/last', '/0', '/last'])
      paths.shift()
      paths.shift()
      gone = 0
    }
  })

  test('the body of one is read while its response is under way', async () => {
    const { port } = await start((request, response) => {
      response.writeHead(200, { 'transfer-encoding': 'chunked' })
      request.pipe(response)
    })
    const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`
    const { answer } = send(port, post + post + last)
    expect((await answer).match(/x/g)).toHaveLength(400_000)
  })
})

test('the last of a body is taken, though its connection is gone', () => {
  const request = new CountedRequest(new Socket())
  Object.assign(request, { socket: null })
  expect(request.push(Buffer.from('x'))).toBe(true)
  expect(String(request.read())).toBe('x')
})
