// A WebSocket is closed soon after one side has left, although the other side takes nothing any more.
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../helpers/until.ts'
import { type Liar, startLiar } from './liars.ts'

let liar: Liar
beforeAll(async () => {
  liar = await startLiar(10_000, 20)
})
afterAll(() => liar.stop())

const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
const ask = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
// The beginning of a frame of 256 MiB.
const incomplete = Buffer.from([0x82, 127, 0, 0, 0, 0, 16, 0, 0, 0, 1])
const complete = Buffer.from([0x82, 1, 1])

const portOf = (socket: Socket) => (socket.address() as AddressInfo).port

/** An open WebSocket whose server has said hello. */
async function open(): Promise<{ visitor: Socket; program: Socket }> {
  liar.answer((socket, _text, count) => count === 1 && socket.write(switched))
  await until(() => liar.held === 0)
  const visitor = connect({ port: liar.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  visitor.resume().write(ask)
  await until(() => visitor.bytesRead >= switched.length)
  expect(liar.held).toBe(2)
  return { visitor, program: liar.sockets.at(-1)! }
}

test.each([
  ['between two frames', complete],
  ['within a frame', incomplete],
])('ended by the platform %s, and the visitor takes nothing', async (_where, octets) => {
  const { visitor, program } = await open()
  program.write(octets)
  await until(() => visitor.bytesRead >= switched.length + octets.length)
  liar.stopTaking(portOf(visitor))
  liar.abort()
  await until(() => liar.held === 0)
  visitor.destroy()
})

test('left by the server, and the visitor, who has ended its side, takes nothing', async () => {
  const { visitor, program } = await open()
  liar.stopTaking(portOf(visitor))
  visitor.end()
  await until(() => program.readableEnded)
  program.end(incomplete)
  await until(() => liar.held === 0)
  visitor.destroy()
})

test('left by the visitor, and the server takes nothing', async () => {
  const { visitor, program } = await open()
  liar.stopTaking((program.address() as AddressInfo).port)
  visitor.write(complete)
  visitor.resetAndDestroy()
  await until(() => liar.held === 0)
})
