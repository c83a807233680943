// The zone-file writer: order, layout, and comments that stay comments.
import { describe, expect, it } from 'vitest'
import { rrsetTtl } from '../../src/dns/ttl.ts'
import { readZoneFile } from '../../src/dns/zone-files/zone-file-reader.ts'
import { type WritableRecord, writeZoneFile } from '../../src/dns/zone-files/zone-file-writer.ts'

const soa = {
  mname: 'ns1.berth.example',
  rname: 'h.berth.example',
  refresh: 1,
  retry: 2,
  expire: 3,
  minimum: 4,
  ttl: 3600,
}
const base = { zone: 'example.com', serial: 7, nameservers: ['ns2.berth.example', 'ns1.berth.example'], soa }

describe('a written zone file', () => {
  it('is sorted from the apex down without padding, names end in dots, and what is new is written as all programs read it', () => {
    const records: WritableRecord[] = [
      { name: 'www', type: 'ALIAS', value: 'host.example.net', ttl: 60 },
      { name: 'a.mail', type: 'A', value: '192.0.2.1', ttl: 300 },
      { name: 'mail', type: 'TXT', value: '"a  b"', ttl: 300, comment: 'why' },
      { name: '@', type: 'MX', value: '10 mail.example.com', ttl: 300 },
      { name: '@', type: 'HTTPS', value: '1 . alpn="h2" ohttp', ttl: 300 },
    ]
    const generated = [{ name: '@', type: 'A' as const, value: '192.0.2.9', ttl: 300 }]
    expect(writeZoneFile({ ...base, records, generated, comments: ['Made by hand'] }).split('\n')).toEqual([
      '; Zone example.com.',
      '; Made by hand',
      '$ORIGIN example.com.',
      '$TTL 300',
      '@ 3600 IN SOA ns1.berth.example. h.berth.example. 7 1 2 3 4',
      '@ 3600 IN NS ns1.berth.example.',
      '@ 3600 IN NS ns2.berth.example.',
      '@ 300 IN HTTPS 1 . alpn="h2" key8',
      '@ 300 IN MX 10 mail.example.com.',
      'mail 300 IN TXT "a  b" ; why',
      'a.mail 300 IN A 192.0.2.1',
      ';@berth www 60 IN ALIAS host.example.net.',
      '; While these names have no address record of their own, the nameservers answer them with:',
      '; @ 300 IN A 192.0.2.9',
      '',
    ])
  })

  it('does not depend on the order of the records', () => {
    const records: WritableRecord[] = ['3', '1', '2'].map((last) => ({
      name: 'a',
      type: 'A',
      value: `192.0.2.${last}`,
      ttl: 300,
    }))
    expect(writeZoneFile({ ...base, records })).toBe(writeZoneFile({ ...base, records: records.toReversed() }))
  })

  it('gives every record of a name and type the lowest of their ttls', () => {
    expect(rrsetTtl([{ ttl: 300 }, { ttl: 60 }, { ttl: 900 }])).toBe(60)
    const records: WritableRecord[] = [
      { name: 'a', type: 'A', value: '192.0.2.1', ttl: 300 },
      { name: 'a', type: 'A', value: '192.0.2.2', ttl: 60 },
      { name: 'a', type: 'AAAA', value: '::1', ttl: 900 },
    ]
    const read = readZoneFile(writeZoneFile({ ...base, records }), 'example.com')
    expect(read.records.map(({ ttl }) => ttl)).toEqual([60, 60, 900])
  })

  it('lets no comment become a record', () => {
    const attack =
      'x\nevil A 192.0.2.66\r\nevil A 192.0.2.67\u2028evil A 192.0.2.68\n;@berth evil 60 IN ALIAS evil.example.'
    const records: WritableRecord[] = [{ name: 'a', type: 'A', value: '192.0.2.1', ttl: 300, comment: attack }]
    const read = readZoneFile(writeZoneFile({ ...base, records, comments: [attack] }), 'example.com')
    expect(read.records.map(({ name }) => name)).toEqual(['a'])
    expect(read.errors).toEqual([])
  })
})
