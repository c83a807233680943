import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Http1Response, stallMs } from '../../../src/engines/edge/answer/responses.ts'
import { until } from '../../helpers/until.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Answers with so many bytes; resolves with the server's end of the first connection, once it is asked. */
async function ask(bytes: number) {
  const keepAliveTimeout = 5_000
  const options = { ServerResponse: Http1Response as unknown as typeof ServerResponse, keepAliveTimeout }
  const server = createServer(options, (_request, response) => void response.end(Buffer.alloc(bytes)))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const visitor = connect((server.address() as AddressInfo).port, '127.0.0.1')
  visitor.pause().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, Http1Response]
  return { visitor, socket: response.socket!, response }
}

test('a visitor who reads nothing of an answer is disconnected after a while', async () => {
  const { visitor, socket } = await ask(64 << 20)
  expect(socket.timeout).toBe(stallMs)
  socket.emit('timeout')
  visitor.on('error', () => {}).resume()
  await once(visitor, 'close')
})

test('a connection whose answer was read is kept for as long as any other', async () => {
  const { visitor, socket, response } = await ask(64 << 20)
  visitor.resume()
  await until(() => response.writableFinished)
  await until(() => socket.timeout !== stallMs)
  expect(socket.timeout).toBeLessThan(10_000)
  expect(socket.timeout).toBeGreaterThan(0)
  visitor.destroy()
})
