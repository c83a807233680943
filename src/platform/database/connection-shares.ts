// Shares the connections that a process can hold among its clients, so that no one of them takes them all.
import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { clientOf } from '../http/client-address.ts'

export type ConnectionShares = {
  /** Closes new connections of those who have their share. To be called after all others listen for connections. */
  guard(server: Server): void
}

// The other half is for what answers them: files, servers, the database, and the other roles of the process.
const partOfFiles = 0.5
// Where the system does not say.
const usualFiles = 10_000

export function maxConnections(): number {
  try {
    const [, files] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return Math.floor(Number(files ?? usualFiles) * partOfFiles)
  } catch {
    return usualFiles * partOfFiles
  }
}

/**
 * An address may hold as many as are still free. So one alone gets half of them, as all visitors behind one proxy do, of
 * two each gets a third, and some are always left for those who have none.
 */
export function createConnectionShares(most = maxConnections()): ConnectionShares {
  const held = new Map<string, number>()
  let open = 0

  function take(socket: Socket): boolean {
    const client = clientOf(socket.remoteAddress ?? '')
    const own = held.get(client) ?? 0
    if (own >= most - open) return false
    open++
    held.set(client, own + 1)
    socket.once('close', () => {
      open--
      const left = held.get(client)! - 1
      if (left > 0) held.set(client, left)
      else held.delete(client)
    })
    return true
  }

  return {
    guard(server) {
      const accept = server.listeners('connection')
      server.removeAllListeners('connection')
      server.on('connection', (socket: Socket) => {
        if (!take(socket)) return void socket.destroy()
        for (const listener of accept) listener.call(server, socket)
      })
    },
  }
}
