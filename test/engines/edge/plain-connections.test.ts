import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { answerPlainRequests } from '../../../src/engines/edge/bare/plain-connections.ts'

test('a plain request that cannot be answered on the socket is the server’s, and the process goes on', async () => {
  const server = createServer((_request, response) => void response.writeHead(500).end('failed'))
  const plain = answerPlainRequests(server, 'connection', {
    firstTimeoutMs: 10_000,
    nextTimeoutMs: 10_000,
    answer() {
      throw new RangeError('Invalid string length')
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'keep-alive' } })
    expect([answer.status, await answer.text()]).toEqual([500, 'failed'])
  }
  plain.close()
  server.closeAllConnections()
  server.close()
})
