// Ends a connection with a last answer.
import type { Duplex } from 'node:stream'

// Enough to read a page.
const defaultMs = 5_000

/** A client that does not close its side too is not waited for: each of them would hold a connection for ever. */
export function endWithLastWords(socket: Duplex, words: string | Buffer, waitMs = defaultMs): void {
  const timer = setTimeout(() => socket.destroy(), waitMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end(words)
  // Its end is found only by reading.
  socket.resume()
}
