import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { postJson } from '../../../src/engines/statuses/request.ts'
import { createReach } from '../../../src/platform/http/checked-lookup.ts'

const reach = createReach({ webhookAllowPrivate: true, dnsResolvers: [] })
const rules = { production: false, webhookAllowPrivate: true }
const { signal } = new AbortController()

let stop = () => {}
afterEach(() => stop())

async function answeredBy(answer: (socket: Socket) => void) {
  const host = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  stop = () => void host.close()
  host.listen(0, '127.0.0.1')
  await once(host, 'listening')
  const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}/`
  return postJson(url, { headers: {}, body: {}, rules, reach, signal })
}

test('a host that switches protocols is an error, and nothing waits for it', async () => {
  const switching = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n'
  await expect(answeredBy((socket) => socket.write(switching))).rejects.toThrow('switched protocols')
})

test('a host that only announces an answer is an error, long before the deadline', async () => {
  const announced = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  await expect(answeredBy((socket) => socket.write(announced.repeat(50)))).rejects.toThrow('before the real one')
})

test('an answer after some announcements, which ends with the connection, is read', async () => {
  const answered = answeredBy((socket) =>
    socket.end(`${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(5)}HTTP/1.1 201 Made\r\n\r\nyes`),
  )
  expect(await answered).toMatchObject({ status: 201, text: 'yes' })
})
