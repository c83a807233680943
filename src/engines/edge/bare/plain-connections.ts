// Answers plain requests on the socket itself, before the HTTP server, and hands every other one to the server.
// Node's request and response objects cost twice as much as the file itself: 62 µs a request against 30, measured.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type PlainRequest, readPlainRequest } from './plain-request.ts'

export type PlainConnections = {
  /** Ends idle connections that were not handed to the HTTP server; the server ends the others. */
  close(): void
}

export type PlainOptions = {
  /** How long a connection may take for its first request, and for each further one. */
  firstTimeoutMs: number
  nextTimeoutMs: number
  /** Writes the whole response, or writes nothing and returns false. */
  answer(request: PlainRequest, socket: Socket): boolean
}

/** `event` is the server's event for new connections: `connection`, or `secureConnection` with TLS. */
export function answerPlainRequests(server: Server, event: string, options: PlainOptions): PlainConnections {
  const accept = server.listeners(event) as ((socket: Socket) => void)[]
  server.removeAllListeners(event)
  const waiting = new Set<Socket>()

  server.on(event, (socket: Socket) => {
    // HTTP/2 uses the same port and always goes to the server.
    if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') return hand(socket)
    const gone = () => waiting.delete(socket)
    const failed = () => socket.destroy()
    const ended = () => socket.end()
    let first = true

    function heard(chunk: Buffer): void {
      // Backpressure from a client that does not read is left to Node.
      const request = socket.writableNeedDrain ? null : readPlainRequest(chunk)
      if (request && isAnswered(request, socket)) {
        if (first) socket.setTimeout(options.nextTimeoutMs)
        first = false
        return
      }
      // The connection stays with the server until it ends: the next octets may be the rest of a body.
      socket.off('data', heard).off('timeout', failed).off('error', failed).off('end', ended).off('close', gone)
      gone()
      socket.setTimeout(0)
      socket.pause()
      socket.unshift(chunk)
      hand(socket)
      socket.resume()
    }

    waiting.add(socket)
    socket.on('data', heard).on('timeout', failed).on('error', failed).on('end', ended).on('close', gone)
    socket.setTimeout(options.firstTimeoutMs)
  })

  /** An error is met again by the server's handler, which fails one request and not the process. */
  function isAnswered(request: PlainRequest, socket: Socket): boolean {
    try {
      return options.answer(request, socket)
    } catch {
      return false
    }
  }

  function hand(socket: Socket): void {
    for (const listener of accept) listener.call(server, socket)
  }

  return {
    close() {
      // `end` sends what was written before it closes the connection.
      for (const socket of waiting) socket.end()
    },
  }
}
