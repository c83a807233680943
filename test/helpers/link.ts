// A TCP link to PostgreSQL that can be cut, like a server that exits, or frozen, like a network that drops every packet.
import { connect, createServer, type Server, type Socket } from 'node:net'

export type Link = {
  /** The URL of the database through this link. */
  url: string
  /** Closes all connections and accepts no more. */
  cut(): void
  mend(): Promise<void>
  /** Silently stops passing data; new connections get no response. */
  freeze(): void
  /** Passes new connections again; frozen ones stay frozen. */
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
