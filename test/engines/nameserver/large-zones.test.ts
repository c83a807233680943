// Zones that are too large to be built at once: their questions wait, and are answered like those of small ones.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { changedNames } from '../../../src/engines/nameserver/transfer/changed-lines.ts'
import { addressesIn, askUdp } from './packets.ts'
import { ask, type Served, serveZones, zoneOf } from './zones.ts'

let served: Served
beforeEach(async () => {
  served = await serveZones({ rateLimit: null })
})
afterEach(() => served.stop())

const hosts = (count: number, third = 0) =>
  Array.from({ length: count }, (_, n) => `h${n} A 10.${third}.${n >> 8}.${n & 255}`).join('\n')
const special = `
  @ ALIAS target.example.net
  @ 60 ALIASED 192.0.2.77
  *.wild A 192.0.2.5
  a.empty.parent TXT "x"
  sub NS ns.example.net
  sub DS 1 13 2 ${'00'.repeat(32)}
  c CNAME h7.example.com`
const addressOf = async (name: string) => addressesIn((await askUdp(served.port, name, 'A')).answer)[0]

test('many questions at once wait for one building, and all have the answer of the zone', async () => {
  served.put('example.com', `${hosts(8_000)}\n${special}`)
  const source = served.table.get('example.com')!
  expect(served.table.ready(source)).toBeNull()
  const names = Array.from({ length: 50 }, (_, n) => n * 100)
  const found = await Promise.all(names.map((n) => addressOf(`h${n}.example.com`)))
  expect(found).toEqual(names.map((n) => `10.0.${n >> 8}.${n & 255}`))
  const zone = served.table.ready(source)!
  expect(zone).not.toBeNull()
  // The same zone as one that is built at once.
  const whole = zoneOf(`${hosts(8_000)}\n${special}`)
  expect([...zone.nodes.keys()]).toEqual([...whole.nodes.keys()])
  for (const [name, type] of [
    ['h1.example.com', 'A'],
    ['any.wild.example.com', 'A'],
    ['empty.parent.example.com', 'A'],
    ['missing.example.com', 'A'],
    ['x.sub.example.com', 'A'],
    ['sub.example.com', 'DS'],
    ['www.example.com', 'A'],
  ] as const) {
    const { found: one, ...shown } = ask(zone, name, type)
    const { found: other, ...expected } = ask(whole, name, type)
    expect(shown.answer, name).toEqual(expected.answer)
    expect([shown.rcode, one.authoritative], name).toEqual([expected.rcode, other.authoritative])
  }
})

test.each([
  ['c.example.com', '10.0.0.7'],
  ['any.wild.example.com', '192.0.2.5'],
  ['example.com', '192.0.2.77'],
])('the first question of all may be for %s', async (name, address) => {
  served.put('example.com', `${hosts(4_000)}\n${special}`)
  const { answer, rcode } = await askUdp(served.port, name, 'A')
  expect(rcode).toBe('NOERROR')
  expect(addressesIn(answer).at(-1)).toBe(address)
})

test('a zone that is replaced while it is built is answered as it is afterwards', async () => {
  served.put('example.com', hosts(8_000))
  const early = addressOf('h1.example.com')
  served.put('example.com', hosts(8_000, 1))
  expect(['10.0.0.1', '10.1.0.1']).toContain(await early)
  expect(await addressOf('h1.example.com')).toBe('10.1.0.1')
  served.put('example.com', 'h1 A 10.2.0.1')
  expect(await addressOf('h1.example.com')).toBe('10.2.0.1')
  served.remove('example.com')
  expect((await askUdp(served.port, 'h1.example.com', 'A')).rcode).toBe('REFUSED')
})

test('a question for another zone is answered before the large one is built', async () => {
  served.put('example.com', hosts(40_000))
  served.put('small.example.net', 'www A 192.0.2.9')
  const order: string[] = []
  await Promise.all([
    addressOf('h1.example.com').then(() => order.push('large')),
    addressOf('www.small.example.net').then(() => order.push('small')),
  ])
  expect(order).toEqual(['small', 'large'])
})

test('DS of a delegated zone is the parent’s, although that is not built yet', async () => {
  served.put('example.com', `${hosts(4_000)}\n${special}\nsub2 TXT "NS 300 sub2 x"`)
  served.put('sub.example.com', 'x A 192.0.2.2')
  served.put('sub2.example.com', 'x A 192.0.2.2')
  expect((await askUdp(served.port, 'sub.example.com', 'DS')).answer).toHaveLength(1)
  served.put('example.com', `${hosts(4_000, 1)}\nsub2 TXT "NS 300 sub2 x"`)
  expect((await askUdp(served.port, 'sub2.example.com', 'DS')).authority[0]!.name).toBe('sub2.example.com')
})

test('a change of very many lines is not compared', () => {
  const text = (third: number) => hosts(8_000, third)
  expect(changedNames(text(0), text(1))).toBeNull()
  expect(changedNames(text(0), `${text(0)}\nA 300 new 192.0.2.1`)).toEqual(new Set(['new']))
})
