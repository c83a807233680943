// Bounds the requests of one address whose head is incomplete.
import type { Socket } from 'node:net'
import { clientOf } from './client-address.ts'

/** A browser has a few, and each for a moment. */
const maxHalfSent = 128

/** Node has no public property for the response that a connection is at. */
type Taken = Socket & { _httpMessage?: unknown }

export type HalfSent = { add(socket: Taken): void; delete(socket: Taken): void }

/** Closes the oldest one of an address that has too many: an honest client is done before its turn comes. */
export function createHalfSent(): HalfSent {
  const clients = new Map<string, Set<Taken>>()
  const places = new WeakMap<Socket, string>()
  return {
    add(socket) {
      if (places.has(socket)) return
      const client = clientOf(socket.remoteAddress ?? '')
      const sockets = clients.get(client) ?? new Set()
      clients.set(client, sockets.add(socket))
      places.set(socket, client)
      if (sockets.size <= maxHalfSent) return
      const [oldest] = sockets as Set<Taken> & [Taken]
      this.delete(oldest)
      // It is still reading the answer to an earlier request, which nothing else may be mixed into.
      if (oldest._httpMessage) return void oldest.destroy()
      oldest.end('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      oldest.destroySoon()
    },
    delete(socket) {
      const client = places.get(socket)
      if (client === undefined) return
      places.delete(socket)
      const sockets = clients.get(client)!
      sockets.delete(socket)
      if (sockets.size === 0) clients.delete(client)
    },
  }
}
