// `?wait=served`: changes of zones whose response follows when both nameservers answer with them.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
let servers: Socket[]
/** What each nameserver serves; null keeps it silent. */
let serials: (number | null)[] = []
let asked = 0

function soaAnswer(query: Buffer, serial: number): Buffer {
  const answer = Buffer.concat([query, Buffer.alloc(12 + 4 + 20)])
  answer.writeUInt16BE(0x8400, 2)
  answer.writeUInt16BE(1, 6)
  let at = query.length
  for (const value of [0xc00c, 6, 1, 0, 60, 24, 0xc00c, 0xc00c]) at = answer.writeUInt16BE(value, at)
  answer.writeUInt32BE(serial, at)
  return answer
}

beforeAll(async () => {
  servers = await Promise.all(
    [0, 1].map(async (index) => {
      const socket = createSocket('udp4').bind(0, '127.0.0.1')
      await once(socket, 'listening')
      socket.on('message', (query, from) => {
        asked++
        const serial = serials[index]
        if (serial != null) socket.send(soaAnswer(query, serial), from.port, from.address)
      })
      return socket
    }),
  )
  const listen = servers.map((socket) => `127.0.0.1:${socket.address().port}`).join()
  api = await startApi({ NAMESERVER_LISTEN: listen, DATABASE_POOL: '2' })
  await api.call('POST', '/projects', { body: { name: 'site', repo: 'acme/site' } })
  await api.call('POST', '/domains', { body: { project: 'site', name: 'waits.com' } })
})
afterAll(async () => {
  await api?.stop()
  for (const socket of servers ?? []) socket.close()
})

const body = (name: string) => ({ type: 'A', name, value: '192.0.2.1' })
const served = ({ headers }: Answer) => headers['zone-served']
const serialOf = async () => (await api.db.domain.findFirstOrThrow({ where: { name: 'waits.com' } })).serial
const change = (name: string) => api.call('POST', '/dns/waits.com/records?wait=served', { body: body(name) })
const records = async () => (await api.call('GET', '/dns/waits.com/records')).body.records

test('more changes than the database has connections wait, hold none of them, and are answered when both have them', async () => {
  const serial = await serialOf()
  serials = [serial + 100, serial]
  let answered = 0
  const made = Array.from({ length: 5 }, (_, index) => change(`a${index}`).finally(() => answered++))
  await until(async () => (await records()).length === 5)
  asked = 0
  await until(() => asked >= 20)
  expect(answered).toBe(0)
  expect(await records()).toHaveLength(5)
  serials = [serial + 5, serial + 5]
  for (const answer of await Promise.all(made)) expect([answer.status, served(answer)]).toEqual([201, 'true'])
})

test('every kind of change can wait', async () => {
  serials = [(await serialOf()) + 100, (await serialOf()) + 100]
  const [{ id }] = await records()
  const path = `/dns/waits.com/records/${id}`
  const file = { body: 'd A 192.0.2.4', headers: { 'content-type': 'text/dns', 'if-match': '*' } }
  for (const [method, address, options] of [
    ['PATCH', path, { body: { ttl: 60 } }],
    ['DELETE', path, {}],
    ['PUT', '/dns/waits.com/rrsets/b/A', { body: { values: ['192.0.2.2'] } }],
    ['POST', '/dns/waits.com/records/batch', { body: { create: [body('c')] } }],
    ['PUT', '/dns/waits.com/zone', file],
    ['DELETE', '/dns/waits.com/rrsets/d/A', {}],
  ] as const) {
    const answer = await api.call(method, `${address}?wait=served`, options)
    expect([answer.status < 300, served(answer)], `${method} ${address}: ${answer.text}`).toEqual([true, 'true'])
  }
})

test('what changes nothing, or fails, does not wait, and other values are refused', async () => {
  asked = 0
  const batch = { body: { create: [body('e')] } }
  const dry = await api.call('POST', '/dns/waits.com/records/batch?wait=served&dryRun=true', batch)
  const bad = await api.call('POST', '/dns/waits.com/records?wait=served', { body: { ...body('e'), value: 'x' } })
  const plain = await api.call('POST', '/dns/waits.com/records', { body: body('e') })
  const answers = [dry, bad, plain].map((one) => [one.status, served(one)])
  expect(answers).toEqual([
    [200, undefined],
    [422, undefined],
    [201, undefined],
  ])
  expect((await api.call('POST', '/dns/waits.com/records?wait=5', { body: body('f') })).status).toBe(422)
  expect(asked).toBe(0)
})

test('a server that closes answers with what there is', async () => {
  serials = [1, null]
  asked = 0
  const made = change('late')
  await until(() => asked >= 2)
  await api.app.close()
  const answer = await made
  expect([answer.status, served(answer)]).toEqual([201, 'false'])
})
