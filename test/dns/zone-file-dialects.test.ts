// Zone files as other services write them, and files that are not UTF-8.
import { describe, expect, it } from 'vitest'
import { readZoneFile } from '../../src/dns/zone-files/zone-file-reader.ts'
import { decodeZoneFile } from '../../src/dns/zone-files/zone-file-text.ts'

const zone = 'example.com'

function imported(text: string) {
  const { records, notes, skipped, errors, dialect } = readZoneFile(text, zone)
  return {
    dialect,
    errors,
    records: records.map(({ name, ttl, type, value, comment }) =>
      [name, ttl, type, value, comment && `; ${comment}`].filter(Boolean).join(' '),
    ),
    notes: notes.map(({ line }) => line),
    skipped: skipped.map(({ line, reason }) => `${line} ${reason}`),
  }
}

describe('a zone file of', () => {
  it('Cloudflare has automatic ttls, a flattened CNAME and tags', () => {
    const file = [
      ';;',
      ';; Domain:     example.com.',
      ';; Exported:   2026-11-14 10:00:00',
      ';; SOA Record',
      'example.com\t3600\tIN\tSOA\tkai.ns.cloudflare.com. dns.cloudflare.com. 2047 10000 2400 604800 3600',
      ';; NS Records',
      'example.com.\t86400\tIN\tNS\tkai.ns.cloudflare.com.',
      ';; A Records',
      'api.example.com.\t1\tIN\tA\t192.0.2.1 ; the API cf_tags=cf-proxied:true',
      ';; CNAME Records',
      'example.com.\t1\tIN\tCNAME\thost.example.net. ; cf_tags=cf-proxied:true',
      'www.example.com.\t120\tIN\tCNAME\texample.com.',
    ]
    expect(imported(file.join('\n'))).toEqual({
      dialect: 'cloudflare',
      errors: [],
      records: ['api 300 A 192.0.2.1 ; the API', '@ 300 ALIAS host.example.net', 'www 120 CNAME example.com'],
      notes: [9, 11],
      skipped: ['5 soa', '7 apex_ns'],
    })
  })

  it('GoDaddy has no last dots, and a parked domain', () => {
    const file = [
      '; Domain: example.com',
      '; Exported (y-m-d hh:mm:ss): 2026-11-14 10:00:00',
      '$ORIGIN example.com.',
      '@\t3600\t IN \tSOA\tns01.domaincontrol.com.\tdns.jomax.net. (',
      '\t\t2026111401 28800 7200 604800 3600 )',
      '@\t600\t IN \tA\tParked',
      'www\t3600\t IN \tCNAME\t@',
      'e\t3600\t IN \tCNAME\temail.secureserver.net',
      '@\t3600\t IN \tMX\t10\tmail',
      '@\t3600\t IN \tMX\t20\tmx.example.net.',
      '@\t3600\t IN \tNS\tns01.domaincontrol.com.',
    ]
    expect(imported(file.join('\r\n'))).toEqual({
      dialect: 'godaddy',
      errors: [],
      records: [
        'www 3600 CNAME example.com',
        'e 3600 CNAME email.secureserver.net',
        '@ 3600 MX 10 mail.example.com',
        '@ 3600 MX 20 mx.example.net',
      ],
      notes: [8],
      skipped: ['4 soa', '6 placeholder', '11 apex_ns'],
    })
  })

  it('Route 53 has octal wildcards, aliases and SPF records', () => {
    const file = [
      '$ORIGIN example.com.',
      '@ 172800 IN NS ns-1.awsdns-01.com.',
      '\\052.dev 300 IN A 192.0.2.1',
      '@ 86400 AWS ALIAS A dualstack.lb-1.eu-west-1.elb.amazonaws.com. Z32O12XQLNTSW2 true',
      '@ 86400 AWS ALIAS AAAA dualstack.lb-1.eu-west-1.elb.amazonaws.com. Z32O12XQLNTSW2 true',
      'www 86400 AWS ALIAS A shop $self false',
      '@ 300 SPF "v=spf1 -all"',
    ]
    expect(imported(file.join('\n'))).toEqual({
      dialect: 'route53',
      errors: [],
      records: [
        '*.dev 300 A 192.0.2.1',
        '@ 60 ALIAS dualstack.lb-1.eu-west-1.elb.amazonaws.com',
        'www 60 ALIAS shop.example.com',
        '@ 300 TXT "v=spf1 -all"',
      ],
      notes: [3, 4, 6, 7],
      skipped: ['2 apex_ns', '5 duplicate'],
    })
  })

  it('BIND has the signatures of another signer', () => {
    const file = [
      '; File written on Sat Nov 14 10:00:00 2026',
      '; dnssec_signzone version 9.18.28',
      'example.com.\t\t3600\tIN SOA\tns1.example.com. h.example.com. (',
      '\t\t\t\t\t1 2 3 4 5 )',
      '\t\t\t3600\tRRSIG\tSOA 13 2 3600 20261214090000 20261114090000 1 example.com. abcd',
      '\t\t\t3600\tDNSKEY\t257 3 13 abcd',
      '\t\t\t5\tNSEC\ta.example.com. NS SOA',
      'a.example.com.\t\t1h30m\tIN A\t192.0.2.1',
    ]
    expect(imported(file.join('\n'))).toMatchObject({
      dialect: 'bind',
      errors: [],
      records: ['a 5400 A 192.0.2.1'],
      skipped: ['3 soa', '5 dnssec', '6 dnssec', '7 dnssec'],
    })
  })

  it('our own is not taken for one of another, whatever its comments say', () => {
    const file = '; Zone example.com.\n$ORIGIN example.com.\nwww.example.com 300 IN A 192.0.2.1 ; cf_tags=x\n'
    expect(imported(file)).toMatchObject({ dialect: null, records: ['www.example.com 300 A 192.0.2.1 ; cf_tags=x'] })
  })
})

describe('octets that are not UTF-8', () => {
  const decoded = (text: string) => decodeZoneFile(Buffer.from(text, 'latin1'))

  it('are Latin-1 in comments, and themselves elsewhere; other lines stay UTF-8', () => {
    const file = 'a A 192.0.2.1 ; caf\u00e9\nb TXT "\u00c3\u00a9"\nc TXT "\u00e9;\\"\u00e9" x\u00ff ; \u00e9\n'
    const { text, otherLines } = decoded(file)
    expect(otherLines).toEqual([1, 3])
    const { records, errors } = readZoneFile(text, zone)
    expect(errors).toEqual([])
    expect(records.map(({ value, comment }) => [value, comment])).toEqual([
      ['192.0.2.1', 'café'],
      ['"\\195\\169"', undefined],
      ['"\\233;\\"\\233" "x\\255"', 'é'],
    ])
  })

  it('of UTF-8 throughout are decoded as one', () => {
    expect(decodeZoneFile(Buffer.from('a TXT "é"'))).toEqual({ text: 'a TXT "é"', otherLines: [] })
  })
})
