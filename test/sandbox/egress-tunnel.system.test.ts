// What passes a tunnel of the proxy is whole, however slowly it is read, and is not kept in memory meanwhile.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readBoundary } from '../../src/sandbox/network/addresses.ts'
import { type EgressProxy, openEgress } from '../../src/sandbox/network/egress.ts'
import { memoryInUse } from '../helpers/heap.ts'
import { until } from '../helpers/until.ts'

const whole = randomBytes(24 << 20)
const hashOf = (content: Buffer) => createHash('sha256').update(content).digest('hex')
const opened = new Set<Socket>()
const far = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  opened.add(socket)
  socket.on('error', () => {})
  socket.once('data', (asked) => {
    if (String(asked) === 'send') socket.end(whole)
    if (String(asked) === 'reset') socket.write('a part', () => socket.resetAndDestroy())
    if (String(asked) === 'drip') {
      const timer = setInterval(() => socket.write('x'), 1)
      socket.once('close', () => clearInterval(timer))
    }
  })
})

let directory: string
let proxy: EgressProxy
let authority: string
beforeAll(async () => {
  far.listen(0, '127.0.0.1')
  await once(far, 'listening')
  authority = `127.0.0.1:${(far.address() as AddressInfo).port}`
  directory = await mkdtemp(join(tmpdir(), 'berth-egress-'))
  const network = { reach: 'registry' as const, private: [authority] }
  proxy = await openEgress(join(directory, 'proxy'), network, readBoundary([]), async () => [])
})
afterAll(async () => {
  await proxy.close()
  far.close()
  for (const socket of opened) socket.destroy()
  await rm(directory, { recursive: true })
})

async function tunnel(what = 'send'): Promise<Socket> {
  // It reads nothing ahead of whoever reads it.
  const options = { path: join(directory, 'proxy'), readableHighWaterMark: 1 }
  const createConnection = () => connect(options)
  const asked = request({ createConnection, method: 'CONNECT', path: authority }).end()
  const [, socket] = (await once(asked, 'connect')) as [unknown, Socket]
  socket.write(what)
  return socket
}

async function readAll(socket: Socket, pauseMs: number): Promise<string> {
  const hash = createHash('sha256')
  let sinceBytes = 0
  for await (const chunk of socket) {
    hash.update(chunk)
    sinceBytes += chunk.length
    if (pauseMs > 0 && sinceBytes > 2 << 20) {
      sinceBytes = 0
      await delay(pauseMs)
    }
  }
  return hash.digest('hex')
}

test('several at once are whole, also where one is read slowly', async () => {
  const sockets = await Promise.all([tunnel(), tunnel(), tunnel()])
  const read = await Promise.all(sockets.map((socket, index) => readAll(socket, index * 30)))
  expect(read).toEqual(Array(3).fill(hashOf(whole)))
})

test('one that nobody reads stops the sender, and ends with whoever opened it', async () => {
  const before = opened.size
  const socket = await tunnel()
  await until(() => opened.size > before)
  const sender = [...opened].at(-1)!
  let sent = -1
  // Until the buffers of the kernel are full.
  await until(async () => {
    const last = sent
    await delay(100)
    sent = sender.bytesWritten
    return sent === last
  })
  expect(sender.writableLength).toBeGreaterThan(whole.length / 2)
  socket.destroy()
  await until(() => sender.destroyed)
})

test('one that gets a byte at a time, and is not read, takes no more memory than what came', async () => {
  const count = 4
  const before = { opened: opened.size, bytes: memoryInUse().arrayBuffers }
  const sockets = await Promise.all(Array.from({ length: count }, () => tunnel('drip')))
  await until(() => opened.size === before.opened + count)
  const senders = [...opened].slice(-count)
  await until(() => senders.every(({ bytesWritten }) => bytesWritten > 1_500))
  expect(memoryInUse().arrayBuffers - before.bytes).toBeLessThan(20 << 20)
  // And goes on as soon as it is read.
  for (const socket of sockets) {
    let read = 0
    socket.on('data', (chunk) => {
      read += chunk.length
    })
    await until(() => read > 2_000)
  }
  for (const socket of sockets) socket.destroy()
  await until(() => senders.every(({ destroyed }) => destroyed))
})

test('one that the other side resets is not ended with words of the proxy', async () => {
  const socket = await tunnel('reset')
  socket.on('error', () => {})
  let read = ''
  socket.on('data', (chunk) => {
    read += chunk
  })
  await once(socket, 'close')
  expect('a part'.startsWith(read)).toBe(true)
})
