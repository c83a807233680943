// DNAME records: every name below one is answered with a CNAME to the same name below its target (RFC 6672).
import { describe, expect, test } from 'vitest'
import { ask, negativeSoa, zoneOf } from './zones.ts'

const long = Array.from({ length: 3 }, () => 'x'.repeat(60)).join('.')
const zone = zoneOf(`
  moved DNAME new.example.com
  moved A 192.0.2.1
  abroad DNAME example.net
  deep.tree DNAME example.com
  far DNAME ${long}.example.org
  host.new A 192.0.2.2
  *.wild.new A 192.0.2.3
  alias CNAME host.moved.example.com
  loop DNAME other.example.com
  other DNAME loop.example.com`)

const hex = (name: string) =>
  `${name
    .split('.')
    .map((label) => `${label.length.toString(16).padStart(2, '0')}${Buffer.from(label).toString('hex')}`)
    .join('')}00`
const dname = (name: string, target: string) => `${name}.example.com 300 DNAME ${hex(target)}`

describe('a name below a DNAME', () => {
  test('is answered with the DNAME, a CNAME and what that leads to', () => {
    expect(ask(zone, 'host.moved.example.com', 'A')).toMatchObject({
      rcode: 'NOERROR',
      aa: true,
      answer: [
        dname('moved', 'new.example.com'),
        'host.moved.example.com 300 CNAME host.new.example.com',
        'host.new.example.com 300 A 192.0.2.2',
      ],
    })
    expect(ask(zone, 'a.wild.moved.example.com', 'A').answer.at(-1)).toBe('a.wild.new.example.com 300 A 192.0.2.3')
    expect(ask(zone, 'alias.example.com', 'A').answer).toHaveLength(4)
  })

  test('that the target does not have is NXDOMAIN behind the chain', () => {
    expect(ask(zone, 'none.moved.example.com', 'A')).toMatchObject({
      rcode: 'NXDOMAIN',
      answer: [dname('moved', 'new.example.com'), 'none.moved.example.com 300 CNAME none.new.example.com'],
      authority: negativeSoa(),
    })
  })

  test('leads out of the zone, or ends at the CNAME that was asked for', () => {
    const chain = [dname('abroad', 'example.net'), 'a.b.abroad.example.com 300 CNAME a.b.example.net']
    expect(ask(zone, 'a.b.abroad.example.com', 'TXT')).toMatchObject({ rcode: 'NOERROR', answer: chain, authority: [] })
    expect(ask(zone, 'host.moved.example.com', 'CNAME').answer).toHaveLength(2)
    expect(ask(zone, 'host.new.deep.tree.example.com', 'A').answer.at(-1)).toBe('host.new.example.com 300 A 192.0.2.2')
  })

  test('that would be too long is YXDOMAIN with the DNAME', () => {
    const { found, answer } = ask(zone, `${long}.far.example.com`, 'A')
    expect([found.rcode, answer]).toEqual([6, [dname('far', `${long}.example.org`)]])
  })

  test('in a circle ends, and none of this is kept in the cache', () => {
    const { found } = ask(zone, 'a.loop.example.com', 'A')
    expect(found.rcode).toBe(0)
    expect(found.cacheable).toBe(false)
  })
})

test('the name of the DNAME itself has its own records', () => {
  expect(ask(zone, 'moved.example.com', 'A').answer).toEqual(['moved.example.com 300 A 192.0.2.1'])
  expect(ask(zone, 'moved.example.com', 'DNAME').answer).toEqual([dname('moved', 'new.example.com')])
  expect(ask(zone, 'moved.example.com', 'TXT')).toMatchObject({
    rcode: 'NOERROR',
    answer: [],
    authority: negativeSoa(),
  })
})

test('a DNAME of the domain itself answers for www', () => {
  const { answer } = ask(zoneOf('@ DNAME example.net'), 'www.example.com', 'A')
  expect(answer.at(-1)).toBe('www.example.com 300 CNAME www.example.net')
})
