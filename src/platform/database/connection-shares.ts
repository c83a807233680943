// Shares a process's connections among its clients, so that no single client can use them all.
import { readFileSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { clientOf } from '../http/client-address.ts'

export type ConnectionShares = {
  /** Closes new connections of clients that have used up their share. Call it after all other connection listeners are added. */
  guard(server: Server): void
}

// The rest is for serving those connections: files, servers, the database, and the other roles of the process.
const shareOfFiles = 0.5
// If the system doesn't say.
const defaultMaxFiles = 10_000

export function maxConnections(): number {
  try {
    const [, files] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return Math.floor(Number(files ?? defaultMaxFiles) * shareOfFiles)
  } catch {
    return defaultMaxFiles * shareOfFiles
  }
}

/**
 * An address may hold as many connections as are still free. So a single address gets half of them, like all visitors
 * behind one proxy; two get a third each; and some are always left for new addresses.
 */
export function createConnectionShares(max = maxConnections()): ConnectionShares {
  const connections = new Map<string, number>()
  let open = 0

  function admit(socket: Socket): boolean {
    const client = clientOf(socket.remoteAddress ?? '')
    const count = connections.get(client) ?? 0
    if (count >= max - open) return false
    open++
    connections.set(client, count + 1)
    socket.once('close', () => {
      open--
      const left = connections.get(client)! - 1
      if (left > 0) connections.set(client, left)
      else connections.delete(client)
    })
    return true
  }

  return {
    guard(server) {
      const listeners = server.listeners('connection')
      server.removeAllListeners('connection')
      server.on('connection', (socket: Socket) => {
        if (!admit(socket)) return void socket.destroy()
        for (const listener of listeners) listener.call(server, socket)
      })
    },
  }
}
