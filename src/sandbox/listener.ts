// The socket by which the host reaches a server in a sandbox.
import { once } from 'node:events'
import { chmod, rename } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'

export type Listener = { server: Server; descriptor: number; socketPath: string }

/** The host makes the socket and hands it in: in a directory of the sandbox, a link could lead us to another socket. */
export async function openListener(directory: string): Promise<Listener> {
  const server = createServer((connection) => connection.destroy())
  const bound = join(directory, 'bound.sock')
  server.listen(bound)
  await once(server, 'listening')
  await chmod(bound, 0o600)
  // Closing our end removes the name it was bound to, not the one it has by then.
  const socketPath = join(directory, 'listen.sock')
  await rename(bound, socketPath)
  // Node passes streams to a child but no listening sockets; their number is in no public property.
  const { fd: descriptor } = (server as unknown as { _handle: { fd: number } })._handle
  return { server, descriptor, socketPath }
}
