// Sends raw bytes on a separate connection.
import { connect, type Socket } from 'node:net'

const quietMs = 30_000
const writeBytes = 64 << 10

/** Repeats a piece as often as it fits into this many bytes, and at least once. */
export function repeat(piece: string | Buffer, bytes: number): Buffer {
  const one = Buffer.from(piece as string, 'latin1')
  return Buffer.alloc(Math.max(1, Math.floor(bytes / one.length)) * one.length, one)
}

/** A chunked body with chunks of `size` bytes. */
export function chunked(bytes: number, size: number, extension = ''): Buffer {
  const chunk = `${size.toString(16)}${extension}\r\n${'x'.repeat(size)}\r\n`
  return Buffer.concat([repeat(chunk, (bytes / size) * chunk.length), Buffer.from('0\r\n\r\n')])
}

export type Head = { method?: string; path: string; host: string; headers?: string[] }

export function head({ method = 'GET', path, host, headers = [] }: Head): Buffer {
  return Buffer.from([`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n'), 'latin1')
}

/** Writes as fast as the other side reads. */
export async function writeAll(socket: Socket, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed; at += writeBytes) {
    if (socket.write(bytes.subarray(at, at + writeBytes))) continue
    await new Promise<void>((resolve) => {
      const go = () => {
        socket.off('drain', go).off('close', go)
        resolve()
      }
      socket.on('drain', go).on('close', go)
    })
  }
}

/** Resolves when the connection closes, with the status of the first response or how else it ended. */
export function outcome(socket: Socket, isOver?: (bytes: Buffer) => boolean): Promise<string> {
  return new Promise((resolve) => {
    let first = ''
    socket.setTimeout(quietMs, () => socket.destroy(new Error('timeout')))
    socket.on('data', (bytes) => {
      first ||= /^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1', 0, 12))?.[1] ?? 'answered'
      if (isOver?.(bytes)) socket.destroy()
    })
    socket.on('error', ({ message, code }: NodeJS.ErrnoException) => (first ||= code ?? message))
    socket.on('close', () => resolve(first || 'closed'))
  })
}

/** Sends everything on a new connection, and waits until it closes. */
export async function exchange(port: number, ...bytes: Buffer[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const ended = outcome(socket)
  for (const part of bytes) await writeAll(socket, part)
  return ended
}
