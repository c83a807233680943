// Record values: what each type accepts, its canonical text, and what it refuses.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRdata } from '../../src/dns/rdata.ts'
import { type RecordType, recordTypes, typePolicies } from '../../src/dns/record-types.ts'
import { typedValues, zone } from './zone-arbitraries.ts'

const sha1 = 'ab'.repeat(20)
const sha256 = 'ab'.repeat(32)
const sha384 = 'ab'.repeat(48)
const sha512 = 'ab'.repeat(64)

const accepted: [RecordType, string, string][] = [
  ['A', '192.0.2.1', '192.0.2.1'],
  ['A', ' 192.0.2.1\t', '192.0.2.1'],
  ['AAAA', '2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['AAAA', '1:0:0:2:0:0:0:3', '1:0:0:2::3'],
  ['AAAA', '2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
  ['AAAA', '1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
  ['AAAA', '::FFFF:c000:201', '::ffff:192.0.2.1'],
  ['AAAA', '64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ['AAAA', '::', '::'],
  ['AAAA', '1::', '1::'],
  ['CNAME', 'Foo.Example.NET.', 'foo.example.net'],
  ['ALIAS', '@', 'example.com'],
  ['NS', 'ns1.example.net', 'ns1.example.net'],
  ['MX', '10 mail.example.com', '10 mail.example.com'],
  ['MX', '010\tMAIL.example.com.', '10 mail.example.com'],
  ['MX', '0 .', '0 .'],
  ['SRV', '0 5 5060 sip.example.com', '0 5 5060 sip.example.com'],
  ['SRV', '0 0 0 .', '0 0 0 .'],
  ['CAA', '0 ISSUE letsencrypt.org', '0 issue "letsencrypt.org"'],
  ['CAA', '128 issue ";"', '128 issue ";"'],
  ['CAA', '0 issue ;', '0 issue ";"'],
  ['CAA', '0 iodef "mailto:a\\"b@example.com"', '0 iodef "mailto:a\\"b@example.com"'],
  ['DS', `12345 13 2 ${sha256}`, `12345 13 2 ${sha256.toUpperCase()}`],
  ['DS', `12345 RSASHA256 1 ${sha1.slice(0, 7)} ${sha1.slice(7)}`, `12345 8 1 ${sha1.toUpperCase()}`],
  ['DS', `1 8 4 ${sha384}`, `1 8 4 ${sha384.toUpperCase()}`],
  ['TLSA', `3 1 1 ${sha256}`, `3 1 1 ${sha256.toUpperCase()}`],
  ['TLSA', `2 0 2 ${sha512}`, `2 0 2 ${sha512.toUpperCase()}`],
  ['TLSA', '3 0 0 30 82', '3 0 0 3082'],
]

const refused: [RecordType, string][] = [
  ['A', '192.0.2'],
  ['A', '192.0.2.01'],
  ['A', '0xC0.0.2.1'],
  ['A', '3221225985'],
  ['A', '256.0.2.1'],
  ['A', '192.0.2.1 192.0.2.2'],
  ['A', '"192.0.2.1"'],
  ['A', '２.0.0.1'],
  ['A', '::1'],
  ['AAAA', 'fe80::1%eth0'],
  ['AAAA', '1::2::3'],
  ['AAAA', '12345::'],
  ['AAAA', '192.0.2.1'],
  ['AAAA', '::1/64'],
  ['CNAME', '.'],
  ['CNAME', 'a.example b.example'],
  ['CNAME', '192.0.2.1'],
  ['NS', '*.example.net'],
  ['ALIAS', 'https://example.net'],
  ['MX', 'mail.example.com'],
  ['MX', '65536 mail.example.com'],
  ['MX', '-1 mail.example.com'],
  ['MX', '10 .'],
  ['MX', '10 192.0.2.1'],
  ['SRV', '0 5 sip.example.com'],
  ['SRV', '0 5 70000 sip.example.com'],
  ['CAA', '0 issue'],
  ['CAA', '256 issue "x"'],
  ['CAA', '0 is-sue "x"'],
  ['CAA', '0 issue "x'],
  ['CAA', '0 issue a b'],
  ['DS', `12345 13 2 ${sha1}`],
  ['DS', '12345 13 2'],
  ['DS', '12345 13 9 ABC'],
  ['DS', `12345 NOPE 2 ${sha256}`],
  ['TLSA', `4 1 1 ${sha256}`],
  ['TLSA', `3 2 1 ${sha256}`],
  ['TLSA', `3 1 2 ${sha256}`],
  ['TLSA', '3 1 1 xyz'],
]

describe('a value', () => {
  for (const [type, value, canonical] of accepted) {
    it(`of ${type} takes ${value.slice(0, 50)}`, () => {
      expect(parseRdata(type, value, zone)).toEqual({ ok: true, value: canonical })
    })
  }

  for (const [type, value] of refused) {
    it(`of ${type} refuses ${value.slice(0, 50)} and says what is expected`, () => {
      const result = parseRdata(type, value, zone)
      expect(result.ok).toBe(false)
      if (!result.ok) expect(result.detail).toContain(typePolicies[type].expects)
    })
  }

  it('of every type is canonical once read: reading it again changes nothing', () => {
    fc.assert(
      fc.property(typedValues, ({ type, value }) => {
        const once = parseRdata(type, value, zone)
        expect(once.ok).toBe(true)
        if (once.ok) expect(parseRdata(type, once.value, zone)).toEqual(once)
      }),
      { numRuns: 1000 },
    )
  })

  it('of every type is refused when empty', () => {
    for (const type of recordTypes) expect(parseRdata(type, '  ', zone).ok).toBe(false)
  })

  it('of a type that is not a type is refused, inherited property names included', () => {
    for (const type of ['SOA', '__proto__', 'constructor', 'toString', '']) {
      expect(parseRdata(type as RecordType, 'x', zone).ok).toBe(false)
    }
  })
})
