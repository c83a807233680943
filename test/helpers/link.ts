// A TCP link to PostgreSQL that can be cut, left without a word, and mended, as a network or a server is.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export type Link = {
  /** The address of the database through the link. */
  url: string
  /** Connections are refused, and those that are open end. */
  cut(): Promise<void>
  /** Connections are accepted and never answered. */
  hush(): Promise<void>
  mend(): Promise<void>
}

export async function linkTo(databaseUrl: string): Promise<Link> {
  const url = new URL(databaseUrl)
  const target = Number(url.port)
  const sockets = new Set<Socket>()
  let server: Server | null = null

  function keep(socket: Socket): void {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }

  function join(near: Socket): void {
    const far = connect(target, '127.0.0.1')
    keep(near)
    keep(far)
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
    near.pipe(far).pipe(near)
  }

  async function open(accept: (socket: Socket) => void, port: number): Promise<number> {
    server = createServer(accept).listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  async function cut(): Promise<void> {
    const closed = server && once(server, 'close')
    server?.close()
    server = null
    for (const socket of sockets) socket.destroy()
    await closed
  }

  const port = await open(join, 0)
  url.port = String(port)
  return {
    url: url.href,
    cut,
    async hush() {
      await cut()
      await open(keep, port)
    },
    async mend() {
      await cut()
      await open(join, port)
    },
  }
}
