// Ports for servers that are started by number.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port that nobody listens on. Not one that the system hands out by itself: before the server is there, a connection
 * of any other test could get it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const server = createServer().listen(port, '127.0.0.1')
    const open = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!open) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
