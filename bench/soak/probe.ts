// Loaded into the node under test with --import: reports its memory, handles and event-loop delay over a socket.
import { readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapSpaceStatistics, writeHeapSnapshot } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

export type Probed = {
  memory: NodeJS.MemoryUsage
  /** Bytes of each space of V8's heap. */
  spaces: Record<string, number>
  handles: number
  descriptors: number
  /** CPU time of all threads since the start. */
  cpuMs: number
  /** Since the last request. */
  delayP99Ms: number
}

const path = process.env.SOAK_PROBE
if (isMainThread && path) {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  rmSync(path, { force: true })
  const look = (): Probed => {
    const spaces = getHeapSpaceStatistics().map((space) => [space.space_name, space.space_size])
    const { user, system } = process.cpuUsage()
    const probed = {
      memory: process.memoryUsage(),
      spaces: Object.fromEntries(spaces),
      handles: process.getActiveResourcesInfo().length,
      descriptors: readdirSync('/proc/self/fd').length,
      cpuMs: (user + system) / 1000,
      delayP99Ms: delay.percentile(99) / 1e6,
    }
    delay.reset()
    return probed
  }
  createServer((request, response) => {
    if (request.url === '/collect') (globalThis as { gc?(): void }).gc?.()
    if (request.url === '/snapshot') writeHeapSnapshot(`${path}-${Date.now()}.heapsnapshot`)
    response.end(JSON.stringify(look()))
  })
    .listen(path)
    .unref()
}
