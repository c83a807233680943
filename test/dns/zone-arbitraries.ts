// Random records and zones for property tests: valid, over every type, and spelt as people and tools spell them.
import fc from 'fast-check'
import { conflictsWithin, pointsAtItself } from '../../src/dns/conflicts.ts'
import { relativeName } from '../../src/dns/names.ts'
import { parseRdata } from '../../src/dns/rdata/rdata.ts'
import type { NamedType, RecordType } from '../../src/dns/record-types.ts'
import type { WritableRecord } from '../../src/dns/zone-files/zone-file-writer.ts'
import { anyCharacter } from '../helpers/characters.ts'

export const zone = 'example.com'

const label = fc.stringMatching(/^[a-zA-Z0-9_](?:[a-zA-Z0-9_-]{0,14}[a-zA-Z0-9])?$/)
const longLabel = fc.stringMatching(/^[a-z0-9]{63}$/)
const labels = fc.array(fc.oneof({ weight: 9, arbitrary: label }, { weight: 1, arbitrary: longLabel }), {
  minLength: 1,
  maxLength: 3,
})

export const ownerNames = fc.oneof(
  fc.constantFrom(
    '@',
    'www',
    'www',
    'WWW.example.com',
    '*',
    '*.w',
    '_sip._tcp',
    '0/25.2',
    'example.com.',
    'bücher',
    'a\\.b',
    'My\\032Printer._ipp',
  ),
  labels.map((parts) => parts.join('.')),
  labels.map((parts) => `*.${parts.join('.')}`),
)

const hosts = fc.oneof(
  fc.constantFrom('@', 'mail.example.com', 'NS1.Example.net.', 'straße.example', '1.0/25.2.0.192.in-addr.arpa'),
  labels.map((parts) => `${parts.join('.')}.example.org`),
)
const small = fc.integer({ min: 0, max: 255 })
const large = fc.integer({ min: 0, max: 65_535 })
const ipv4 = fc.ipV4()
const ipv6 = fc.oneof(fc.ipV6(), fc.constantFrom('::', '::ffff:192.0.2.1', '0:0:1::', '1:0:0:2:0:0:0:3'))
const octets = (maxLength: number) => fc.uint8Array({ maxLength })
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const hexOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(hex)

// Each octet as an escape: valid for any octets, and no code of ours had a part in it.
const escaped = (bytes: Iterable<number>) => [...bytes].map((octet) => `\\${String(octet).padStart(3, '0')}`).join('')

const printable = fc.string({ unit: 'grapheme-ascii', maxLength: 300 })
const quotedText = fc.oneof(
  octets(600).map((bytes) => `"${escaped(bytes)}"`),
  printable.map((text) => `"${text.replace(/[\\"]/g, (character) => `\\${character}`)}"`),
)
const txt = fc.oneof(
  fc.array(quotedText, { minLength: 1, maxLength: 4 }).map((texts) => texts.join(' ')),
  fc.constantFrom(
    'v=spf1 include:_spf.example.net  ~all',
    'täglich ✓ 🚀',
    '""',
    '"" "" ""',
    '"a""b"',
    'semi;colon (paren)',
  ),
)

const protocols = fc.array(
  fc.oneof(
    fc.constantFrom('h2', 'h3', 'f\\oo,bar').map((id) => Buffer.from(id)),
    fc.uint8Array({ minLength: 1, maxLength: 20 }),
  ),
  { minLength: 1, maxLength: 4 },
)
const alpn = protocols.map((ids) => {
  const list = ids.map((id) => [...id].flatMap((octet) => (octet === 0x2c || octet === 0x5c ? [0x5c, octet] : [octet])))
  return `alpn="${list.map(escaped).join(',')}"`
})
const params = fc
  .record(
    {
      alpn,
      port: large.map((port) => `port=${port}`),
      ipv4hint: fc.array(ipv4, { minLength: 1, maxLength: 3 }).map((all) => `ipv4hint=${all.join(',')}`),
      ipv6hint: fc.array(ipv6, { minLength: 1, maxLength: 3 }).map((all) => `ipv6hint=${all.join(',')}`),
      ech: fc
        .uint8Array({ minLength: 4, maxLength: 60 })
        .map((bytes) => `ech=${Buffer.from(bytes).toString('base64')}`),
      dohpath: fc.constant('dohpath=/dns-query{?dns}'),
      ohttp: fc.constant('ohttp'),
      groups: fc
        .uniqueArray(large, { minLength: 1, maxLength: 4 })
        .map((all) => `tls-supported-groups=${all.join(',')}`),
      generic: fc
        .tuple(fc.integer({ min: 10, max: 65_534 }), octets(40))
        .map(([key, bytes]) => `key${key}="${escaped(bytes)}"`),
    },
    { requiredKeys: [] },
  )
  .chain((chosen) => {
    const texts = Object.values(chosen)
    const named = ['alpn', 'port', 'ipv4hint', 'ipv6hint', 'ech'].filter((key) => Object.hasOwn(chosen, key))
    const more = [chosen.alpn && 'no-default-alpn', named.length > 0 && `mandatory=${named.join(',')}`]
    return fc
      .tuple(fc.subarray(more.filter((text) => typeof text === 'string')), fc.constant(texts))
      .chain(([extra, all]) => fc.shuffledSubarray([...all, ...extra], { minLength: all.length + extra.length }))
  })
const service = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 65_535 }), fc.oneof(fc.constant('.'), hosts), params)
    .map((parts) => parts.flat().join(' ')),
  hosts.map((host) => `0 ${host}`),
)

const base64 = fc.uint8Array({ minLength: 4, maxLength: 120 }).map((bytes) => Buffer.from(bytes).toString('base64'))
const shortText = octets(255).map((bytes) => `"${escaped(bytes)}"`)
const certificate = fc
  .tuple(fc.constantFrom(0, 1, 2, 3), fc.constantFrom(0, 1), fc.constantFrom([0, 100], [1, 32], [2, 64]))
  .chain(([usage, selector, [matching = 0, size = 0]]) =>
    hexOf(size).map((data) => `${usage} ${selector} ${matching} ${data}`),
  )
const keyDigest = fc
  .tuple(large, fc.integer({ min: 1, max: 255 }), fc.constantFrom([1, 20], [2, 32], [4, 48]))
  .chain(([tag, algorithm, [type = 0, size = 0]]) =>
    hexOf(size).map((digest) => `${tag} ${algorithm} ${type} ${digest.slice(0, 10)} ${digest.slice(10)}`),
  )
const thousandths = fc.integer({ min: 0, max: 59_999 }).map((number) => (number / 1000).toFixed(3))
const minutes = fc.integer({ min: 0, max: 59 })
const metres = fc.integer({ min: 0, max: 9_000_000_000 }).map((number) => `${(number / 100).toFixed(2)}m`)
const place = fc
  .record({
    north: fc.tuple(fc.integer({ min: 0, max: 89 }), minutes, thousandths, fc.constantFrom('N', 's')),
    east: fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 179 }), minutes, thousandths, fc.constantFrom('E', 'W')),
      fc.tuple(fc.integer({ min: 0, max: 180 }), fc.constantFrom('E', 'w')),
    ),
    height: fc.integer({ min: -10_000_000, max: 4_284_967_295 }).map((number) => `${(number / 100).toFixed(2)}m`),
    sizes: fc.array(metres, { maxLength: 3 }),
  })
  .map(({ north, east, height, sizes }) => [...north, ...east, height, ...sizes].join(' '))
const substitution = fc.constantFrom(
  '""',
  '"!^.*$!sip:info@example.com!"',
  '"!^(.*)$!\\\\1@example.com!i"',
  '"/a+b?/c/"',
)

const values: Record<NamedType, fc.Arbitrary<string>> = {
  A: ipv4,
  AAAA: ipv6,
  ALIAS: hosts,
  CAA: fc
    .tuple(fc.constantFrom(0, 128), fc.constantFrom('issue', 'IssueWild', 'iodef'), quotedText)
    .map((parts) => parts.join(' ')),
  CDNSKEY: fc.oneof(
    fc.constant('0 3 0 AA=='),
    fc
      .tuple(fc.constantFrom(256, 257), fc.constantFrom('8', 'ECDSAP256SHA256', '15'), base64)
      .map(([flags, algorithm, key]) => `${flags} 3 ${algorithm} ${key.slice(0, 4)} ${key.slice(4)}`),
  ),
  CDS: fc.oneof(fc.constant('0 0 0 00'), keyDigest),
  CERT: fc
    .tuple(fc.constantFrom('PKIX', 'spki', 'PGP', '7', '65000'), large, small, base64)
    .map((parts) => parts.join(' ')),
  CNAME: hosts,
  DNAME: hosts,
  DS: keyDigest,
  HINFO: fc.tuple(shortText, fc.oneof(shortText, fc.constant('Linux'))).map((parts) => parts.join(' ')),
  HTTPS: service,
  LOC: place,
  MX: fc.oneof(
    fc.constant('0 .'),
    fc.tuple(large, hosts).map((parts) => parts.join('\t')),
  ),
  NAPTR: fc
    .tuple(
      large,
      large,
      fc.constantFrom('"s"', '"U"', '""'),
      shortText,
      substitution,
      fc.oneof(fc.constant('.'), hosts),
    )
    .map((parts) => parts.join(' ')),
  NS: hosts,
  OPENPGPKEY: base64,
  PTR: hosts,
  SMIMEA: certificate,
  SRV: fc.tuple(large, large, large, fc.oneof(fc.constant('.'), hosts)).map((parts) => parts.join(' ')),
  SSHFP: fc
    .tuple(fc.constantFrom(1, 2, 3, 4, 6), fc.constantFrom([1, 20], [2, 32]))
    .chain(([algorithm, [type = 0, size = 0]]) => hexOf(size).map((digits) => `${algorithm} ${type} ${digits}`)),
  SVCB: service,
  TLSA: certificate,
  TXT: txt,
  URI: fc
    .tuple(large, large, fc.uint8Array({ minLength: 1, maxLength: 300 }))
    .map(([priority, weight, target]) => `${priority} ${weight} "${escaped(target)}"`),
}

// Those without a name here: private ones, and two that others have a name for.
const numbered = fc.oneof(
  fc
    .tuple(fc.constantFrom('TYPE731', 'TYPE65280', 'TYPE65534'), octets(80))
    .map(([type, bytes]) => ({ type: type as RecordType, value: `\\# ${bytes.length} ${hex(bytes)}` })),
  fc.tuple(hosts, hosts).map((names) => ({ type: 'TYPE17' as const, value: names.join(' ') })),
  fc.tuple(large, hosts).map((parts) => ({ type: 'TYPE18' as const, value: parts.join(' ') })),
)

export type TypedValue = { type: RecordType; value: string }

export const typedValues: fc.Arbitrary<TypedValue> = fc.oneof(
  ...Object.entries(values).map(([type, arbitrary]) => arbitrary.map((value) => ({ type: type as RecordType, value }))),
  numbered,
)

const records = fc
  .record({
    name: ownerNames,
    typed: typedValues,
    ttl: fc.integer({ min: 30, max: 86_400 }),
    comment: fc.option(fc.string({ unit: anyCharacter, maxLength: 30 })),
  })
  .map(({ name, typed: { type, value }, ttl, comment }): WritableRecord => {
    const relative = relativeName(name, zone)
    const rdata = parseRdata(type, value, zone)
    if (!relative.ok || !rdata.ok)
      throw new Error(`valid ${type} at ${name} refused: ${value}: ${JSON.stringify(rdata)}`)
    return { name: relative.value, type, value: rdata.value, ttl, comment }
  })

// BIND wants the keys of a zone beside them, which a primary with an empty key set has not.
const isParental = ({ name, type }: WritableRecord) => name === '@' && (type === 'CDS' || type === 'CDNSKEY')

// The records that our own rules let stand together.
export const zones = fc.array(records, { minLength: 1, maxLength: 40 }).map((made) => {
  const all = made.filter((record) => !isParental(record) && !pointsAtItself(record, zone))
  const refused = new Set(conflictsWithin(all, zone).map(({ record }) => record))
  return all.filter((record) => !refused.has(record))
})
