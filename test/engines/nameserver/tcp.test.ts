import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { closed } from '../../helpers/closed.ts'
import { until } from '../../helpers/until.ts'
import { framed, question, readMessage, sendTcp } from './packets.ts'
import { type Served, type ServedOptions, serveZones } from './zones.ts'

let served: Served
afterEach(() => served.stop())

async function start(options: ServedOptions = {}) {
  served = await serveZones(options)
  served.put('example.com', 'www A 192.0.2.1\nslow ALIAS slow.example.net')
}

test('many questions in one piece are all answered', async () => {
  await start()
  const packets = Array.from({ length: 200 }, (_, id) => framed(question('www.example.com', 'A', { id })))
  const answers = (await sendTcp(served.port, Buffer.concat(packets), 200)).map(readMessage)
  expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, id) => id))
})

test('a question octet by octet is answered', async () => {
  await start()
  const socket = connect(served.port, '127.0.0.1').setNoDelay(true)
  const answer = new Promise<Buffer>((resolve) => socket.once('data', resolve))
  for (const octet of framed(question('www.example.com', 'A'))) {
    socket.write(Buffer.from([octet]))
    // Nothing tells when the other side has read one; a few that arrive together do no harm.
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  expect(readMessage((await answer).subarray(2)).answer).toHaveLength(1)
  socket.destroy()
})

test('a client that closes its side first still gets its answer', async () => {
  await start()
  const socket = connect({ port: served.port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.end(framed(question('www.example.com', 'A')))
  await new Promise((resolve) => socket.once('end', resolve))
  expect(readMessage(Buffer.concat(chunks).subarray(2)).answer).toHaveLength(1)
})

test('an answer that must be waited for does not hold back the next', async () => {
  await start()
  const packets = [question('slow.example.com', 'A', { id: 1 }), question('www.example.com', 'A', { id: 2 })]
  const socket = connect(served.port, '127.0.0.1')
  socket.write(Buffer.concat(packets.map(framed)))
  const next = async () => readMessage(((await once(socket, 'data')) as [Buffer])[0].subarray(2))
  expect((await next()).id).toBe(2)
  served.put('example.com', 'slow ALIAS slow.example.net\nslow 60 ALIASED 192.0.2.7')
  expect(await next()).toMatchObject({ id: 1, answer: [{}] })
  socket.destroy()
})

test('more questions in flight than allowed wait their turn', async () => {
  await start({ tcp: { inFlight: 2 } })
  served.put('example.com', 'slow ALIAS slow.example.net\nslow 60 ALIASED 192.0.2.7')
  const packets = Array.from({ length: 50 }, (_, id) => framed(question('slow.example.com', 'A', { id })))
  expect(await sendTcp(served.port, Buffer.concat(packets), 50)).toHaveLength(50)
})

test('a long answer is written as it was made, not copied behind its length', async () => {
  await start()
  const records = Array.from({ length: 500 }, (_, index) => `many A 192.0.${index >> 8}.${index & 255}`)
  served.put('example.com', records.join('\n'))
  const write = vi.spyOn(Socket.prototype, 'write')
  const [answer] = await sendTcp(served.port, framed(question('many.example.com', 'A')), 1)
  const written = write.mock.calls.map(([chunk]) => chunk.length)
  write.mockRestore()
  expect(readMessage(answer!).answer).toHaveLength(500)
  expect(written).toContain(answer!.length)
  expect(written).not.toContain(answer!.length + 2)
})

test('connections that idle, or never finish a message, are closed', async () => {
  await start({ tcp: { idleMs: 200 } })
  await closed(connect(served.port, '127.0.0.1'))
  const dripping = connect(served.port, '127.0.0.1')
  // The message would take an hour.
  dripping.write(Buffer.from([255, 255]))
  const timer = setInterval(() => dripping.write(Buffer.from([1])), 50)
  await closed(dripping)
  clearInterval(timer)
})

test('a connection is not idle while the server works on its answer', async () => {
  const other: { closed?: Promise<void> } = {}
  await start({
    tcp: { idleMs: 100 },
    transfers: {
      async handle({ send, answer }) {
        // The timeout of one that was opened later is over, and so is that of this one.
        other.closed = closed(connect(served.port, '127.0.0.1'))
        await other.closed
        await send((await answer())!)
      },
    },
  })
  expect(await sendTcp(served.port, framed(question('example.com', 'AXFR')))).toHaveLength(1)
})

test('a client that reads no more is closed, which ends the work for it', async () => {
  let sent = 0
  const ended = Promise.withResolvers<void>()
  await start({
    tcp: { idleMs: 100 },
    transfers: {
      async handle({ send, signal }) {
        for (; !signal!.aborted; sent++) await send(Buffer.alloc(60_000))
        ended.resolve()
      },
    },
  })
  const socket = connect(served.port, '127.0.0.1').pause()
  socket.on('error', () => {})
  socket.write(framed(question('example.com', 'AXFR')))
  await ended.promise
  expect(sent).toBeLessThan(1_000)
  socket.destroy()
})

test('a client that closes its side leaves, and what is sent to it is not broken off', async () => {
  const left = Promise.withResolvers<void>()
  await start({
    transfers: {
      async handle({ send, signal, leaving, answer }) {
        expect(leaving!.aborted).toBe(false)
        leaving!.addEventListener('abort', () => left.resolve())
        await left.promise
        expect(signal!.aborted).toBe(false)
        await send((await answer())!)
      },
    },
  })
  const socket = connect({ port: served.port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.end(framed(question('example.com', 'AXFR')))
  await new Promise((resolve) => socket.once('end', resolve))
  expect(readMessage(Buffer.concat(chunks).subarray(2)).rcode).toBe('REFUSED')
})

test('there are so many connections and no more', async () => {
  await start({ tcp: { connectionsPerAddress: 3 } })
  const sockets = Array.from({ length: 3 }, () => connect(served.port, '127.0.0.1'))
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
  expect(await sendTcp(served.port, framed(question('www.example.com', 'A')))).toEqual([])
  expect(await served.metric('berth_nameserver_dropped_total', { reason: 'connections' })).toBe(1)
  for (const socket of sockets) socket.destroy()
  await until(async () => (await sendTcp(served.port, framed(question('www.example.com', 'A')))).length === 1)
})

test('transfers, notices and signed messages are handed over, whole', async () => {
  const kinds: string[] = []
  await start({
    transfers: {
      async handle({ message, query, tcp, send, answer }) {
        kinds.push(`${query.opcode} ${query.type} ${tcp} ${query.tsig} ${message.length}`)
        const own = await answer()
        if (own) for (let count = 0; count < 3; count++) await send(own)
      },
    },
  })
  const axfr = question('example.com', 'AXFR')
  expect(await sendTcp(served.port, framed(axfr), 3)).toHaveLength(3)
  const tsig = Buffer.concat([Buffer.from([0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0])])
  const signed = question('example.com', 'SOA', { counts: [1, 0, 0, 1], trailing: tsig })
  const answers = await sendTcp(served.port, framed(signed), 3)
  expect(readMessage(answers[0]!)).toMatchObject({ rcode: 'NOERROR', aa: true })
  const notice = connect(served.port, '127.0.0.1')
  notice.write(framed(question('example.com', 'SOA', { opcode: 4 })))
  await until(() => kinds.length === 3)
  notice.destroy()
  expect(kinds).toEqual([
    `0 252 true false ${axfr.length}`,
    `0 6 true true ${signed.length}`,
    `4 0 true false ${axfr.length}`,
  ])
})
