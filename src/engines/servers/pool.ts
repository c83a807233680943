// The idle connections to one run of a server.
import type { Connect } from '../../sandbox/sandbox.ts'
import { Connection } from './connection.ts'
import { partBytes } from './parts.ts'

export type Pool = {
  /**
   * An idle connection, or null. A server may close one just when it is used again, so for a request that cannot be
   * repeated it is one that the server has promised to keep for longer.
   */
  take(repeatable: boolean): Connection | null
  open(): Promise<Connection>
  /** Idle connections are closed, the others when they are idle. */
  close(): void
}

const mostIdle = 64
// All connections read into it: memory for each read would cost more than the reading, above all its collection.
const readBuffer = Buffer.allocUnsafeSlow(partBytes)

export function createPool(connect: Connect): Pool {
  // The last one used is at the end and taken first, so that those that are not needed get old and are closed.
  const idle: Connection[] = []
  let closed = false

  function keep(connection: Connection): void {
    if (closed || idle.length >= mostIdle) connection.destroy()
    else idle.push(connection)
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
      const socket = await connect({ onread })
      connection = new Connection(socket, keep)
      socket.once('close', () => {
        const index = idle.indexOf(connection)
        if (index >= 0) idle.splice(index, 1)
      })
      return connection
    },
    close() {
      closed = true
      for (const connection of [...idle]) connection.destroy()
    },
  }
}
