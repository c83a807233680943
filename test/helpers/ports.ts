// Reserves ports for servers that need their number before they start.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

// Below the ephemeral ports of the system. A process reserves a block of ports by listening on its first one, so that no
// other process of this or another test run can use them.
const first = 10_000
const last = 32_000
const blockSize = 200

let block: Promise<{ guard: Server; next: number; end: number }> | undefined

/** A free port that no other caller gets. */
export async function freePort(): Promise<number> {
  block ??= claimBlock()
  const mine = await block
  while (mine.next < mine.end) {
    const port = mine.next++
    const server = await listen(port)
    if (!server) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
  // The guard of the used block stays open, because servers may still listen there.
  block = undefined
  return freePort()
}

async function claimBlock() {
  const blocks = Math.floor((last - first) / blockSize)
  const offset = randomInt(blocks)
  for (let n = 0; n < blocks; n++) {
    const start = first + ((offset + n) % blocks) * blockSize
    const guard = await listen(start)
    if (!guard) continue
    guard.unref()
    return { guard, next: start + 1, end: start + blockSize }
  }
  throw new Error(`no block of ports is free between ${first} and ${last}`)
}

async function listen(port: number): Promise<Server | null> {
  const server = createServer().listen(port, '127.0.0.1')
  return once(server, 'listening').then(
    () => server,
    () => null,
  )
}
