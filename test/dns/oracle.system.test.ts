// What we export BIND accepts unchanged, and what BIND accepts we import to the same records.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRdata } from '../../src/dns/rdata/rdata.ts'
import { rdataOf } from '../../src/dns/rdata/rdata-wire.ts'
import { numberOf } from '../../src/dns/type-names.ts'
import { readZoneFile } from '../../src/dns/zone-files/zone-file-reader.ts'
import { type WritableRecord, writeZoneFile } from '../../src/dns/zone-files/zone-file-writer.ts'
import { compileZone, oracleAbsent } from './compilezone.ts'
import { zone, zones } from './zone-arbitraries.ts'
import { corpusStart, zoneFileCorpus } from './zone-file-corpus.ts'

const soa = {
  mname: 'ns1.berth.example',
  rname: 'hostmaster.berth.example',
  refresh: 3600,
  retry: 600,
  expire: 1_209_600,
  minimum: 300,
  ttl: 3600,
}

type Facts = Pick<WritableRecord, 'name' | 'type' | 'value' | 'ttl'>

function buildFacts(records: readonly Facts[]): string[] {
  return records.map(({ name, type, value, ttl }) => `${name} ${ttl} ${type} ${value}`).sort()
}

function withRrsetTtls(records: readonly WritableRecord[]): WritableRecord[] {
  return records.map((record) => {
    const rrset = records.filter(({ name, type }) => name === record.name && type === record.type)
    return { ...record, ttl: Math.min(...rrset.map(({ ttl }) => ttl)) }
  })
}

function exported(records: readonly WritableRecord[]): string {
  const nameservers = ['ns1.berth.example', 'ns2.berth.example']
  const generated = [{ name: 'www', type: 'A' as const, value: '192.0.2.1', ttl: 300 }]
  return writeZoneFile({ zone, serial: 2026, nameservers, soa, records, generated, comments: ['all\nof it'] })
}

describe('an exported zone', () => {
  it('comes back whole from our own reader, ALIAS records included', () => {
    fc.assert(
      fc.property(zones, (records) => {
        const read = readZoneFile(exported(records), zone)
        expect(read.errors).toEqual([])
        expect(read.notes).toEqual([])
        expect(read.skipped.map(({ reason }) => reason)).toEqual(['soa', 'apex_ns', 'apex_ns'])
        expect(buildFacts(read.records)).toEqual(buildFacts(withRrsetTtls(records)))
      }),
      { numRuns: 200 },
    )
  })

  it.skipIf(oracleAbsent)(
    'is accepted by named-compilezone, whose output reads back as the same records',
    () => {
      fc.assert(
        fc.property(zones, fc.constantFrom('relative', 'full'), (records, style) => {
          const compiled = compileZone(zone, exported(records), style)
          if (!compiled.ok) throw new Error(compiled.message)
          expect(compiled.warnings).toMatch(/^zone example\.com\/IN: loaded serial 2026\nOK\n$/)
          const read = readZoneFile(compiled.text, zone)
          expect(read.errors).toEqual([])
          const known = withRrsetTtls(records).filter(({ type }) => type !== 'ALIAS')
          expect(buildFacts(read.records)).toEqual(buildFacts(known))
        }),
        { numRuns: 60 },
      )
    },
    60_000,
  )
})

/** A record as its octets on the wire, which BIND reads by itself. */
function generic({ name, type, value, ttl }: WritableRecord): string {
  const { head, names, tail } = rdataOf(type, value)!
  const octets = Buffer.concat([head, ...names.map((one) => Buffer.from(one, 'latin1')), tail])
  return `${name} ${ttl} IN TYPE${numberOf(type as 'A')} \\# ${octets.length} ${octets.toString('hex')}`
}

describe('the wire form', () => {
  it('of every value comes back as the same value', () => {
    fc.assert(
      fc.property(zones, (all) => {
        const records = all.filter(({ type }) => type !== 'ALIAS')
        expect(buildFacts(readZoneFile(records.map(generic).join('\n'), zone).records)).toEqual(buildFacts(records))
      }),
      { numRuns: 100 },
    )
  })

  it.skipIf(oracleAbsent)('means the same to named-compilezone', () => {
    fc.assert(
      fc.property(zones, (all) => {
        const records = withRrsetTtls(all.filter(({ type }) => type !== 'ALIAS'))
        const compiled = compileZone(zone, `${corpusStart}${records.map(generic).join('\n')}\n`, 'full')
        if (!compiled.ok) throw new Error(compiled.message)
        expect(buildFacts(readZoneFile(compiled.text, zone).records)).toEqual(buildFacts(records))
      }),
      { numRuns: 30 },
    )
  })
})

// A malformed one would stop the whole zone at a secondary.
const expressions = fc.array(
  fc.constantFrom(
    ...'ab.*+?^$()[]{}|-,i!'.split(''),
    '[a-z]',
    '[^b]',
    '{2}',
    '{1,3}',
    '\\\\1',
    '\\\\.',
    '(a|b)',
    '[[:alpha:]]',
  ),
  { maxLength: 6 },
)

it.skipIf(oracleAbsent)('named-compilezone takes every regular expression of NAPTR that we take', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(expressions, expressions), { minLength: 60, maxLength: 60 }), (pairs) => {
      const values = pairs.map(([one, other]) => `1 1 "u" "x" "#${one.join('')}#${other.join('')}#" .`)
      const taken = values.filter((value) => parseRdata('NAPTR', value, zone).ok)
      const lines = taken.map((value, index) => `n${index} NAPTR ${value}`)
      expect(compileZone(zone, `${corpusStart}${lines.join('\n')}\n`, 'full')).toMatchObject({ ok: true })
    }),
    { numRuns: 20 },
  )
})

// Lines in which quotes, escapes, parentheses and comments meet; about every third file is valid.
const separators = fc.constantFrom(' ', ' ', '\t', '', '()', ' ( ) ', ' (\n) ', ' (;y\n\n)', ' (\r\n ) ')
const words = fc.constantFrom(
  ...[
    '"a b"',
    'abc',
    '\\097',
    '"\\""',
    '\\;',
    '"x;y"',
    'a\\ b',
    '""',
    '"a"b',
    '=',
    'a="b c"',
    '\\\\',
    '"("',
    '\\,',
    'h2,h3',
  ],
)
const heads = fc.constantFrom(
  ...['a TXT', 'b 60 IN TXT', 'c IN 1m TXT', ' TXT', '\tIN TXT', 'x CAA 0 issue', 'h HTTPS 1 .', 'h HTTPS 1 . alpn='],
  ...['h HTTPS 1 . key99=', 'h HTTPS 1 . alpn=h2 key99='],
)
const trickyLines = fc
  .tuple(heads, fc.array(fc.tuple(separators, words), { minLength: 1, maxLength: 3 }))
  .map((parts) => parts.flat(2).join(''))

describe.skipIf(oracleAbsent)('a zone file from elsewhere', () => {
  it('is accepted by us exactly where named-compilezone accepts it, with the same records', () => {
    fc.assert(
      fc.property(fc.array(trickyLines, { minLength: 1, maxLength: 2 }), (lines) => {
        const text = `${corpusStart}${lines.join('\n')}\n`
        const ours = readZoneFile(text, zone)
        const compiled = compileZone(zone, text, 'full')
        expect(ours.errors.length === 0).toBe(compiled.ok)
        if (!compiled.ok) return
        const theirs = readZoneFile(compiled.text, zone).records
        // BIND gives an RRset the ttl of its first record, we the lowest.
        const untimed = (records: readonly Facts[]) => buildFacts(records.map((record) => ({ ...record, ttl: 0 })))
        expect(untimed(ours.records)).toEqual(untimed(theirs))
      }),
      { numRuns: 60 },
    )
  })

  for (const { about, text, refused } of zoneFileCorpus) {
    it(refused ? `is refused by both: ${about}` : `means the same to us and to named-compilezone: ${about}`, () => {
      const ours = readZoneFile(text, zone)
      const compiled = compileZone(zone, text, 'full')
      if (refused) {
        expect(compiled.ok).toBe(false)
        expect(ours.errors).not.toEqual([])
        return
      }
      if (!compiled.ok) throw new Error(compiled.message)
      expect(ours.errors).toEqual([])
      const theirs = readZoneFile(compiled.text, zone)
      expect(theirs.errors).toEqual([])
      expect(buildFacts(ours.records)).toEqual(buildFacts(theirs.records))
      expect(ours.records.length).toBeGreaterThan(0)
    })
  }
})
