import { describe, expect, test } from 'vitest'
import { ask, negativeSoa, zoneOf } from './zones.ts'

const zone = zoneOf(`
  a.b.c A 192.0.2.1
  host 600 A 192.0.2.1
  host 60 A 192.0.2.2
  host TXT "x"
  c1 CNAME c2.example.com
  c2 CNAME host.example.com
  dangling CNAME missing.example.com
  empty CNAME b.c.example.com
  out CNAME www.example.net
  loop1 CNAME loop2.example.com
  loop2 CNAME loop1.example.com
  self CNAME self.example.com
  deep CNAME host.sub.example.com
  sub NS ns.example.net
  ${Array.from({ length: 20 }, (_, index) => `long${index} CNAME long${index + 1}.example.com`).join('\n')}
`)

describe('empty non-terminals', () => {
  test.each(['b.c.example.com', 'c.example.com'])('%s exists without data', (name) => {
    const { rcode, aa, answer, authority } = ask(zone, name, 'A')
    expect({ rcode, aa, answer, authority }).toEqual({
      rcode: 'NOERROR',
      aa: true,
      answer: [],
      authority: negativeSoa(),
    })
  })

  test('a name beside them does not', () => {
    expect(ask(zone, 'x.b.c.example.com', 'A').rcode).toBe('NXDOMAIN')
  })
})

describe('NODATA and NXDOMAIN', () => {
  test('both carry the SOA with the negative ttl, and only one says that the name is missing', () => {
    expect(ask(zone, 'host.example.com', 'AAAA')).toMatchObject({
      rcode: 'NOERROR',
      aa: true,
      authority: negativeSoa(),
    })
    expect(ask(zone, 'nope.example.com', 'A')).toMatchObject({ rcode: 'NXDOMAIN', aa: true, authority: negativeSoa() })
  })

  test('a type that nobody knows is NODATA', () => {
    expect(ask(zone, 'host.example.com', 65400)).toMatchObject({
      rcode: 'NOERROR',
      answer: [],
      authority: negativeSoa(),
    })
  })

  test('a name that only ends in the same letters is not below the zone', () => {
    expect(ask(zone, 'c1.example.com', 'CNAME').answer).toHaveLength(1)
  })
})

describe('the apex', () => {
  test('has the SOA and the nameservers of the service', () => {
    expect(ask(zone, 'example.com', 'SOA').answer).toEqual([
      'example.com 3600 SOA ns1.berth.example hostmaster.example.com …',
    ])
    expect(ask(zone, 'example.com', 'NS')).toMatchObject({
      aa: true,
      answer: ['example.com 3600 NS ns1.berth.example', 'example.com 3600 NS ns2.berth.example'],
    })
  })
})

describe('RRsets', () => {
  test('answer with the lowest ttl of their records', () => {
    expect(ask(zone, 'host.example.com', 'A').answer).toEqual([
      'host.example.com 60 A 192.0.2.1',
      'host.example.com 60 A 192.0.2.2',
    ])
  })
})

describe('CNAME chains', () => {
  test('are followed inside the zone', () => {
    expect(ask(zone, 'c1.example.com', 'TXT').answer).toEqual([
      'c1.example.com 300 CNAME c2.example.com',
      'c2.example.com 300 CNAME host.example.com',
      'host.example.com 300 TXT x',
    ])
  })

  test('are not followed when the CNAME itself is asked for', () => {
    expect(ask(zone, 'c1.example.com', 'CNAME').answer).toEqual(['c1.example.com 300 CNAME c2.example.com'])
  })

  test('end in NXDOMAIN or NODATA of their last name', () => {
    expect(ask(zone, 'dangling.example.com', 'A')).toMatchObject({ rcode: 'NXDOMAIN', authority: negativeSoa() })
    expect(ask(zone, 'empty.example.com', 'A')).toMatchObject({ rcode: 'NOERROR', authority: negativeSoa() })
  })

  test('end at the edge of the zone', () => {
    expect(ask(zone, 'out.example.com', 'A')).toMatchObject({
      rcode: 'NOERROR',
      answer: ['out.example.com 300 CNAME www.example.net'],
      authority: [],
    })
  })

  test('that reach a delegation are ours up to there', () => {
    expect(ask(zone, 'deep.example.com', 'A')).toMatchObject({
      aa: true,
      answer: ['deep.example.com 300 CNAME host.sub.example.com'],
      authority: ['sub.example.com 300 NS ns.example.net'],
    })
  })

  test('in a circle end', () => {
    expect(ask(zone, 'loop1.example.com', 'A').answer).toHaveLength(2)
    expect(ask(zone, 'self.example.com', 'A').answer).toHaveLength(1)
    expect(ask(zone, 'long0.example.com', 'A').answer).toHaveLength(8)
  })
})

describe('ANY', () => {
  test('gets one HINFO record (RFC 8482)', () => {
    const hinfo = Buffer.from('\x07RFC8482\x00').toString('hex')
    expect(ask(zone, 'host.example.com', 'ANY').answer).toEqual([`host.example.com 3600 HINFO ${hinfo}`])
    expect(ask(zone, 'c1.example.com', 'ANY').answer).toEqual([`c1.example.com 3600 HINFO ${hinfo}`])
  })

  test('of a name without data, or without existence, gets none', () => {
    expect(ask(zone, 'b.c.example.com', 'ANY')).toMatchObject({
      rcode: 'NOERROR',
      answer: [],
      authority: negativeSoa(),
    })
    expect(ask(zone, 'nope.example.com', 'ANY').rcode).toBe('NXDOMAIN')
  })
})
