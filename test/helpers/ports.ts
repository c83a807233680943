// Ports for servers that are started by number.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Not those that the system hands out by itself: before the server is there, a connection of any other test could get
// one. Each process of the tests has some of its own, and gives out each of them once.
const first = 10_000
const perProcess = 4_400
const own = first + (Number(process.env.VITEST_POOL_ID ?? 0) % 5) * perProcess
let next = randomInt(perProcess)

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = own + (next++ % perProcess)
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
