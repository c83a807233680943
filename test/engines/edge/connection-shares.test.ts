// Connections of visitors from several addresses of the loopback network.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createConnectionShares, maxConnections } from '../../../src/platform/database/connection-shares.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

const most = 60
let world: World
let host: string
beforeAll(async () => {
  world = await startWorld({ connectionShares: createConnectionShares(most) })
  host = await world.site('shared', { 'index.html': 'here' })
})
afterAll(() => world.stop())

const opened = new Set<Socket>()
afterEach(() => {
  for (const socket of opened) socket.destroy()
})

function open(localAddress: string, port = world.port): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  opened.add(socket)
  return socket.on('error', () => {}).on('close', () => opened.delete(socket))
}

/** Whether a request of that address is answered. */
async function isAnswered(localAddress: string): Promise<boolean> {
  const socket = open(localAddress)
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const answer = await socket
    .setEncoding('utf8')
    .toArray()
    .catch(() => [])
  return answer.join('').startsWith('HTTP/1.1 200')
}

test('whoever opens as many connections as they can leaves some to all others', async () => {
  const hogs = ['127.0.0.2', '127.0.0.3']
  for (const hog of hogs) {
    for (let n = 0; n < 2 * most; n++) open(hog)
    await until(() => opened.size < most)
    expect(await isAnswered(hog)).toBe(false)
  }
  for (let n = 0; n < 20; n++) expect(await isAnswered('127.0.0.1')).toBe(true)
  for (const socket of opened) socket.destroy()
  await until(() => isAnswered(hogs[0]!))
})

test('one address alone holds half of them, and again when they are closed', async () => {
  const server = createServer(() => {})
  createConnectionShares(most).guard(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (let round = 0; round < 2; round++) {
    const sockets = Array.from({ length: most }, () => open('127.0.0.4', port))
    await until(() => opened.size === most / 2)
    for (const socket of sockets) socket.destroy()
    await until(async () => (await new Promise<number>((r) => server.getConnections((_, n) => r(n)))) === 0)
  }
  server.close()
})

test('they are bounded by how many files the process may open', () => {
  expect(maxConnections()).toBeGreaterThan(100)
})
