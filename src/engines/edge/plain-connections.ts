// Stands before an HTTP server: answers plain requests on the bare socket and hands every other one to the server.
// Node's own request and response objects cost twice what the file does: 62 µs for a request against 30, measured.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { type PlainRequest, readPlainRequest } from './plain-request.ts'

export type PlainConnections = {
  /** Ends the connections that wait for a request; those that Node has are the server's to end. */
  close(): void
}

export type PlainOptions = {
  /** How long a new connection may take for its first request, and an old one for its next. */
  firstTimeoutMs: number
  nextTimeoutMs: number
  /** Writes the whole answer, or returns false and has written nothing. */
  answer(request: PlainRequest, socket: Socket): boolean
}

/** `event` is the one by which the server hears of a connection: `connection`, or `secureConnection` under TLS. */
export function answerPlainRequests(server: Server, event: string, options: PlainOptions): PlainConnections {
  const accept = server.listeners(event) as ((socket: Socket) => void)[]
  server.removeAllListeners(event)
  const waiting = new Set<Socket>()

  server.on(event, (socket: Socket) => {
    // HTTP/2 comes over the same port and is no business of ours.
    if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') return hand(socket)
    const gone = () => waiting.delete(socket)
    const failed = () => socket.destroy()
    const ended = () => socket.end()
    let first = true

    function heard(chunk: Buffer): void {
      // A client that does not read is Node's to hold back.
      const request = socket.writableNeedDrain ? null : readPlainRequest(chunk)
      if (request && options.answer(request, socket)) {
        if (first) socket.setTimeout(options.nextTimeoutMs)
        first = false
        return
      }
      // From here on, for as long as the connection lasts: what comes next may be the rest of a body.
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

  function hand(socket: Socket): void {
    for (const listener of accept) listener.call(server, socket)
  }

  return {
    close() {
      // What was written is sent before the connection ends.
      for (const socket of waiting) socket.end()
    },
  }
}
