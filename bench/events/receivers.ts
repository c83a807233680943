// Fifty webhook receivers in one process, each on its own port: they respond with 204 and record when events arrive.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from '../children.ts'

export type Received = { requests: number; events: number; delaysMs: number[] }

const count = Number(process.env.RECEIVERS)
let requests = 0
let delays = new Map<string, number>()

async function listen(): Promise<Server> {
  const server = createServer((request, response) => {
    const atMs = performance.timeOrigin + performance.now()
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      requests++
      const id = request.headers['webhook-id'] as string
      if (!delays.has(id)) {
        // createdAt is the start of the transaction, so this is slightly more than the time from commit to attempt.
        const { createdAt } = JSON.parse(Buffer.concat(chunks).toString())
        delays.set(id, atMs - Date.parse(createdAt))
      }
      response.writeHead(204).end()
    })
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const servers = await Promise.all(Array.from({ length: count }, listen))

function answer(question: 'ports' | 'count' | 'order' | 'received'): number[] | number | string[] | Received {
  if (question === 'ports') return servers.map((server) => (server.address() as AddressInfo).port)
  if (question === 'count') return delays.size
  if (question === 'order') return [...delays.keys()]
  const received = { requests, events: delays.size, delaysMs: [...delays.values()] }
  requests = 0
  delays = new Map()
  return received
}

answerParent(answer, async () => {
  for (const server of servers) server.closeAllConnections()
})
