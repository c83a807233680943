// A pool of the idle connections to one run of a server.
import type { Connect } from '../../../sandbox/sandbox.ts'
import { Connection } from './connection.ts'
import { maxPartBytes } from './parts.ts'

export type Pool = {
  /**
   * Returns an idle connection, or null. A server may close one just as it is reused, so a request that can't be
   * repeated only gets a connection that the server has promised to keep open.
   */
  acquire(repeatable: boolean): Connection | null
  open(): Promise<Connection>
  closeIdle(): void
  /** Closes idle connections now and the others once they are idle. */
  close(): void
}

export type PoolOptions = {
  /** How long idle connections stay open. Default: until the server closes them. */
  idleMs?: number
}

const maxIdle = 64
// All connections read into this buffer. Allocating for each read would cost more than reading, mostly in GC.
const readBuffer = Buffer.allocUnsafeSlow(maxPartBytes)

export function createPool(connect: Connect, { idleMs }: PoolOptions = {}): Pool {
  // A stack: the most recently used connection is acquired first, so that surplus ones expire.
  const idle: Connection[] = []
  let closed = false
  let closing: NodeJS.Timeout | undefined

  function release(connection: Connection): void {
    if (closed || idle.length >= maxIdle) return void connection.destroy()
    idle.push(connection)
    if (idleMs !== undefined) closing ??= setTimeout(closeExpired, idleMs, idleMs).unref()
  }

  /** The oldest connections come first. */
  function closeExpired(idleMs: number): void {
    closing = undefined
    const now = performance.now()
    while (idle[0] && now - idle[0].idleSinceMs >= idleMs - 1) idle.shift()!.destroy()
    if (idle[0]) closing = setTimeout(closeExpired, idleMs - (now - idle[0].idleSinceMs), idleMs).unref()
  }

  function closeIdle(): void {
    for (const connection of [...idle]) connection.destroy()
  }

  return {
    acquire(repeatable) {
      while (idle.at(-1)?.socket.destroyed) idle.pop()
      const last = idle.at(-1)
      if (!last) return null
      if (!repeatable && performance.now() - last.idleSinceMs > last.keepAliveMs / 2) return null
      return idle.pop()!
    },
    async open() {
      let connection: Connection | null = null
      const onread = {
        buffer: readBuffer,
        callback(bytes: number) {
          connection?.receive(readBuffer.subarray(0, bytes))
          return true
        },
      }
      // TLS sockets don't support `onread` and emit `data` instead.
      const socket = await connect({ onread })
      connection = new Connection(socket, release)
      socket.once('close', () => {
        const index = idle.indexOf(connection)
        if (index >= 0) idle.splice(index, 1)
      })
      return connection
    },
    closeIdle,
    close() {
      closed = true
      clearTimeout(closing)
      closeIdle()
    },
  }
}
