// A link to PostgreSQL that can be cut, or hang: it then accepts bytes and drops them.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type LinkMode = 'pass' | 'cut' | 'hang'

export type Link = { url: string; set(mode: LinkMode): void; close(): void }

/** `url` is the URL of a database on loopback. */
export async function openLink(databaseUrl: string): Promise<Link> {
  const url = new URL(databaseUrl)
  const target = Number(url.port)
  const sockets = new Set<Socket>()
  let mode: LinkMode = 'pass'
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    if (mode === 'cut') return void near.destroy()
    const pass = (to: Socket) => (chunk: Buffer) => void (mode === 'pass' && to.write(chunk))
    near.on('data', pass(far)).on('close', () => far.destroy())
    far.on('data', pass(near)).on('close', () => near.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.port = String((server.address() as AddressInfo).port)
  function set(next: LinkMode): void {
    mode = next
    // A connection that hung has lost bytes, so it can't be used again.
    if (next !== 'hang') for (const socket of sockets) socket.destroy()
  }
  return {
    url: url.href,
    set,
    close() {
      set('cut')
      server.close()
    },
  }
}
