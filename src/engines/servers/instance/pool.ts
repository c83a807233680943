// The idle connections to one run of a server.
import type { Connect } from '../../../sandbox/sandbox.ts'
import { Connection } from './connection.ts'
import { partBytes } from './parts.ts'

export type Pool = {
  /**
   * An idle connection, or null. A server may close one just when it is used again, so for a request that cannot be
   * repeated it is one that the server has promised to keep for longer.
   */
  take(repeatable: boolean): Connection | null
  open(): Promise<Connection>
  closeIdle(): void
  /** Idle connections are closed, the others when they are idle. */
  close(): void
}

export type PoolOptions = {
  /** How long a connection is kept without a request; without it, until the server closes it. */
  idleMs?: number
}

const maxIdle = 64
// All connections read into it: memory for each read would cost more than the reading, above all its collection.
const readBuffer = Buffer.allocUnsafeSlow(partBytes)

export function createPool(connect: Connect, { idleMs }: PoolOptions = {}): Pool {
  // The last one used is at the end and taken first, so that those that are not needed get old and are closed.
  const idle: Connection[] = []
  let closed = false
  let closing: NodeJS.Timeout | undefined

  function keep(connection: Connection): void {
    if (closed || idle.length >= maxIdle) return void connection.destroy()
    idle.push(connection)
    if (idleMs !== undefined) closing ??= setTimeout(closeOld, idleMs, idleMs).unref()
  }

  /** The oldest are at the beginning. */
  function closeOld(idleMs: number): void {
    closing = undefined
    const now = performance.now()
    while (idle[0] && now - idle[0].idleSinceMs >= idleMs - 1) idle.shift()!.destroy()
    if (idle[0]) closing = setTimeout(closeOld, idleMs - (now - idle[0].idleSinceMs), idleMs).unref()
  }

  function closeIdle(): void {
    for (const connection of [...idle]) connection.destroy()
  }

  return {
    take(repeatable) {
      while (idle.at(-1)?.socket.destroyed) idle.pop()
      const last = idle.at(-1)
      if (!last) return null
      if (!repeatable && performance.now() - last.idleSinceMs > last.promisedMs / 2) return null
      return idle.pop()!
    },
    async open() {
      let connection: Connection | null = null
      const onread = {
        buffer: readBuffer,
        callback(bytes: number) {
          connection?.heard(readBuffer.subarray(0, bytes))
          return true
        },
      }
      // Connections of TLS cannot read by it and have the event `data`.
      const socket = await connect({ onread })
      connection = new Connection(socket, keep)
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
