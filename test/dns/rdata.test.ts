// Record values: what each type accepts, its canonical text, and what it refuses.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRdata } from '../../src/dns/rdata/rdata.ts'
import { policyOf, type RecordType, recordTypes } from '../../src/dns/record-types.ts'
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
  ['SMIMEA', `3 0 1 ${sha256}`, `3 0 1 ${sha256.toUpperCase()}`],
  ['PTR', 'Host.Example.com.', 'host.example.com'],
  ['PTR', 'my\\032printer\\.1._ipp.example.com', 'my\\032printer\\0461._ipp.example.com'],
  ['DNAME', 'example.net', 'example.net'],
  ['HINFO', 'PC "Debian GNU/Linux"', '"PC" "Debian GNU/Linux"'],
  ['URI', '10 1 "https://example.com/a b"', '10 1 "https://example.com/a b"'],
  ['URI', '10 1 https://example.com/', '10 1 "https://example.com/"'],
  ['NAPTR', '100 50 s SIP+D2U "" _sip._udp.example.com.', '100 50 "s" "SIP+D2U" "" _sip._udp.example.com'],
  [
    'NAPTR',
    '1 1 u E2U+sip "!^(.*)$!sip:\\\\1@example.com!i" .',
    '1 1 "u" "E2U+sip" "!^(.*)$!sip:\\\\1@example.com!i" .',
  ],
  ['SSHFP', `4 2 ${sha256.slice(0, 9)} ${sha256.slice(9)}`, `4 2 ${sha256.toUpperCase()}`],
  ['LOC', '52 22 23 N 4 53 32 E -2m', '52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m'],
  ['LOC', '42 21 54.5 n 71 06 18 w -24 30m', '42 21 54.500 N 71 6 18.000 W -24.00m 30m 10000m 10m'],
  ['LOC', '0 N 180 W 42849672.95m 0 0.55m 90000000', '0 0 0.000 N 180 0 0.000 W 42849672.95m 0m 0.50m 90000000m'],
  ['OPENPGPKEY', 'mQIN BFUo', 'mQINBFUo'],
  ['CERT', 'PKIX 12345 RSASHA256 MIIB AAA=', '1 12345 8 MIIBAAA='],
  ['CDS', '0 0 0 00', '0 0 0 00'],
  ['CDS', `12345 13 2 ${sha256}`, `12345 13 2 ${sha256.toUpperCase()}`],
  ['CDNSKEY', '0 3 0 AA==', '0 3 0 AA=='],
  ['CDNSKEY', '257 3 ECDSAP256SHA256 mdss wUyr', '257 3 13 mdsswUyr'],
  ['TYPE65280', '\\# 4 c0 00 02 01', '\\# 4 C0000201'],
  ['TYPE65280', '\\# 0', '\\# 0'],
  ['TYPE17', 'admin.example.com. .', '\\# 20 0561646D696E076578616D706C6503636F6D0000'],
  ['TYPE17', '\\# 20 0561646D696E076578616D706C6503636F6D0000', '\\# 20 0561646D696E076578616D706C6503636F6D0000'],
  ['A', '\\# 4 c0000201', '192.0.2.1'],
  ['TXT', '\\# 4 03616263', '"abc"'],
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
  ['SMIMEA', `3 0 1 ${sha1}`],
  ['PTR', 'host'],
  ['DNAME', '.'],
  ['HINFO', 'PC'],
  ['HINFO', `${'x'.repeat(256)} y`],
  ['URI', '10 1 ""'],
  ['URI', '10 1 a b'],
  ['NAPTR', '1 1 u x "!^.*$!sip:a" .'],
  ['NAPTR', '1 1 u x "!(!x!" .'],
  ['NAPTR', '1 1 u x "!a!\\\\1!" .'],
  ['NAPTR', '1 1 u x "1a1b1" .'],
  ['NAPTR', '1 1 u x "!a!b!g" .'],
  ['NAPTR', '1 1 u x "!|!b!" .'],
  ['NAPTR', '1 1 u x "!\\\\1*}{!b!" .'],
  ['SSHFP', `4 2 ${sha1}`],
  ['LOC', '91 N 0 E 0m'],
  ['LOC', '90 0 0.001 N 0 E 0m'],
  ['LOC', '1 60 N 0 E 0m'],
  ['LOC', '1 N 0 E -100000.01m'],
  ['LOC', '1 N 0 E 0m 1m 1m 1m 1m'],
  ['LOC', '1 N 0 E 0m -1m'],
  ['LOC', '1 E 0 N 0m 1m'],
  ['OPENPGPKEY', 'a*b='],
  ['OPENPGPKEY', 'x'.repeat(8000)],
  ['CERT', 'NOPE 0 0 MIIB'],
  ['CDS', '0 0 0 01'],
  ['CDS', `1 0 2 ${sha256}`],
  ['CDNSKEY', '257 4 13 mdss'],
  ['CDNSKEY', '0 3 0 AAAA'],
  ['CDNSKEY', '257 3 253 mdss'],
  ['TYPE65280', 'c0000201'],
  ['TYPE65280', '\\# 3 c0000201'],
  ['TYPE65280', `\\# 4097 ${'00'.repeat(4097)}`],
  ['TYPE17', '\\# 3 c00000'],
  ['ALIAS', '\\# 0'],
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
      if (!result.ok) expect(result.detail).toContain(policyOf(type).expects)
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
    // Nor is a meta type, one that signing makes, one that we cannot check, nor another spelling of a type.
    const others = [
      'TYPE0',
      'TYPE41',
      'TYPE252',
      'TYPE46',
      'TYPE48',
      'TYPE42',
      'TYPE65535',
      'TYPE65536',
      'TYPE1',
      'TYPE01',
    ]
    for (const type of ['SOA', '__proto__', 'constructor', 'toString', '', 'a', 'type731', ...others]) {
      expect(parseRdata(type as RecordType, 'x', zone).ok).toBe(false)
    }
  })
})
