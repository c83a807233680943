import { describe, expect, test } from 'vitest'
import { ask, negativeSoa, zoneOf } from './zones.ts'

// The zone of RFC 4592, section 2.2.1, with our own names.
const zone = zoneOf(`
  * 3600 TXT "this is a wildcard"
  * 3600 MX 10 host1.example.com
  sub.* TXT "this is not a wildcard"
  host1 A 192.0.2.1
  _ssh._tcp.host1 SRV 0 0 22 host1.example.com
  _ssh._tcp.host2 SRV 0 0 22 host1.example.com
  subdel NS ns.example.net
  *.alias CNAME host1.example.com
`)

describe('a wildcard answers', () => {
  test('for a name that does not exist, with the name asked for as owner', () => {
    const { rcode, answer, found } = ask(zone, 'host3.example.com', 'MX')
    expect({ rcode, answer }).toEqual({
      rcode: 'NOERROR',
      answer: ['host3.example.com 3600 MX 000a host1.example.com'],
    })
    expect(found.wildcard).toBe(true)
  })

  test('for several labels at once', () => {
    expect(ask(zone, 'foo.bar.example.com', 'TXT').answer).toEqual(['foo.bar.example.com 3600 TXT this is a wildcard'])
  })

  test('with NODATA for a type it does not have', () => {
    const { rcode, answer, authority } = ask(zone, 'host3.example.com', 'A')
    expect({ rcode, answer, authority }).toEqual({ rcode: 'NOERROR', answer: [], authority: negativeSoa() })
  })

  test('with a CNAME that is followed', () => {
    expect(ask(zone, 'x.alias.example.com', 'A').answer).toEqual([
      'x.alias.example.com 300 CNAME host1.example.com',
      'host1.example.com 300 A 192.0.2.1',
    ])
  })

  test('when it is asked for by its own name', () => {
    expect(ask(zone, '*.example.com', 'TXT').answer).toEqual(['*.example.com 3600 TXT this is a wildcard'])
  })
})

describe('a wildcard does not answer', () => {
  test('for a name that exists, whatever its types', () => {
    const { rcode, answer } = ask(zone, 'host1.example.com', 'MX')
    expect({ rcode, answer }).toEqual({ rcode: 'NOERROR', answer: [] })
  })

  test('for an empty non-terminal', () => {
    const { rcode, answer } = ask(zone, '_tcp.host1.example.com', 'MX')
    expect({ rcode, answer }).toEqual({ rcode: 'NOERROR', answer: [] })
  })

  test('below a name that exists', () => {
    expect(ask(zone, 'telnet.host1.example.com', 'TXT').rcode).toBe('NXDOMAIN')
    expect(ask(zone, '_telnet._tcp.host1.example.com', 'SRV').rcode).toBe('NXDOMAIN')
  })

  test('below a delegation', () => {
    const { aa, authority } = ask(zone, 'host.subdel.example.com', 'TXT')
    expect({ aa, authority }).toEqual({ aa: false, authority: ['subdel.example.com 300 NS ns.example.net'] })
  })

  test('below another star, which exists', () => {
    expect(ask(zone, 'ghost.*.example.com', 'MX').rcode).toBe('NXDOMAIN')
  })
})
