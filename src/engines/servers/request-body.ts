// Sends the body of a visitor's request to a server, as fast as the server takes it.
import type { IncomingMessage } from 'node:http'
import type { Connection } from './connection.ts'

/** The body's length; null if it is not known before its end. */
export function bodyLengthOf({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null
}

/**
 * Returns a function that ends it, after which the rest of the body is the caller's. `onShort` is called if the body
 * ends before its length: the server would take the next request for the rest of it.
 */
export function sendBody(
  request: IncomingMessage,
  connection: Connection,
  length: number | null,
  onShort: () => void,
): () => void {
  const { socket } = connection
  let left = length ?? 0
  const drained = () => request.resume()
  const stop = () => {
    request.off('data', take).off('end', end)
    socket.off('drain', drained)
  }

  function take(part: Buffer): void {
    if (length === null) {
      socket.cork()
      connection.write(`${part.length.toString(16)}\r\n`)
      connection.write(part)
      const ready = connection.write('\r\n')
      socket.uncork()
      if (!ready) request.pause()
      return
    }
    // More than was announced would be another request.
    const allowed = part.length > left ? part.subarray(0, left) : part
    left -= allowed.length
    if (!connection.write(allowed)) request.pause()
    if (left === 0) connection.sent()
  }

  function end(): void {
    stop()
    if (left > 0) return void onShort()
    if (length === null) {
      connection.write('0\r\n\r\n')
      connection.sent()
    }
  }

  socket.on('drain', drained)
  request.on('data', take).on('end', end)
  return stop
}
