import { describe, expect, test } from 'vitest'
import { ask, nowhere, zoneOf } from './zones.ts'

const v6 = '20010db8000000000000000000000080'

describe('the edge’s addresses', () => {
  test.each(['example.com', 'www.example.com'])('stand at %s while it has none of its own', (name) => {
    const zone = zoneOf('@ MX 10 mail.example.net')
    expect(ask(zone, name, 'A').answer).toEqual([`${name} 60 A 192.0.2.80`])
    expect(ask(zone, name, 'AAAA').answer).toEqual([`${name} 60 AAAA ${v6}`])
  })

  test('go with the first address, ALIAS or CNAME, each name for itself', () => {
    const zone = zoneOf('@ A 192.0.2.1\nwww CNAME host.example.net')
    expect(ask(zone, 'example.com', 'A').answer).toEqual(['example.com 300 A 192.0.2.1'])
    expect(ask(zone, 'example.com', 'AAAA').answer).toEqual([])
    expect(ask(zone, 'www.example.com', 'AAAA').answer).toEqual(['www.example.com 300 CNAME host.example.net'])
    expect(ask(zoneOf('www AAAA 2001:db8::1'), 'www.example.com', 'A').answer).toEqual([])
  })

  test('stand beside records of other types', () => {
    const zone = zoneOf('www TXT "x"')
    expect(ask(zone, 'www.example.com', 'A').answer).toEqual(['www.example.com 60 A 192.0.2.80'])
    expect(ask(zone, 'www.example.com', 'TXT').answer).toEqual(['www.example.com 300 TXT x'])
  })

  test('are what an ALIAS to a host of the edge answers with', () => {
    const zone = zoneOf('@ ALIAS shop.berth.example\n* 30 ALIAS shop.berth.example')
    expect(ask(zone, 'example.com', 'A').answer).toEqual(['example.com 60 A 192.0.2.80'])
    expect(ask(zone, 'example.com', 'AAAA').answer).toEqual([`example.com 60 AAAA ${v6}`])
    expect(ask(zone, 'any.example.com', 'A').answer).toEqual(['any.example.com 30 A 192.0.2.80'])
    expect(ask(zone, 'any.example.com', 'A').found.cacheable).toBe(true)
  })
})

describe('challenges of a certificate authority', () => {
  const around = {
    ...nowhere,
    challenges: (name: string) => (name === '\x0f_acme-challenge\x07example\x03com\0' ? ['one', 'two'] : []),
  }
  const name = '_acme-challenge.example.com'

  test('are TXT records, also where no such name is in the zone', () => {
    const found = ask(zoneOf(''), name, 'TXT', around)
    expect(found.answer).toEqual([`${name} 30 TXT one`, `${name} 30 TXT two`])
    expect(found.found.cacheable).toBe(false)
    expect(ask(zoneOf(''), name, 'A', around)).toMatchObject({ rcode: 'NOERROR', answer: [] })
  })

  test('stand beside the zone’s own texts, and before a wildcard or CNAME', () => {
    expect(ask(zoneOf(`_acme-challenge TXT "own"`), name, 'TXT', around).answer).toHaveLength(3)
    expect(ask(zoneOf('* TXT "wild"'), name, 'TXT', around).answer).toHaveLength(2)
    expect(ask(zoneOf('_acme-challenge CNAME x.example.net'), name, 'TXT', around).answer).toHaveLength(2)
  })

  test('of other names change nothing, but nothing is remembered either', () => {
    const found = ask(zoneOf(''), '_acme-challenge.www.example.com', 'TXT', around)
    expect([found.rcode, found.found.cacheable]).toEqual(['NXDOMAIN', false])
  })

  test('do not cross a delegation', () => {
    expect(ask(zoneOf('_acme-challenge NS ns.example.net'), name, 'TXT', around)).toMatchObject({
      aa: false,
      answer: [],
    })
  })
})
