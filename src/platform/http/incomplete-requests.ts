// Limits how many requests with incomplete headers an address may have.
import type { Socket } from 'node:net'
import { clientOf } from './client-address.ts'

/** A browser has a few, each for a moment. */
const maxIncomplete = 128

/** Node has no public property for the response that a connection is sending. */
type HttpSocket = Socket & { _httpMessage?: unknown }

export type IncompleteRequests = { add(socket: HttpSocket): void; delete(socket: HttpSocket): void }

/** Closes the oldest one of an address that has too many: an honest client finishes long before. */
export function createIncompleteRequests(): IncompleteRequests {
  const clients = new Map<string, Set<HttpSocket>>()
  const clientOfSocket = new WeakMap<Socket, string>()
  return {
    add(socket) {
      if (clientOfSocket.has(socket)) return
      const client = clientOf(socket.remoteAddress ?? '')
      const sockets = clients.get(client) ?? new Set()
      clients.set(client, sockets.add(socket))
      clientOfSocket.set(socket, client)
      if (sockets.size <= maxIncomplete) return
      const [oldest] = sockets as Set<HttpSocket> & [HttpSocket]
      this.delete(oldest)
      // The client is still reading the response to an earlier request, so nothing else may be written.
      if (oldest._httpMessage) return void oldest.destroy()
      oldest.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      oldest.destroySoon()
    },
    delete(socket) {
      const client = clientOfSocket.get(socket)
      if (client === undefined) return
      clientOfSocket.delete(socket)
      const sockets = clients.get(client)!
      sockets.delete(socket)
      if (sockets.size === 0) clients.delete(client)
    },
  }
}
