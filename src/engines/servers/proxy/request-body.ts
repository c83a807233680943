// Sends the body of a visitor's request to a server, as fast as the server takes it.
import type { IncomingMessage } from 'node:http'
import { Coalescer } from '../../../platform/http/budget.ts'
import type { Connection } from '../instance/connection.ts'

/** The body's length; null if it is not known before its end. */
export function bodyLengthOf({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null
}

const chunkEnd = Buffer.from('\r\n')
const lastChunk = '0\r\n\r\n'

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
  // A visitor chooses how small its chunks are; the server gets one for all that came together.
  const small = new Coalescer((pieces, bytes) => {
    const parts = length === null ? [Buffer.from(`${bytes.toString(16)}\r\n`), ...pieces, chunkEnd] : pieces
    if (!connection.write(parts.length === 1 ? parts[0]! : Buffer.concat(parts))) request.pause()
  })
  const drained = () => request.resume()
  const stop = () => {
    small.drop()
    request.off('data', take).off('end', end)
    socket.off('drain', drained)
  }

  function take(part: Buffer): void {
    if (length === null) return void small.add(part)
    // More than was announced would be another request.
    const allowed = part.length > left ? part.subarray(0, left) : part
    left -= allowed.length
    small.add(allowed)
    if (left > 0) return
    small.flush()
    connection.sent()
  }

  function end(): void {
    if (left > 0) {
      stop()
      return void onShort()
    }
    small.flush()
    stop()
    if (length === null) {
      connection.write(lastChunk)
      connection.sent()
    }
  }

  socket.on('drain', drained)
  request.on('data', take).on('end', end)
  return stop
}
