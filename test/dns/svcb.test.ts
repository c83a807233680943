// SVCB and HTTPS values (RFC 9460): parameters, their order and their rules.
import { describe, expect, it } from 'vitest'
import { parseRdata } from '../../src/dns/rdata/rdata.ts'
import { svcbParams } from '../../src/dns/rdata/svcb.ts'

const zone = 'example.com'
const https = (value: string) => parseRdata('HTTPS', value, zone)

describe('an HTTPS value', () => {
  for (const [about, value, canonical] of [
    ['may have no parameters', '1 .', '1 .'],
    ['may be an alias', '0 Foo.example.net.', '0 foo.example.net'],
    ['orders parameters by key', '1 . port=443 alpn=h2,h3', '1 . alpn="h2,h3" port=443'],
    ['takes quoted values', '1 . alpn="h2" port="443"', '1 . alpn="h2" port=443'],
    ['takes key names in any case', '1 . ALPN=h2', '1 . alpn="h2"'],
    [
      'keeps escaped commas inside a protocol',
      '1 . alpn="f\\\\\\\\oo\\\\,bar,h2"',
      '1 . alpn="f\\\\\\\\oo\\\\,bar,h2"',
    ],
    [
      'reads both spellings of RFC 9460 alike',
      '1 . alpn=f\\\\\\092oo\\092,bar,h2',
      '1 . alpn="f\\\\\\\\oo\\\\,bar,h2"',
    ],
    [
      'takes address hints',
      '1 . ipv6hint=2001:DB8::0 ipv4hint=192.0.2.1',
      '1 . ipv4hint=192.0.2.1 ipv6hint=2001:db8::',
    ],
    ['takes ech', '1 . ech=AEP+', '1 . ech=AEP+'],
    ['takes dohpath', '1 . dohpath=/q{?dns}', '1 . dohpath="/q{?dns}"'],
    ['takes ohttp', '1 . alpn=h2 OHTTP', '1 . alpn="h2" ohttp'],
    ['takes groups in their order', '1 . tls-supported-groups=29,23', '1 . tls-supported-groups=29,23'],
    ['names a newer key given by number', '1 . key9=\\000\\029 key8', '1 . ohttp tls-supported-groups=29'],
    ['sorts mandatory', '1 . mandatory=port,alpn alpn=h2 port=1', '1 . mandatory=alpn,port alpn="h2" port=1'],
    ['takes no-default-alpn', '1 . no-default-alpn alpn=h3', '1 . alpn="h3" no-default-alpn'],
    ['takes unlisted keys', '1 . key65333="a b" key667', '1 . key667 key65333="a b"'],
    ['names a known key given by number', '1 . key3=\\001\\187', '1 . port=443'],
  ] as const) {
    it(about, () => expect(https(value)).toEqual({ ok: true, value: canonical }))
  }

  for (const [about, value] of [
    ['a missing target', '1'],
    ['a target in quotes', '1 "."'],
    ['parameters on an alias', '0 foo.example.net port=1'],
    ['a key twice', '1 . port=1 port=2'],
    ['a key twice under two names', '1 . port=1 key3=\\001\\187'],
    ['an unknown key', '1 . foo=bar'],
    ['key65535, which is reserved', '1 . key65535=x'],
    ['a key number with a leading zero', '1 . key03=x'],
    ['inherited property names', '1 . __proto__=x'],
    ['an empty alpn', '1 . alpn'],
    ['an empty protocol', '1 . alpn=h2,,h3'],
    ['a value for no-default-alpn', '1 . alpn=h2 no-default-alpn=x'],
    ['no-default-alpn alone', '1 . no-default-alpn'],
    ['a port out of range', '1 . port=65536'],
    ['a bad IPv4 hint', '1 . ipv4hint=192.0.2'],
    ['a bad IPv6 hint', '1 . ipv6hint=192.0.2.1'],
    ['ech that is not base64', '1 . ech=A*=='],
    ['a value for ohttp', '1 . ohttp=x'],
    ['no groups', '1 . tls-supported-groups='],
    ['a group twice', '1 . tls-supported-groups=29,29'],
    ['a group out of range', '1 . tls-supported-groups=65536'],
    ['dohpath without its variable', '1 . dohpath=/q'],
    ['mandatory that names itself', '1 . mandatory=mandatory'],
    ['mandatory that names a missing key', '1 . mandatory=port'],
    ['mandatory that names a key twice', '1 . mandatory=port,port port=1'],
    ['malformed octets for a known key', '1 . key3=\\001'],
    ['text that goes on after a quote', '1 . alpn="h2"x'],
    ['a quoted string without a key', '1 . "h2"'],
  ] as const) {
    it(`refuses ${about}`, () => expect(https(value).ok).toBe(false))
  }

  it('gives its parameters as wire octets', () => {
    const params = svcbParams('1 . alpn="h2,h3" port=443 ipv4hint=192.0.2.1')
    expect(params.map(({ key, wire }) => `${key} ${wire.toString('hex')}`)).toEqual([
      '1 026832026833',
      '3 01bb',
      '4 c0000201',
    ])
  })
})
