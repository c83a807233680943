// Hostile requests to a server project: bodies, headers and WebSocket frames.
import { once } from 'node:events'
import { connect } from 'node:net'
import { pieceSizes, type Send, type Surface } from './surface.ts'
import { chunked, exchange, head, outcome, repeat } from './wire.ts'

const closing = 'Connection: close'

const body =
  (headers: string[], payload: (bytes: number) => Buffer): Send =>
  ({ edgePort, server, bytes }) => {
    const content = payload(bytes)
    const length = headers.length === 0 ? [`Content-Length: ${content.length}`] : headers
    return exchange(edgePort, head({ method: 'POST', path: '/', host: server, headers: [closing, ...length] }), content)
  }

const paddedChunk = '0000000000001\r\nx\r\n'
const inChunks = (size: number, extension = '') =>
  body(['Transfer-Encoding: chunked'], (n) => chunked(n, size, extension))

export const requestBodies: Surface = {
  plain: body([], (bytes) => repeat('x', bytes)),
  shapes: {
    ...Object.fromEntries(pieceSizes.map((size) => [`chunks of ${size}`, inChunks(size)])),
    'chunks of 1 with an extension': inChunks(1, ';a=b'),
    'chunks with zeros before their size': body(['Transfer-Encoding: chunked'], (bytes) =>
      Buffer.concat([repeat(paddedChunk, bytes * paddedChunk.length), Buffer.from('0\r\n\r\n')]),
    ),
    'endless trailers': body(['Transfer-Encoding: chunked'], (bytes) =>
      Buffer.concat([Buffer.from('0\r\n'), repeat('a: b\r\n', bytes)]),
    ),
  },
}

/** As many requests as the bytes allow, each on its own connection, some in parallel. */
const heads =
  (lines: (room: number) => string[]): Send =>
  async ({ edgePort, server, bytes }) => {
    const roomBytes = 12 << 10
    const one = head({ path: '/', host: server, headers: [closing, ...lines(roomBytes)] })
    let left = Math.ceil(bytes / roomBytes)
    let ended = ''
    const lane = async () => {
      while (left-- > 0) ended = await exchange(edgePort, one)
    }
    await Promise.all([lane(), lane(), lane(), lane()])
    return ended
  }

const many = (line: string) => (room: number) => Array<string>(Math.floor(room / (line.length + 2))).fill(line)

export const requestHeads: Surface = {
  plain: heads((room) => Array<string>(6).fill(`X-Long: ${'x'.repeat(room / 6 - 12)}`)),
  shapes: {
    'many short lines': heads(many('a:')),
    'many cookies': heads((room) => [`Cookie: ${'a=b; '.repeat(room / 5 - 2)}a=b`]),
    'many cookie lines': heads(many('Cookie: a=b')),
    'many languages': heads((room) => [`Accept-Language: ${'aa,'.repeat(room / 3 - 10)}aa`]),
    'many encodings': heads((room) => [`Accept-Encoding: ${'a;q=0,'.repeat(room / 6 - 5)}gzip`]),
    'many addresses': heads((room) => [`X-Forwarded-For: ${'1.1.1.1,'.repeat(room / 8 - 5)}1.1.1.1`]),
    'many ranges': heads((room) => [`Range: bytes=${'0-0,'.repeat(room / 4 - 5)}0-0`]),
    'many tags': heads((room) => [`If-None-Match: ${'"",'.repeat(room / 3 - 8)}""`]),
    'half a head': async ({ edgePort, server, bytes }) => {
      const half = head({ path: '/', host: server }).subarray(0, -2)
      return exchange(edgePort, half, repeat('a: b\r\n', bytes))
    },
  },
}

const small = (host: string, ...headers: string[]) => head({ path: '/', host, headers })
// The share of a message's bytes: a request of forty bytes needs a whole response.
const partOfBytes = 16

/** Sends each request after the previous response. */
const oneByOne: Send = async ({ edgePort, server, bytes }) => {
  const socket = connect(edgePort, '127.0.0.1')
  const ended = outcome(socket)
  const one = small(server)
  for (let left = bytes / partOfBytes; left > 0 && !socket.destroyed; left -= one.length) {
    socket.write(one)
    await Promise.race([once(socket, 'data'), ended])
  }
  socket.write(small(server, closing))
  return ended
}

const atOnce =
  (before: (host: string) => Buffer, connections = 1): Send =>
  async ({ edgePort, server, bytes }) => {
    const one = repeat(small(server), bytes / partOfBytes / connections)
    const send = () => exchange(edgePort, before(server), one, small(server, closing))
    const [ended] = await Promise.all(Array.from({ length: connections }, send))
    return ended!
  }

const post = (host: string, length: string) => head({ method: 'POST', path: '/', host, headers: [length] })
const behind = 3_000

export const requests: Surface = {
  plain: oneByOne,
  shapes: {
    'all at once': atOnce(() => Buffer.alloc(0)),
    'all at once on ten connections': atOnce(() => Buffer.alloc(0), 10),
    'all at once to the API': async ({ apiPort, token, bytes }) => {
      const request = { path: '/api/regions', host: 'localhost' }
      const authorization = `Authorization: Bearer ${token}`
      const one = repeat(head({ ...request, headers: [authorization] }), bytes / partOfBytes)
      return exchange(apiPort, one, head({ ...request, headers: [authorization, closing] }))
    },
    'all at once behind a body': atOnce((host) =>
      Buffer.concat([post(host, `Content-Length: ${behind}`), repeat('x', behind)]),
    ),
    'all at once behind a chunk': atOnce((host) =>
      Buffer.concat([post(host, 'Transfer-Encoding: chunked'), chunked(behind, behind)]),
    ),
  },
}

function upgraded(path: string, payload: (bytes: number) => Buffer): Send {
  return ({ edgePort, server, bytes }) => {
    const content = payload(bytes)
    const headers = [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAA',
    ]
    const request = head({ path: `${path}&times=${content.length}`, host: server, headers })
    return exchange(edgePort, request, content)
  }
}

const received =
  (piece: string): Send =>
  ({ edgePort, server, bytes }) => {
    const headers = [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAA',
    ]
    const times = Math.floor((bytes * 2) / piece.length)
    return exchange(edgePort, head({ path: `/send?piece=${piece}&times=${times}`, host: server, headers }))
  }

/** Masked, like frames of clients. */
const frame = (size: number) => {
  const length = size < 126 ? [0x80 | size] : [0x80 | 126, size >> 8, size & 255]
  return Buffer.concat([Buffer.from([0x82, ...length, 0, 0, 0, 0]), Buffer.alloc(size)])
}

export const webSockets: Surface = {
  plain: upgraded('/take?', (bytes) => repeat(frame(60_000), bytes)),
  shapes: {
    ...Object.fromEntries(
      [0, ...pieceSizes].map((size) => [
        `frames of ${size}`,
        upgraded('/take?', (bytes) => repeat(frame(size), bytes)),
      ]),
    ),
    pings: upgraded('/take?', (bytes) => repeat(Buffer.from([0x89, 0x80, 0, 0, 0, 0]), bytes)),
    'frames of 1 from the server': received('820178'),
    'empty frames from the server': received('8200'),
  },
}
