// Names that do not exist share an answer, which gets the question of each packet: it is the answer that the zone has.
import * as fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { wireName } from '../../../src/dns/packet/wire-names.ts'
import { createEncoder } from '../../../src/engines/nameserver/answer/encode.ts'
import { lookup } from '../../../src/engines/nameserver/zones/lookup.ts'
import { NameFilter } from '../../../src/engines/nameserver/zones/name-filter.ts'
import { valuesToTry } from '../../helpers/seed.ts'
import { type Message, question, type Rr, readMessage, types } from './packets.ts'
import { nowhere, type Served, serveZones, zoneOf } from './zones.ts'

const records = `
  @ MX 10 mail.example.com
  mail A 192.0.2.1
  deep.empty.name TXT "x"
  *.wild A 192.0.2.2
  *.wild MX 10 mx.a.wild.example.com
  *.wild MX 20 a.wild.example.com
  *.wild MX 30 out.example.net
  known.wild A 192.0.2.3
  *.chain CNAME mail.example.com
  *.inside CNAME a.inside.example.com
  *.loop CNAME b.loop2.example.com
  *.loop2 CNAME b.loop.example.com
  *.gone CNAME not.there.example.com
  *.apex CNAME example.com
  *.edge ALIAS shop.berth.example
  sub NS ns.sub.example.com
  sub NS ns.example.net
  ns.sub A 192.0.2.4`

let served: Served
beforeAll(async () => {
  served = await serveZones({ rateLimit: null })
})
afterAll(() => served.stop())
beforeEach(() => served.put('example.com', records))

const peer = { address: '127.0.0.1', port: 5353 }
const udp = { tcp: false, send: () => {} }
function answerTo(packet: Buffer): Message {
  const answer = served.responder.respond(packet, peer, udp)
  if (!(answer instanceof Uint8Array)) throw new Error('no answer at once')
  return readMessage(answer)
}
const askFor = (name: string, type = 'A') => answerTo(question(name, type))
// Names of wildcards are spelt as the question is; the serial grows with every test.
const shown = ({ name, type, ttl, data }: Rr) =>
  `${name.toLowerCase()} ${type} ${ttl} ${data.toString('hex', 0, type === types.SOA ? data.length - 20 : data.length)}`
const sectionsOf = ({ rcode, aa, answer, authority, additional }: Message) => ({
  rcode,
  aa,
  sections: [answer, authority, additional].map((all) => all.map(shown)),
})

/** The answer of the zone to this question alone. */
function expected(name: string, type: string) {
  const found = lookup(zoneOf(records), wireName(name), types[type]!, nowhere)
  const packet = question(name.toLowerCase(), type)
  const { octets, end } = createEncoder().encode(packet.subarray(12), wireName(name), found, 4096)
  const answer = Buffer.from(octets.subarray(0, end))
  answer[2]! |= 0x80
  return sectionsOf(readMessage(answer))
}

test('every name has the answer of its zone, whatever was asked before', () => {
  const label = fc.oneof(
    fc.constantFrom('mail', 'deep', 'empty', 'name', 'wild', 'known', 'a', 'b', 'mx', 'sub', 'ns', '*', 'www', 'edge'),
    fc.constantFrom('chain', 'inside', 'loop', 'loop2', 'gone', 'apex', 'x', 'QUITE-a-long-label-of-some-32-octets'),
  )
  const name = fc.array(label, { maxLength: 4 }).map((labels) => [...labels, 'example', 'com'].join('.'))
  const type = fc.constantFrom('A', 'AAAA', 'MX', 'TXT', 'ANY', 'DS', 'CNAME')
  fc.assert(
    fc.property(name, type, (name, type) => {
      expect(sectionsOf(askFor(name, type)), `${name} ${type}`).toEqual(expected(name, type))
    }),
    { numRuns: valuesToTry(3_000) },
  )
})

test('a shared answer has the id, the flags, the spelling and the options of its packet', () => {
  for (const name of ['one.wild.example.com', 'TWO-and-more.Wild.EXAMPLE.com', 'x.y.z.wild.example.com']) {
    const options: [number, Buffer][] = [
      [3, Buffer.alloc(0)],
      [10, Buffer.from('01020304')],
    ]
    const answer = answerTo(question(name, 'A', { id: 4711, rd: true, edns: 1232, dnssecOk: true, options }))
    expect(answer).toMatchObject({ id: 4711, rd: true, aa: true, question: { name } })
    expect(answer.answer).toMatchObject([{ name, type: 1, ttl: 300 }])
    expect(answer.opt!.options.get(3)!.toString()).toBe('ns1.berth.example')
    expect(answer.opt!.options.get(10)!.subarray(0, 8).toString()).toBe('01020304')
    expect(answer.opt!.dnssecOk).toBe(true)
    expect(answerTo(question(name, 'A', { id: 1 }))).toMatchObject({ id: 1, rd: false, opt: null })
  }
})

test('many names are one answer of the cache', () => {
  let sets = 0
  const { set } = served.cache
  served.cache.set = (hash, answer) => {
    sets++
    set(hash, answer)
  }
  try {
    for (let n = 0; n < 2_000; n++) expect(askFor(`r${n}.x${n}.example.com`).rcode).toBe('NXDOMAIN')
    for (let n = 0; n < 2_000; n++) expect(askFor(`r${n}.wild.example.com`).answer).toHaveLength(1)
    for (let n = 0; n < 2_000; n++) expect(askFor(`r${n}.wild.example.com`, 'TXT')).toMatchObject({ rcode: 'NOERROR' })
    expect(sets).toBeLessThan(10)
  } finally {
    served.cache.set = set
  }
})

describe('what changes is answered at once', () => {
  test('a name that comes, one that goes, and one below it', () => {
    const rcodes = () => ['new', 'a.new', 'b.a.new'].map((name) => askFor(`${name}.example.com`).rcode)
    expect(rcodes()).toEqual(['NXDOMAIN', 'NXDOMAIN', 'NXDOMAIN'])
    served.put('example.com', `${records}\na.new A 192.0.2.9`)
    expect(rcodes()).toEqual(['NOERROR', 'NOERROR', 'NXDOMAIN'])
    served.put('example.com', `${records}\nnew A 192.0.2.9`)
    expect(rcodes()).toEqual(['NOERROR', 'NXDOMAIN', 'NXDOMAIN'])
    served.put('example.com', records)
    expect(rcodes()).toEqual(['NXDOMAIN', 'NXDOMAIN', 'NXDOMAIN'])
    served.put('example.com', `${records}\n* A 192.0.2.9`)
    expect(rcodes()).toEqual(['NOERROR', 'NOERROR', 'NOERROR'])
  })

  test('a zone below another one', () => {
    expect(askFor('x.own.example.com').rcode).toBe('NXDOMAIN')
    served.put('own.example.com', 'x A 192.0.2.8\n*.y A 192.0.2.7')
    expect(askFor('x.own.example.com').answer).toHaveLength(1)
    expect(askFor('1.y.own.example.com').answer).toHaveLength(1)
    expect(askFor('1.z.own.example.com').authority[0]!.name).toBe('own.example.com')
    served.remove('own.example.com')
    expect(askFor('x.own.example.com').rcode).toBe('NXDOMAIN')
    expect(askFor('1.y.own.example.com').authority[0]!.name).toBe('example.com')
  })

  test('a zone where there was none', () => {
    expect(askFor('www.other.example.net').rcode).toBe('REFUSED')
    served.put('other.example.net', 'x A 192.0.2.8')
    expect(askFor('x.other.example.net').answer).toHaveLength(1)
    expect(askFor('y.other.example.net').rcode).toBe('NXDOMAIN')
    served.remove('other.example.net')
    expect(askFor('y.other.example.net').rcode).toBe('REFUSED')
  })
})

test('answers stay right when the filter begins anew', () => {
  const { filter } = served.table
  for (let n = 0; n < 3; n++) expect(askFor(`r${n}.example.com`).rcode).toBe('NXDOMAIN')
  // As it is when too many names have come and gone.
  const { era } = filter
  const full = vi.spyOn(filter, 'isFull', 'get').mockReturnValue(true)
  served.put('example.com', records)
  expect(askFor('r.example.com').rcode).toBe('NXDOMAIN')
  expect(filter.era).toBeGreaterThan(era)
  full.mockRestore()
  for (const name of ['mail.example.com', 'known.wild.example.com', 'other.wild.example.com']) {
    expect(askFor(name).answer, name).toHaveLength(1)
  }
  expect(askFor('r.example.com').rcode).toBe('NXDOMAIN')
})

test('the filter denies no name that was added, however many there are', () => {
  const filter = new NameFilter()
  const names = Array.from({ length: 50_000 }, (_, n) => wireName(`n${n}.p${n % 100}.example.com`))
  for (const name of names) filter.add(name)
  let wrong = 0
  for (const name of names) {
    const packet = Buffer.concat([Buffer.alloc(12), Buffer.from(name.toUpperCase(), 'latin1'), Buffer.alloc(4)])
    if (filter.closest(packet) !== 'unknown') wrong++
  }
  expect(wrong).toBe(0)
  const others = Array.from({ length: 10_000 }, (_, n) => question(`m${n}.example.org`, 'A'))
  expect(others.filter((packet) => filter.closest(packet) === 'nowhere').length).toBeGreaterThan(9_500)
})
