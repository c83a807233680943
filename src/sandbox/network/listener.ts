// The unix socket through which the host reaches a server in a sandbox.
import { once } from 'node:events'
import { chmod, rename } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'

export type Listener = { server: Server; descriptor: number; socketPath: string }

/** The host creates the socket and passes it in. In a sandbox's directory, a link could lead to another socket. */
export async function openListener(directory: string): Promise<Listener> {
  const server = createServer((connection) => connection.destroy())
  const bound = join(directory, 'bound.sock')
  server.listen(bound)
  await once(server, 'listening')
  await chmod(bound, 0o600)
  // Renamed, because closing the server removes the path it was bound to.
  const socketPath = join(directory, 'listen.sock')
  await rename(bound, socketPath)
  // Node can't pass listening sockets to a child and has no public property for their descriptor.
  const { fd: descriptor } = (server as unknown as { _handle: { fd: number } })._handle
  return { server, descriptor, socketPath }
}
