// Sends the body of a visitor's request to a server, with backpressure.
import type { IncomingMessage } from 'node:http'
import { Coalescer } from '../../../platform/http/budget.ts'
import type { Connection } from '../instance/connection.ts'

/** The body's length; null if it is chunked. */
export function bodyLengthOf({ headers }: IncomingMessage): number | null {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : null
}

const chunkEnd = Buffer.from('\r\n')
const lastChunk = '0\r\n\r\n'

/**
 * Returns a function that stops sending and leaves the rest of the body to the caller. Calls `onShort` if the body is
 * shorter than its length: the server would read the next request as the rest of it.
 */
export function sendBody(
  request: IncomingMessage,
  connection: Connection,
  length: number | null,
  onShort: () => void,
): () => void {
  const { socket } = connection
  let remaining = length ?? 0
  // Visitors choose how small their chunks are. The server gets one chunk for all that arrived together.
  const coalescer = new Coalescer((pieces, bytes) => {
    const parts = length === null ? [Buffer.from(`${bytes.toString(16)}\r\n`), ...pieces, chunkEnd] : pieces
    if (!connection.write(parts.length === 1 ? parts[0]! : Buffer.concat(parts))) request.pause()
  })
  const onDrain = () => request.resume()
  const stop = () => {
    coalescer.drop()
    request.off('data', onData).off('end', onEnd)
    socket.off('drain', onDrain)
  }

  function onData(part: Buffer): void {
    if (length === null) return void coalescer.add(part)
    // Anything beyond the announced length would be another request.
    const allowed = part.length > remaining ? part.subarray(0, remaining) : part
    remaining -= allowed.length
    coalescer.add(allowed)
    if (remaining > 0) return
    coalescer.flush()
    connection.endBody()
  }

  function onEnd(): void {
    if (remaining > 0) {
      stop()
      return void onShort()
    }
    coalescer.flush()
    stop()
    if (length === null) {
      connection.write(lastChunk)
      connection.endBody()
    }
  }

  socket.on('drain', onDrain)
  request.on('data', onData).on('end', onEnd)
  return stop
}
