// A TCP link to PostgreSQL that can be cut, as a server that ends, or frozen, as a network that drops every packet.
import { connect, createServer, type Server, type Socket } from 'node:net'

export type Link = {
  /** The address of the database through this link. */
  url: string
  /** Closes all connections and takes no more. */
  cut(): void
  mend(): Promise<void>
  /** Nothing passes any more, and nobody is told; what is opened meanwhile gets no answer. */
  freeze(): void
  /** New connections pass again; those that were frozen stay so. */
  thaw(): void
  close(): void
}

export async function openLink(databaseUrl: string): Promise<Link> {
  const url = new URL(databaseUrl)
  const target = Number(url.port)
  const sockets = new Set<Socket>()
  let frozen = false
  let server: Server

  const accept = (near: Socket) => {
    const far = connect(target, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    if (!frozen) near.pipe(far).pipe(near)
  }
  const open = (port: number) =>
    new Promise<void>((resolve) => {
      server = createServer(accept).listen(port, '127.0.0.1', resolve)
    })
  await open(0)
  const { port } = server!.address() as { port: number }
  url.port = String(port)

  function cut(): void {
    server.close()
    for (const socket of sockets) socket.destroy()
  }

  return {
    url: url.href,
    cut,
    mend: () => open(port),
    freeze() {
      frozen = true
      for (const socket of sockets) socket.unpipe().pause()
    },
    thaw() {
      frozen = false
    },
    close: cut,
  }
}
