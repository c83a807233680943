// Ends a connection after sending a final response.
import type { Duplex } from 'node:stream'

// Enough to read a page.
const defaultWaitMs = 5_000

/** Doesn't wait for a client that never closes its side, because such clients would hold connections forever. */
export function endWithResponse(socket: Duplex, response: string | Buffer, waitMs = defaultWaitMs): void {
  const timer = setTimeout(() => socket.destroy(), waitMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end(response)
  // The end of the client's side is only noticed by reading.
  socket.resume()
}
