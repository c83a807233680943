// What a visitor or a program sends in tiny pieces costs neither of them more than the bytes are worth.
import { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Pace } from '../../../src/engines/servers/instance/pace.ts'
import { Budget } from '../../../src/platform/http/budget.ts'
import { CountedRequest } from '../../../src/platform/http/request-intake.ts'
import { until } from '../../helpers/until.ts'
import { type Liar, startLiar } from './liars.ts'

let liar: Liar
beforeAll(async () => {
  liar = await startLiar()
})
afterAll(() => liar.stop())
afterEach(() => void vi.restoreAllMocks())

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])
const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4)
const chunks = (pieces: string[]) => pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
const post = 'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
const unchunked = (text: string) => text.replace(/^.*?\r\n\r\n/s, '').replace(/[\da-f]+\r\n(.*?)\r\n/gs, '$1')

/** The most calls in one turn of the event loop; `all` counts those of all turns. */
function callsByTurn() {
  const counts = { all: 0, most: 0 }
  let now = 0
  vi.spyOn(CountedRequest.prototype, 'push').mockImplementation(function (this: CountedRequest, chunk, encoding) {
    if (now++ === 0) {
      setImmediate(() => {
        now = 0
      })
    }
    counts.all++
    counts.most = Math.max(counts.most, now)
    return push.call(this, chunk, encoding)
  })
  return counts
}
const { push } = CountedRequest.prototype

/** The most bytes of paced reads in one turn of the event loop; `all` counts those of all turns. */
function bytesByTurn() {
  const counts = { all: 0, most: 0 }
  let now = 0
  vi.spyOn(Pace.prototype, 'spend').mockImplementation(function (this: Pace, bytes) {
    if (now === 0) {
      setImmediate(() => {
        now = 0
      })
    }
    now += bytes
    counts.all += bytes
    counts.most = Math.max(counts.most, now)
    return spend.call(this, bytes)
  })
  return counts
}
const { spend } = Pace.prototype

describe('a request', () => {
  test('in one-byte chunks reaches the program whole, in few writes', async () => {
    liar.answer((socket, text) => text.endsWith('0\r\n\r\n') && socket.write(ok))
    const pieces = Array.from({ length: 4_000 }, (_, n) => 'abcdefghij'[n % 10]!)
    expect(statusOf(await liar.raw(`${post}${chunks(pieces)}0\r\n\r\n`))).toBe(200)
    expect(unchunked(liar.received[0]!) === pieces.join('')).toBe(true)
    expect(liar.writes).toBeLessThan(50)
  })

  test.each([
    ['chunks', chunks(Array.from({ length: 1 << 20 }, () => 'x'))],
    ['chunks that nobody reads', chunks(Array.from({ length: 1 << 18 }, () => 'x'))],
  ])('of a flood of one-byte %s is refused, and yields until then', async (name, body) => {
    liar.answer((socket, _text, count) => name !== 'chunks' && count === 1 && socket.write(ok))
    const counts = callsByTurn()
    const answer = await liar.raw(`${post}${body}`)
    expect(statusOf(answer)).toBe(name === 'chunks' ? 400 : 200)
    expect(counts.all).toBeLessThan(16_000)
    expect(counts.most).toBeLessThan(1_000)
    expect(liar.received.join('').length).toBeLessThan(32_000)
    await until(() => liar.open === 0)
  })

  test('in chunks of an honest size may be as long as it likes', async () => {
    liar.answer((socket, text) => text.endsWith('0\r\n\r\n') && socket.write(ok))
    const pieces = Array.from({ length: 60_000 }, (_, n) => `row ${n}, and its value\n`)
    expect(statusOf(await liar.raw(`${post}${chunks(pieces)}0\r\n\r\n`))).toBe(200)
    expect(liar.writes).toBeLessThan(3_000)
  })

  test('of many on one connection leaves the turn to others', async () => {
    liar.answer((socket, text) => socket.write(ok.repeat(text.split('\r\n\r\n').length - 1)))
    const counts = callsByTurn()
    const answer = await liar.raw(
      `${'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(299)}GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    )
    expect(answer.match(/HTTP\/1\.1 200/g)).toHaveLength(300)
    expect(counts.most).toBeLessThan(100)
  })

  test('is read no faster than the program takes it, also in tiny chunks', async () => {
    liar.answer((socket) => void socket.pause())
    const visitor = connect(liar.port, '127.0.0.1').on('error', () => {})
    const body = Buffer.from(chunks(Array.from({ length: 512 }, () => 'x'.repeat(100))))
    visitor.write(post)
    let [sent, last, same] = [0, -1, 0]
    const more = () => {
      while (!visitor.destroyed && sent < 64 << 20 && visitor.write(body)) sent += body.length
      visitor.once('drain', more)
    }
    more()
    await until(() => {
      same = sent === last ? same + 1 : 0
      last = sent
      return sent > 0 && same > 20
    })
    expect(sent).toBeLessThan(32 << 20)
    visitor.destroy()
    // Only who reads finds the end.
    liar.answer(() => {})
    for (const socket of liar.sockets) socket.resume()
    await until(() => liar.open === 0)
  })
})

describe('a program', () => {
  test('that announces its answer without end is a 502, and its connection is closed', async () => {
    const early = `HTTP/1.1 103 Early Hints\r\n${'x: y\r\n'.repeat(400)}\r\n`
    for (const before of [early, 'HTTP/1.1 102 Processing\r\n\r\n']) {
      liar.answer((socket) => socket.write(before.repeat(20_000)))
      expect(statusOf(await liar.get())).toBe(502)
      await until(() => liar.sockets.at(-1)!.destroyed)
    }
  })

  test('that sends 3,000 headers is a 502', async () => {
    for (const status of ['103 Early Hints', '200 OK']) {
      liar.answer((socket) => socket.write(`HTTP/1.1 ${status}\r\n${'x:\r\n'.repeat(3_000)}\r\n${ok}`))
      expect(statusOf(await liar.get())).toBe(502)
    }
  })

  test('that answers in one-byte chunks gets its answer through in few writes', async () => {
    const pieces = Array.from({ length: 100_000 }, (_, n) => 'abcdefghij'[n % 10]!)
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
    liar.answer((socket) => socket.write(`${head}${chunks(pieces)}0\r\n\r\n`))
    const writes = vi.spyOn(ServerResponse.prototype, 'write')
    expect(unchunked(await liar.get()) === pieces.join('')).toBe(true)
    expect(writes.mock.calls.length).toBeLessThan(200)
  })

  test('that answers in tiny chunks yields its turn', async () => {
    const later = vi.spyOn(Budget.prototype, 'later')
    liar.answer((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(1 << 20)}0\r\n\r\n`),
    )
    await liar.get()
    expect(later.mock.calls.length).toBeGreaterThan(5)
  })

  test('that answers in small chunks yields its turn, however fast the visitor takes them', async () => {
    const turns = bytesByTurn()
    const sent = Buffer.from('8\r\nxxxxxxxx\r\n'.repeat(1 << 20))
    liar.answer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      socket.write(sent)
      socket.write('0\r\n\r\n')
    })
    await liar.get()
    expect(turns.all).toBeGreaterThan(1 << 20)
    expect(turns.most).toBeLessThan(600 << 10)
  })
})

describe('a WebSocket', () => {
  const empty = Buffer.alloc(8 << 20, Buffer.from([0x82, 0]))
  const ask = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

  test('whose server floods with empty frames yields its turn', async () => {
    const turns = bytesByTurn()
    liar.answer((socket) => {
      socket.write(switched)
      socket.end(empty)
    })
    expect((await liar.raw(ask)).length).toBeGreaterThan(empty.length)
    expect(turns.all).toBeGreaterThan(1 << 20)
    expect(turns.most).toBeLessThan(600 << 10)
  })

  test('whose visitor floods with empty frames yields its turn', async () => {
    const turns = bytesByTurn()
    let received = 0
    liar.answer((socket, text, count) => {
      if (count === 1) return void socket.write(switched)
      received += text.length
      if (received === empty.length) socket.end()
    })
    await liar.raw([ask, empty.toString('latin1')])
    expect(turns.all).toBeGreaterThan(1 << 20)
    expect(turns.most).toBeLessThan(600 << 10)
  })
})

test('half-sent requests of one address are bounded, and the newest ones are kept', async () => {
  const open = Array.from({ length: 300 }, () => connect(liar.port, '127.0.0.1').on('error', () => {}))
  const slow = connect({ port: liar.port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  for (const socket of [slow, ...open]) socket.write('GET / HTTP/1.1\r\nHost: a\r\n')
  const closed = new Set<number>()
  open.forEach((socket, n) => void socket.resume().on('close', () => closed.add(n)))
  await until(() => closed.size >= 172)
  liar.answer((socket) => socket.write(ok))
  const answers = [slow, open.findLast((_, n) => !closed.has(n))!].map(
    (socket) => new Promise<string>((resolve) => socket.once('data', (octets) => resolve(String(octets)))),
  )
  slow.write('\r\n')
  open.findLast((_, n) => !closed.has(n))!.write('\r\n')
  for (const answer of await Promise.all(answers)) expect(bodyOf(answer)).toBe('ok')
  expect(closed.size).toBe(172)
  for (const socket of [slow, ...open]) socket.destroy()
})
