import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { endWithResponse } from '../../src/platform/http/final-response.ts'

test('a client that reads the last words and never closes its side is disconnected', async () => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true })
  const [socket] = (await once(server, 'connection')) as [Socket]
  const closed = once(socket, 'close')
  endWithResponse(socket, 'no', 50)
  expect(await client.setEncoding('utf8').toArray()).toEqual(['no'])
  await closed
  client.destroy()
  server.close()
})
