import { connect } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createChunkedDecoder } from '../../../src/engines/servers/instance/chunked.ts'
import { parseHead } from '../../../src/engines/servers/instance/response-head.ts'
import { requestHead } from '../../../src/engines/servers/proxy/headers.ts'
import { until } from '../../helpers/until.ts'
import { type Liar, startLiar } from './liars.ts'

let liar: Liar
beforeAll(async () => {
  liar = await startLiar()
})
afterAll(() => liar.stop())

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])
const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4)

describe('an answer that is not clearly one is a 502', () => {
  const lines = (...more: string[]) => ['HTTP/1.1 200 OK', ...more, '', 'ok'].join('\r\n')
  const answers: Record<string, string> = {
    'no HTTP': 'hello\r\n\r\n',
    'status 099': 'HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n',
    'status of two digits': 'HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n',
    'another version': 'HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n',
    'line breaks without CR': 'HTTP/1.1 200 OK\ncontent-length: 2\n\nok\r\n\r\n',
    'CR in a value': lines('content-length: 2', 'x: a\rset-cookie: b=1'),
    'LF in a value': lines('content-length: 2', 'x: a\nset-cookie: b=1'),
    'NUL in a value': lines('content-length: 2', 'x: a\0b'),
    'a folded line': lines('content-length: 2', 'x: a', ' b'),
    'space before a colon': lines('content-length : 2'),
    'no name': lines(': 2'),
    'no colon': lines('content-length'),
    'two lengths': lines('content-length: 2', 'content-length: 2'),
    'a list of lengths': lines('content-length: 2, 2'),
    'a negative length': lines('content-length: -2'),
    'a signed length': lines('content-length: +2'),
    'a hexadecimal length': lines('content-length: 0x2'),
    'an endless length': lines('content-length: 99999999999999999999'),
    'length and chunks': lines('content-length: 2', 'transfer-encoding: chunked'),
    'two encodings': lines('transfer-encoding: chunked', 'transfer-encoding: chunked'),
    'another encoding': lines('transfer-encoding: gzip, chunked'),
    'an encoding that is none': lines('transfer-encoding: identity'),
    'chunks by HTTP/1.0': 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'another protocol': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
    'a giant header': lines('content-length: 2', `x: ${'x'.repeat(17 << 10)}`),
    'giant headers without an end': `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(4 << 10)}`,
  }
  for (const [name, answer] of Object.entries(answers)) {
    test(name, async () => {
      liar.answer((socket) => socket.write(answer, 'latin1'))
      const got = await liar.get()
      expect(statusOf(got)).toBe(502)
      expect(got).not.toContain('set-cookie')
    })
  }

  for (const [name, answer] of Object.entries({ nothing: '', 'half a head': 'HTTP/1.1 200 OK\r\nconte' })) {
    test(`${name}, then the end`, async () => {
      liar.answer((socket) => socket.end(answer))
      const before = liar.suspected
      expect(statusOf(await liar.get())).toBe(502)
      expect(liar.suspected).toBe(before + 1)
    })
  }

  test('and the visitor can go on with the same connection', async () => {
    liar.answer((socket, text) => socket.write(text.includes('/bad') ? 'bad\r\n\r\n' : ok))
    const text = await liar.raw(
      'GET /bad HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    )
    expect(text.match(/^HTTP\/1\.1 (502|200)/gm)).toEqual(['HTTP/1.1 502', 'HTTP/1.1 200'])
  })
})

describe('a body that breaks its own framing is cut, so that nobody takes it for whole', () => {
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
  const bodies: Record<string, string> = {
    'a size that is no number': `${chunked}2\r\nok\r\nzz\r\n`,
    'no size': `${chunked}2\r\nok\r\n\r\n`,
    'a negative size': `${chunked}2\r\nok\r\n-1\r\n`,
    'a size beyond all numbers': `${chunked}2\r\nok\r\nfffffffffffffffff\r\n`,
    'more than its size': `${chunked}2\r\nokay\r\n0\r\n\r\n`,
    'a size without CR': `${chunked}2\r\nok\r\n2\nok\r\n0\r\n\r\n`,
    'an endless extension': `${chunked}2\r\nok\r\n2;${'x'.repeat(5000)}`,
    'endless trailers': `${chunked}2\r\nok\r\n0\r\n${'x: yyyyyyyyyy\r\n'.repeat(3000)}`,
    'a trailer that is none': `${chunked}2\r\nok\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n`,
  }
  for (const [name, bytes] of Object.entries(bodies)) {
    test(name, async () => {
      liar.answer((socket) => socket.write(bytes))
      expect(await liar.get()).not.toContain('0\r\n\r\n')
      expect(liar.received).toHaveLength(1)
    })
  }

  test('less than its length', async () => {
    liar.answer((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok'))
    expect(bodyOf(await liar.get())).toBe('ok')
    liar.answer((socket) => socket.end(`${chunked}5\r\nok`))
    expect(await liar.get()).not.toContain('0\r\n\r\n')
  })
})

describe('what a program says at the wrong time reaches nobody', () => {
  test('more than its length', async () => {
    liar.answer((socket, _text, count) => socket.write(count === 1 ? `${ok}${ok.replace('ok', 'no')}` : ok))
    for (let i = 0; i < 3; i++) expect(bodyOf(await liar.get())).toBe('ok')
    expect(liar.received).toHaveLength(3)
  })

  test('an answer on an idle connection', async () => {
    liar.answer((socket) => socket.write(ok, () => setImmediate(() => socket.write(ok.replace('ok', 'no')))))
    expect(bodyOf(await liar.get())).toBe('ok')
    await until(() => liar.sockets.at(-1)!.destroyed)
    expect(bodyOf(await liar.get())).toBe('ok')
    expect(liar.received).toHaveLength(2)
  })

  test('a body with an answer that has none', async () => {
    for (const head of ['HTTP/1.1 204 None\r\ncontent-length: 2', 'HTTP/1.1 304 Same\r\ntransfer-encoding: chunked']) {
      liar.answer((socket) => socket.write(`${head}\r\n\r\nok`))
      for (let i = 0; i < 2; i++) expect(bodyOf(await liar.get())).toBe('')
      expect(liar.received).toHaveLength(2)
    }
  })

  test('answers before the final one', async () => {
    const before = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'
    liar.answer((socket) => {
      for (const byte of before) socket.write(byte)
      socket.write(ok)
    })
    const got = await liar.get()
    expect(statusOf(got)).toBe(200)
    expect(bodyOf(got)).toBe('ok')
    expect(got).not.toContain('link')
  })
})

test('a head that comes byte by byte, and a body that ends with the connection', async () => {
  liar.answer((socket) => {
    for (const byte of 'HTTP/1.0 200 OK\r\nX-Mine:\t caf\xe9\xa0 \r\n\r\n') socket.write(byte, 'latin1')
    socket.end('all of it')
  })
  const got = await liar.get()
  expect(got).toContain('X-Mine: caf\xe9\xa0\r\n')
  expect(got).toContain('all of it')
})

describe('requests', () => {
  const post = (more: string[], body: string) =>
    ['POST / HTTP/1.1', 'Host: a', 'Connection: close', ...more, '', body].join('\r\n')

  test('go on one connection where the server promises to keep it, whatever their method', async () => {
    liar.answer((socket) => socket.write(ok.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=5\r\n\r\n')))
    await liar.raw(post(['Content-Length: 3'], 'one'))
    for (let i = 0; i < 3; i++) expect(statusOf(await liar.raw(post(['Content-Length: 3'], 'two')))).toBe(200)
    expect(liar.received).toHaveLength(1)
  })

  test('that cannot be repeated go on a new connection where it promises nothing', async () => {
    liar.answer((socket) => socket.write(ok))
    for (let i = 0; i < 3; i++) await liar.raw(post(['Content-Length: 3'], 'two'))
    expect(liar.received).toHaveLength(3)
    await liar.get()
    expect(liar.received).toHaveLength(3)
  })

  test('that cannot be repeated are sent once, even if the server breaks its promise', async () => {
    const promise = ok.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=5\r\n\r\n')
    liar.answer((socket, _text, count) => (count === 1 ? socket.write(promise) : socket.destroy()))
    await liar.get()
    expect(statusOf(await liar.raw(post(['Content-Length: 3'], 'two')))).toBe(502)
    expect(liar.received.join('').match(/POST/g)).toHaveLength(1)
  })

  test('with two meanings reach no server', async () => {
    liar.answer((socket) => socket.write(ok))
    const smuggled = '0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
    for (const more of [
      ['Content-Length: 5', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
      ['Content-Length: 5', 'Content-Length: 6'],
      ['Content-Length : 5'],
      ['Transfer-Encoding:\x0bchunked'],
    ]) {
      expect(statusOf(await liar.raw(post(more, smuggled)))).toBe(400)
    }
    expect(liar.received).toEqual([])
  })

  test('keep their framing whatever a visitor calls a header of the connection', async () => {
    liar.answer((socket, text) => text.includes('body') && socket.write(ok))
    await liar.raw(post(['Connection: content-length, transfer-encoding', 'Content-Length: 4'], 'body'))
    await liar.raw(post(['Connection: transfer-encoding', 'Transfer-Encoding: chunked'], '4\r\nbody\r\n0\r\n\r\n'))
    expect(liar.received[0]).toMatch(/\r\nContent-Length: 4\r\n.*\r\n\r\nbody$/s)
    expect(liar.received[1]).toMatch(/\r\nTransfer-Encoding: chunked\r\n(?:.*\r\n)?\r\n4\r\nbody\r\n0\r\n\r\n$/s)
  })

  test('of parts that would be more than one are not sent', () => {
    const head = (path: string, ...headers: string[]) =>
      requestHead('GET', { path, headers: ['Host', 'a', ...headers] })
    expect(head('/a')).toBe('GET /a HTTP/1.1\r\nHost: a\r\n\r\n')
    for (const path of ['/a b', '/a\r\n', '/\u0100', '/\0', '']) expect(head(path)).toBeNull()
    expect(head('/', 'x', 'a\r\nb: c')).toBeNull()
    expect(head('/', 'x: y\r\nb', 'c')).toBeNull()
    expect(head('/', 'x', '\u0141')).toBeNull()
  })

  test('whose visitor leaves in the middle of a body leave no connection behind for others', async () => {
    liar.answer((socket, text) => text.startsWith('GET') && socket.write(ok))
    const visitor = connect(liar.port, '127.0.0.1')
    visitor.write(post(['Content-Length: 500'], 'GET /smuggled HTTP/1.1\r\n'))
    await until(() => liar.received.some((text) => text.includes('smuggled')))
    visitor.destroy()
    await until(() => liar.sockets.at(-1)!.destroyed)
    expect(bodyOf(await liar.get())).toBe('ok')
  })

  test('answered before their end get that answer, and their connection no other request', async () => {
    liar.answer((socket, text) => /^(POST|GET)/.test(text) && socket.write(ok))
    const body = 'x'.repeat(1 << 20)
    // The rest of it never comes, so that no speed of either side decides whether it was sent before the answer.
    const answers = await liar.raw([post([`Content-Length: ${2 * body.length}`], body)], /ok$/)
    expect(statusOf(answers)).toBe(200)
    expect(bodyOf(await liar.get())).toBe('ok')
    expect(liar.received).toHaveLength(2)
  })

  test('of a visitor who reads nothing hold the program back', async () => {
    let sent = 0
    liar.answer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const part = Buffer.alloc(64 << 10)
      const more = () => {
        while (!socket.destroyed && socket.write(part)) sent += part.length
        socket.once('drain', more)
      }
      more()
    })
    const visitor = connect(liar.port, '127.0.0.1')
    visitor.pause().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    let [last, same] = [-1, 0]
    await until(() => {
      same = sent === last ? same + 1 : 0
      last = sent
      return sent > 0 && same > 20
    })
    expect(sent).toBeLessThan(64 << 20)
    visitor.destroy()
    await until(() => liar.sockets.at(-1)!.destroyed)
  })
})

describe('upgrades', () => {
  const ask = (...more: string[]) =>
    ['GET /socket HTTP/1.1', 'Host: a', 'Connection: Upgrade', 'Upgrade: websocket', ...more, '', ''].join('\r\n')
  const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Mine: 1\r\n\r\n'

  test('pass every byte of both sides, also those that come with the heads, and large ones', async () => {
    const large = 'x'.repeat(1 << 20)
    let heard = ''
    liar.answer((socket, text, count) => {
      if (count === 1) return void socket.write(`${switched}first`)
      heard += text
      if (heard.length === 5 + large.length) socket.end(large)
    })
    const got = await liar.raw(`${ask()}early${large}`)
    expect(got).toBe(`${switched}first${large}`)
    expect(heard).toBe(`early${large}`)
  })

  test('that a server refuses leave no connection for others', async () => {
    liar.answer((socket) => socket.write(ok))
    // What follows would be the body of the refused request.
    const got = await liar.raw(ask('Content-Length: 500'))
    expect(statusOf(got)).toBe(200)
    expect(got).toContain('connection: close')
    expect(bodyOf(await liar.get())).toBe('ok')
    expect(liar.received).toHaveLength(2)
  })

  test('that get no answer, or a malformed one, are a 502', async () => {
    for (const answer of ['', 'nonsense\r\n\r\n', 'HTTP/1.1 101 Odd\r\nx: a\0\r\n\r\n']) {
      liar.answer((socket) => socket.end(answer))
      expect(statusOf(await liar.raw(ask()))).toBe(502)
    }
  })

  test('end on both sides when the visitor leaves before the server answers', async () => {
    liar.answer(() => {})
    const visitor = connect({ port: liar.port, host: '127.0.0.1', allowHalfOpen: true })
    visitor.resume().end(ask())
    await until(() => liar.received.at(-1)?.endsWith('\r\n\r\n'))
    liar.sockets.at(-1)!.write(switched)
    await until(() => liar.sockets.at(-1)!.destroyed)
    visitor.destroy()
  })

  test('sent before the answer to an earlier request are none, so that no exchange is forgotten', async () => {
    liar.answer((socket, _text, count) => count === 1 && socket.write(ok))
    const visitor = connect(liar.port, '127.0.0.1')
    visitor.write(`GET / HTTP/1.1\r\nHost: a\r\n\r\n${ask()}`)
    await until(() => liar.received.join('').match(/^GET /gm)?.length === 2)
    expect(liar.open).toBe(1)
    visitor.destroy()
    await until(() => liar.open === 0)
    expect(liar.received.join('')).not.toMatch(/upgrade: websocket/i)
  })

  test('end on both sides when one of them leaves', async () => {
    liar.answer((socket, _text, count) => count === 1 && socket.write(switched))
    const visitor = connect(liar.port, '127.0.0.1')
    visitor.resume().write(ask())
    await until(() => visitor.bytesRead >= switched.length)
    visitor.end('bye')
    await until(() => liar.sockets.at(-1)!.destroyed)
    expect(liar.received.at(-1)).toMatch(/bye$/)
    await until(() => visitor.destroyed)
  })
})

test('a visitor who reads nothing for too long is left, and the server with it', async () => {
  const slow = await startLiar(300)
  const bytes = 16 << 20
  slow.answer(
    (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`) && socket.write(Buffer.alloc(bytes)),
  )
  const visitor = connect(slow.port, '127.0.0.1')
  visitor.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  let got = 0
  visitor.once('data', () => visitor.pause())
  await until(() => slow.sockets.at(-1)?.destroyed)
  visitor.on('data', (octets) => {
    got += octets.length
  })
  visitor.resume()
  await until(() => visitor.destroyed)
  expect(got).toBeLessThan(bytes)
  await slow.stop()
})

test('chunks mean the same however they are cut', () => {
  const parts = fc.array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 8 })
  const cuts = fc.array(fc.nat(400), { maxLength: 10 })
  fc.assert(
    fc.property(parts, cuts, fc.constantFrom('', ';a=b'), (parts, cuts, extension) => {
      const bodies = parts.map((part) => Buffer.from(part))
      const coded = Buffer.concat([
        ...bodies.flatMap((body) => [
          Buffer.from(`${body.length.toString(16)}${extension}\r\n`),
          body,
          Buffer.from('\r\n'),
        ]),
        Buffer.from('0\r\nx: y\r\n\r\nmore'),
      ])
      const chunked = createChunkedDecoder()
      const decoded: Buffer[] = []
      const places = [0, ...cuts.filter((cut) => cut < coded.length).sort((a, b) => a - b), coded.length]
      let end = -1
      for (let i = 1; i < places.length && end < 0; i++) {
        const piece = coded.subarray(places[i - 1], places[i])
        const at = chunked.read(piece, (part) => decoded.push(Buffer.from(part)))
        if (at >= 0) end = places[i - 1]! + at
      }
      expect(Buffer.concat(decoded).equals(Buffer.concat(bodies))).toBe(true)
      expect(end).toBe(coded.length - 4)
    }),
  )
})

test('no head makes the parser do anything but parse or refuse', () => {
  const lines = fc.array(
    fc.constantFrom('content-length: 2', 'x: y', 'connection: close', 'a', ': b', 'transfer-encoding: chunked'),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        lines.map((all) => `HTTP/1.1 200 OK\r\n${all.join('\r\n')}\r\n`),
      ),
      (text) => {
        try {
          const { status, headers } = parseHead(text)
          expect(status).toBeGreaterThanOrEqual(100)
          expect(headers.length % 2).toBe(0)
        } catch (error) {
          expect((error as Error).name).toBe('MalformedResponse')
        }
      },
    ),
  )
})
