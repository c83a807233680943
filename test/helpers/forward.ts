// Forwards a port of another local address to loopback.
import { connect, createServer, type Server } from 'node:net'

export function forward(host: string, from: number, to: number): Promise<Server> {
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(from, host, () => resolve(server))
  })
}
