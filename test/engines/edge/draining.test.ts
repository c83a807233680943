// An edge that is about to stop: everything is still answered, and no connection is kept for a next request.
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closed } from '../../helpers/closed.ts'
import { until } from '../../helpers/until.ts'
import { ask, type HttpsWorld, startHttpsWorld } from './https-world.ts'

let world: HttpsWorld
const draining = new AbortController()

beforeAll(async () => {
  world = await startHttpsWorld({ draining: draining.signal })
  await world.site('shop', { 'index.html': 'open', 'large.bin': Buffer.alloc(32 << 20) })
  await world.secure('shop', 'shop.test')
})
afterAll(() => world.stop())

const page = { ':path': '/', ':authority': 'shop.test' }
const get = 'GET / HTTP/1.1\r\nHost: shop.localhost\r\n\r\n'

/** A connection that had an answer and is kept for the next request. */
async function kept() {
  const socket = connect(world.port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => (text += chunk))
  const ended = closed(socket)
  socket.write(get)
  await until(() => text.endsWith('open'))
  return { socket, ended, text: () => text }
}

test('kept connections and sessions get their next answer with the word that it is the last', async () => {
  const idle = await world.session('shop.test')
  const busy = await world.session('shop.test')
  const plain = await kept()
  expect(plain.text()).toContain('Connection: keep-alive')
  expect((await ask(idle, page)).text).toBe('open')
  const stream = busy.request({ ...page, ':path': '/large.bin' })
  await once(stream, 'response')
  const told = { idle: [] as number[], busy: [] as number[] }
  idle.on('goaway', (code) => told.idle.push(code))
  busy.on('goaway', (code) => told.busy.push(code))

  draining.abort()
  await until(() => told.idle.length > 0)
  expect(told).toEqual({ idle: [0], busy: [] })
  let size = 0
  stream.on('data', (chunk) => (size += chunk.length))
  await once(stream, 'end')
  expect(size).toBe(32 << 20)
  await until(() => told.busy.length > 0)
  expect(told.busy).toEqual([0])

  plain.socket.write(get)
  await plain.ended
  expect(plain.text().match(/HTTP\/1.1 200 OK/g)).toHaveLength(2)
  expect(plain.text().slice(plain.text().indexOf('open'))).toContain('Connection: close')
})

test('new connections are answered too, by every protocol', async () => {
  expect(await world.get('shop.localhost', '/')).toMatchObject({ text: 'open', headers: { connection: 'close' } })
  const secure = await world.fetch('shop.test', '/', { headers: { connection: 'keep-alive' } })
  expect(secure).toMatchObject({ text: 'open', headers: { connection: 'close' } })
  expect((await world.get('unknown.localhost', '/')).headers.connection).toBe('close')
  const session = await world.session('shop.test')
  const goaway = once(session, 'goaway')
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(session, page)))
  expect(answers.map(({ text }) => text)).toEqual(answers.map(() => 'open'))
  expect((await goaway)[0]).toBe(0)
})
