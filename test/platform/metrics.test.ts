import { Agent, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createHealth } from '../../src/platform/observe/health.ts'
import { serveMetrics } from '../../src/platform/observe/metrics.ts'

test('a client that asks without a pause does not keep the listener from ending', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<null>()
  const health = createHealth(['edge'])
  health.add('slow', () => {
    asked.resolve()
    return answer.promise
  })
  const server = await serveMetrics({ registry: new Registry(), health }, '127.0.0.1', 0)
  const { port } = server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true })
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/readyz', agent }, resolve).on('error', reject)
  })
  await asked.promise
  const closed = new Promise((resolve) => server.close(resolve))
  answer.resolve(null)
  expect((await response).resume().headers.connection).toBe('close')
  await closed
})
