// Streams whose readers do not read: memory is bounded for each and for all, and nobody holds one for ever.
import { type AddressInfo, connect, type Socket } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import { afterEach, expect, test, vi } from 'vitest'
import { createStreams, type EventStream } from '../../../src/api/http/live/sse.ts'
import { createShares, decorateShares, releaseShares } from '../../../src/api/http/shares/shares.ts'
import { closed } from '../../helpers/closed.ts'
import { until } from '../../helpers/until.ts'

let app: FastifyInstance | undefined
const sockets: Socket[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const socket of sockets.splice(0)) socket.destroy()
  await app?.close()
})

/** A server of streams alone, which hands each one to the test. */
async function serve(maxUnreadOfAll?: number) {
  const shares = createShares({ requestsPerOwner: 100, requests: 100, waits: 0, streams: 100 }, () => 100)
  const streams = createStreams(shares, maxUnreadOfAll)
  const opened: EventStream[] = []
  app = Fastify()
  app.decorateRequest('inFlight', null)
  decorateShares(app)
  app.addHook('onRequest', async (request) => shares.enter(request, 'owner'))
  releaseShares(app, shares)
  app.get('/', async (request, reply) => {
    opened.push(await streams.open(request, reply))
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return {
    shares,
    async open(requests = 1) {
      const before = opened.length
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      socket.pause()
      socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(requests))
      await until(() => opened.length === before + requests)
      return { socket, closed: closed(socket), streams: opened.slice(before) }
    },
  }
}

const frame = 'x'.repeat(20_000)

/** Writes until the kernel takes no more, several times in a row. */
async function fill(stream: EventStream): Promise<void> {
  for (let stuck = 0; stuck < 4; ) {
    expect(stream.write(frame)).toBe(true)
    stuck = await Promise.race([stream.drained().then(() => 0), soon().then(() => stuck + 1)])
  }
}
const soon = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))))

test('a reader that reads nothing between two signs of life is disconnected, and one that reads is not', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { shares, open } = await serve()
  const [stuck, reading] = [await open(), await open()]
  await fill(stuck.streams[0]!)
  reading.socket.resume()
  for (let n = 0; n < 50; n++) reading.streams[0]!.write(frame)
  await reading.streams[0]!.drained()
  const beat = async () => {
    vi.advanceTimersByTime(15_000)
    await soon()
    await reading.streams[0]!.drained()
  }
  await beat()
  expect(stuck.streams[0]!.signal.aborted).toBe(false)
  await until(() => beat().then(() => stuck.streams[0]!.signal.aborted))
  await until(() => shares.open.streams === 1)
  for (let n = 0; n < 10; n++) await beat()
  expect(reading.streams[0]!.signal.aborted).toBe(false)
  expect(reading.streams[0]!.write(frame)).toBe(true)
})

test('above the bound of all, those with most unread data are disconnected', async () => {
  const { shares, open } = await serve(1_500_000)
  const readers = [await open(), await open(), await open()]
  const [first, second, third] = readers.map(({ streams }) => streams[0]!)
  for (const stream of [first!, second!, third!]) await fill(stream)
  for (let n = 0; n < 40; n++) second!.write(frame)
  expect([first, second, third].map((stream) => stream!.signal.aborted)).toEqual([false, false, false])
  for (let n = 0; n < 40 && !second!.signal.aborted; n++) first!.write(frame)
  expect([first, second, third].map((stream) => stream!.signal.aborted)).toEqual([false, true, false])
  await until(() => shares.open.streams === 2)
})

test('a reader with a megabyte unread is disconnected', async () => {
  const { shares, open } = await serve()
  const { streams } = await open()
  await fill(streams[0]!)
  let sent = 0
  while (streams[0]!.write(frame)) sent += frame.length
  expect(sent).toBeLessThanOrEqual(1 << 20)
  await until(() => shares.open.streams === 0)
})

test('an ended stream that is not read to its end is cut off, and counts until then', async () => {
  const { shares, open } = await serve()
  const reader = await open()
  await fill(reader.streams[0]!)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  reader.streams[0]!.end()
  expect(shares.open.streams).toBe(1)
  vi.advanceTimersByTime(10_000)
  vi.useRealTimers()
  await until(() => shares.open.streams === 0)
  reader.socket.resume()
  await reader.closed
})

test('streams queued behind another on one connection end with it', async () => {
  const { shares, open } = await serve()
  const { socket, streams } = await open(5)
  expect(shares.open).toEqual({ requests: 0, waits: 0, streams: 5 })
  socket.destroy()
  await until(() => streams.every(({ signal }) => signal.aborted))
  expect(shares.open).toEqual({ requests: 0, waits: 0, streams: 0 })
  expect(shares.usage('owner')).toEqual({ waits: 0, streams: 0 })
})
