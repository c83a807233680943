// Answers plain requests directly on the socket and hands all others over to Node's HTTP server.
// Node's request and response objects double the cost of serving a file: 62 µs per request instead of 30.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type PlainRequest, readPlainRequest } from './plain-request.ts'

export type PlainConnections = {
  /** Closes idle connections that weren't handed over; the HTTP server closes the others. */
  close(): void
}

export type PlainOptions = {
  /** Timeouts for the first request of a connection and for each later one. */
  firstTimeoutMs: number
  nextTimeoutMs: number
  /** Writes the whole response, or returns false without writing anything. */
  answer(request: PlainRequest, socket: Socket): boolean
}

/** `event` is the server's event for new connections: `connection`, or `secureConnection` with TLS. */
export function answerPlainRequests(server: Server, event: string, options: PlainOptions): PlainConnections {
  const accept = server.listeners(event) as ((socket: Socket) => void)[]
  server.removeAllListeners(event)
  const waiting = new Set<Socket>()

  server.on(event, (socket: Socket) => {
    // HTTP/2 uses the same port and always goes to the server.
    if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') return handOver(socket)
    const onClose = () => waiting.delete(socket)
    const destroy = () => socket.destroy()
    const onEnd = () => socket.end()
    let first = true

    function onData(chunk: Buffer): void {
      // Node handles backpressure from clients that don't read.
      const request = socket.writableNeedDrain ? null : readPlainRequest(chunk)
      if (request && isAnswered(request, socket)) {
        if (first) socket.setTimeout(options.nextTimeoutMs)
        first = false
        return
      }
      // The connection now stays with the server, since the next bytes may be the rest of a body.
      socket.off('data', onData).off('timeout', destroy).off('error', destroy).off('end', onEnd).off('close', onClose)
      onClose()
      socket.setTimeout(0)
      socket.pause()
      socket.unshift(chunk)
      handOver(socket)
      socket.resume()
    }

    waiting.add(socket)
    socket.on('data', onData).on('timeout', destroy).on('error', destroy).on('end', onEnd).on('close', onClose)
    socket.setTimeout(options.firstTimeoutMs)
  })

  /** On an error, the server's handler meets it again and fails one request instead of the process. */
  function isAnswered(request: PlainRequest, socket: Socket): boolean {
    try {
      return options.answer(request, socket)
    } catch {
      return false
    }
  }

  function handOver(socket: Socket): void {
    for (const listener of accept) listener.call(server, socket)
  }

  return {
    close() {
      // `end` flushes pending writes first.
      for (const socket of waiting) socket.end()
    },
  }
}
