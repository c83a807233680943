import { describe, expect, test } from 'vitest'
import { ask, negativeSoa, zoneOf } from './zones.ts'

const zone = zoneOf(`
  sub NS ns1.sub.example.com
  sub NS ns2.sub.example.com
  sub NS ns.other.example.com
  sub NS ns.example.net
  sub DS 12345 13 2 ${'AB'.repeat(32)}
  sub TXT "hidden"
  ns1.sub A 192.0.2.11
  ns1.sub AAAA 2001:db8::11
  ns2.sub A 192.0.2.12
  www.sub A 192.0.2.13
  deeper.sub NS ns.example.org
  ns.other A 192.0.2.14
  bare NS ns.example.net
  deep.er.cut NS ns.example.net
`)
const ns = [
  'sub.example.com 300 NS ns1.sub.example.com',
  'sub.example.com 300 NS ns2.sub.example.com',
  'sub.example.com 300 NS ns.other.example.com',
  'sub.example.com 300 NS ns.example.net',
]
const referral = { rcode: 'NOERROR', aa: false, answer: [], authority: ns }

describe('a delegation', () => {
  test.each([
    ['sub.example.com', 'A'],
    ['sub.example.com', 'NS'],
    ['sub.example.com', 'SOA'],
    ['sub.example.com', 'TXT'],
    ['sub.example.com', 'ANY'],
    ['www.sub.example.com', 'A'],
    ['ns1.sub.example.com', 'A'],
    ['nothing.below.sub.example.com', 'MX'],
    ['x.deeper.sub.example.com', 'A'],
    ['www.sub.example.com', 'DS'],
  ] as const)('refers %s %s to the child', (name, type) => {
    expect(ask(zone, name, type)).toMatchObject(referral)
  })

  test('comes with the addresses of nameservers inside the zone as glue, and no others', () => {
    expect(ask(zone, 'www.sub.example.com', 'A').additional).toEqual([
      'ns1.sub.example.com 300 A 192.0.2.11',
      'ns1.sub.example.com 300 AAAA 20010db8000000000000000000000011',
      'ns2.sub.example.com 300 A 192.0.2.12',
      'ns.other.example.com 300 A 192.0.2.14',
    ])
  })

  test('answers for DS itself, as the parent', () => {
    expect(ask(zone, 'sub.example.com', 'DS')).toMatchObject({
      rcode: 'NOERROR',
      aa: true,
      answer: [`sub.example.com 300 DS 30390d02${'ab'.repeat(32)}`],
      authority: [],
    })
    expect(ask(zone, 'bare.example.com', 'DS')).toMatchObject({ aa: true, answer: [], authority: negativeSoa() })
  })

  test('leaves the names above it alone', () => {
    expect(ask(zone, 'er.cut.example.com', 'A')).toMatchObject({ rcode: 'NOERROR', aa: true, authority: negativeSoa() })
    expect(ask(zone, 'other.cut.example.com', 'A')).toMatchObject({ rcode: 'NXDOMAIN', aa: true })
    expect(ask(zone, 'ns.other.example.com', 'A')).toMatchObject({
      aa: true,
      answer: ['ns.other.example.com 300 A 192.0.2.14'],
    })
  })
})
