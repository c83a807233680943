// HTTP/2 frames and TLS records built by hand, because a library would send what browsers send.
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { pieceSizes, type Send, type Surface, type Target } from './surface.ts'
import { head, outcome, repeat, writeAll } from './wire.ts'

const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  window: 8,
  continuation: 9,
}
const endStream = 1
const endHeaders = 4

function frame(type: number, flags: number, stream: number, payload: Buffer | string = ''): Buffer {
  const content = Buffer.from(payload as string, 'latin1')
  const start = Buffer.alloc(9)
  start.writeUIntBE(content.length, 0, 3)
  start[3] = type
  start[4] = flags
  start.writeUInt32BE(stream, 5)
  return Buffer.concat([start, content])
}

/** HPACK without its dynamic table. */
function fields(host: string, more: [string, string][] = []): Buffer {
  const all = [[':method', 'POST'], [':scheme', 'https'], [':path', '/'], [':authority', host], ...more]
  return Buffer.concat(
    all.map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name!.length]),
        Buffer.from(name!),
        Buffer.from([value!.length]),
        Buffer.from(value!),
      ]),
    ),
  )
}

async function secure({ httpsPort, zone }: Target, protocol: string): Promise<TLSSocket> {
  const options = { host: '127.0.0.1', port: httpsPort, servername: zone, rejectUnauthorized: false }
  const socket = connect({ ...options, ALPNProtocols: [protocol] })
  await once(socket, 'secureConnect')
  return socket
}

type Windows = { connection: number; stream: number }

/** Tracks the flow control windows, and reports when stream 1 or the session has ended. */
function follow(socket: TLSSocket, windows: Windows, changed: () => void): (bytes: Buffer) => boolean {
  let rest: Buffer = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= 9) {
      const length = rest.readUIntBE(0, 3)
      if (rest.length < 9 + length) return false
      const [type, flags, stream] = [rest[3]!, rest[4]!, rest.readUInt32BE(5)]
      const payload = rest.subarray(9, 9 + length)
      rest = rest.subarray(9 + length)
      if (type === types.window) windows[stream === 0 ? 'connection' : 'stream'] += payload.readUInt32BE(0)
      if (type === types.settings && (flags & 1) === 0) {
        for (let at = 0; at < payload.length; at += 6) {
          if (payload.readUInt16BE(at) === 4) windows.stream += payload.readUInt32BE(at + 2) - 65_535
        }
        socket.write(frame(types.settings, 1, 0))
      }
      changed()
      const ended = (type === types.data || type === types.headers) && (flags & endStream) !== 0
      if (type === types.goAway || (stream === 1 && (type === types.reset || ended))) return true
    }
    return false
  }
}

/** Sends a POST in stream 1, then repeats a frame; `carried` counts against the windows. */
function flood(one: Buffer, carried: number, more: [string, string][] = []): Send {
  return async (target) => {
    const socket = await secure(target, 'h2')
    const windows = { connection: 65_535, stream: 65_535 }
    let wake = () => {}
    const ended = outcome(
      socket,
      follow(socket, windows, () => wake()),
    )
    socket.on('close', () => wake())
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    socket.write(frame(types.settings, 0, 0))
    socket.write(frame(types.headers, endHeaders, 1, fields(target.zone, more)))
    let left = Math.floor(target.bytes / Math.max(1, carried || one.length))
    while (left > 0 && !socket.destroyed) {
      const room = carried === 0 ? left : Math.floor(Math.min(windows.connection, windows.stream) / carried)
      const count = Math.min(left, room)
      if (count <= 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      windows.connection -= count * carried
      windows.stream -= count * carried
      left -= count
      await writeAll(socket, Buffer.alloc(one.length * count, one))
    }
    if (!socket.destroyed) socket.write(frame(types.data, endStream, 1))
    return ended
  }
}

const data = (size: number) => flood(frame(types.data, 0, 1, 'x'.repeat(size)), size)

/** Opens and resets streams one after the other. */
const resets: Send = async (target) => {
  const socket = await secure(target, 'h2')
  const ended = outcome(
    socket,
    follow(socket, { connection: 0, stream: 0 }, () => {}),
  )
  const parts = [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(types.settings, 0, 0)]
  const opened = fields(target.zone)
  for (let sent = 0, stream = 1; sent < target.bytes; stream += 2) {
    parts.push(frame(types.headers, endHeaders, stream, opened), frame(types.reset, 0, stream, '\0\0\0\x08'))
    sent += opened.length + 22
  }
  await writeAll(socket, Buffer.concat(parts))
  if (!socket.destroyed) socket.end()
  return ended
}

const control = (type: number, payload: string, stream = 0) => flood(frame(type, 0, stream, payload), 0)

export const http2Frames: Surface = {
  plain: data(16 << 10),
  shapes: {
    ...Object.fromEntries(pieceSizes.map((size) => [`DATA of ${size}`, data(size)])),
    'empty DATA': flood(frame(types.data, 0, 1), 0),
    'DATA of 1 with padding': flood(frame(types.data, 8, 1, '\x0fx'.padEnd(17, '\0')), 17),
    PING: control(types.ping, '\0'.repeat(8)),
    SETTINGS: control(types.settings, ''),
    WINDOW_UPDATE: control(types.window, '\0\0\0\x01'),
    PRIORITY: control(types.priority, '\0\0\0\x03\x10', 1),
    'unknown frames': control(0xee, '', 1),
    CONTINUATION: flood(frame(types.continuation, 0, 3), 0),
    'streams opened and reset': resets,
  },
}

const recordBytes = 16 << 10

/** A request whose body is sent in records of this size: each is written only after the previous one is sent. */
const records =
  (size: number): Send =>
  async (target) => {
    const socket = await secure(target, 'http/1.1')
    const ended = outcome(socket)
    const bytes = Math.min(target.bytes, recordBytes)
    const headers = ['Connection: close', `Content-Length: ${bytes}`]
    socket.write(head({ method: 'POST', path: '/', host: target.zone, headers }))
    const piece = repeat('x', size)
    for (let sent = 0; sent < bytes && !socket.destroyed; sent += size) {
      await new Promise<void>((resolve) => void socket.write(piece, () => resolve()))
    }
    return ended
  }

export const tlsRecords: Surface = {
  plain: records(recordBytes),
  shapes: Object.fromEntries(pieceSizes.map((size) => [`records of ${size}`, records(size)])),
}
