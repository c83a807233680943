import { describe, expect, test } from 'vitest'
import { ask, zoneOf } from './zones.ts'

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
  const name = '_acme-challenge.example.com'
  const zoneWith = (text: string) =>
    zoneOf(`${text}\n_acme-challenge 30 CHALLENGE "one"\n_acme-challenge 30 CHALLENGE "two"`)
  const both = [`${name} 30 TXT one`, `${name} 30 TXT two`]

  test('are TXT records like any other', () => {
    const found = ask(zoneWith(''), name, 'TXT')
    expect([found.answer, found.found.cacheable]).toEqual([both, true])
    expect(ask(zoneWith(''), name, 'A')).toMatchObject({ rcode: 'NOERROR', answer: [] })
  })

  test('stand beside the zone’s own texts, and before a wildcard', () => {
    const own = ask(zoneWith('_acme-challenge TXT "own"'), name, 'TXT').answer
    expect(own).toEqual([`${name} 30 TXT own`, ...both])
    expect(ask(zoneWith('* TXT "wild"'), name, 'TXT').answer).toEqual(both)
  })

  test.each(['CNAME x.example.net', 'NS ns.example.net'])('hide a %s that would lead elsewhere', (record) => {
    expect(ask(zoneWith(`_acme-challenge ${record}`), name, 'TXT')).toMatchObject({ aa: true, answer: both })
  })

  test.each([
    'a.b.example.com',
    'b.example.com',
    'x.a.b.example.com',
    'x.b.example.com',
    'www.example.com',
    'example.com',
  ])('leave the answer for %s what a wildcard makes it', (host) => {
    const text = '* TXT "wild"\n* ALIAS shop.berth.example'
    const challenged = zoneOf(`${text}\n_acme-challenge.a.b 30 CHALLENGE "one"\n_acme-challenge.www 30 CHALLENGE "two"`)
    for (const type of ['A', 'TXT', 'MX'] as const) {
      const { found: _, ...before } = ask(zoneOf(text), host, type)
      expect(ask(challenged, host, type)).toMatchObject(before)
    }
    expect(ask(challenged, '_acme-challenge.a.b.example.com', 'TXT').answer).toHaveLength(1)
  })

  test('do not cross a delegation', () => {
    const zone = zoneOf('sub NS ns.example.net\n_acme-challenge.sub 30 CHALLENGE "one"')
    expect(ask(zone, '_acme-challenge.sub.example.com', 'TXT')).toMatchObject({ aa: false, answer: [] })
  })
})
