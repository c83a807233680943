// Random records and zones for property tests: valid, over every type, and spelt as people and tools spell them.
import fc from 'fast-check'
import { conflictsWithin } from '../../src/dns/conflicts.ts'
import { relativeName } from '../../src/dns/names.ts'
import { parseRdata } from '../../src/dns/rdata.ts'
import type { RecordType } from '../../src/dns/record-types.ts'
import type { WritableRecord } from '../../src/dns/zone-file-writer.ts'

export const zone = 'example.com'

const label = fc.stringMatching(/^[a-zA-Z0-9_](?:[a-zA-Z0-9_-]{0,14}[a-zA-Z0-9])?$/)
const longLabel = fc.stringMatching(/^[a-z0-9]{63}$/)
const labels = fc.array(fc.oneof({ weight: 9, arbitrary: label }, { weight: 1, arbitrary: longLabel }), {
  minLength: 1,
  maxLength: 3,
})

export const ownerNames = fc.oneof(
  fc.constantFrom('@', 'www', 'www', 'WWW.example.com', '*', '*.w', '_sip._tcp', '0/25.2', 'example.com.', 'bücher'),
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
      generic: fc
        .tuple(fc.integer({ min: 9, max: 65_534 }), octets(40))
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

const values: Record<RecordType, fc.Arbitrary<string>> = {
  A: ipv4,
  AAAA: ipv6,
  ALIAS: hosts,
  CAA: fc
    .tuple(fc.constantFrom(0, 128), fc.constantFrom('issue', 'IssueWild', 'iodef'), quotedText)
    .map((parts) => parts.join(' ')),
  CNAME: hosts,
  DS: fc
    .tuple(large, small, fc.constantFrom([1, 20], [2, 32], [4, 48]))
    .chain(([tag, algorithm, [type = 0, size = 0]]) =>
      hexOf(size).map((digest) => `${tag} ${algorithm} ${type} ${digest.slice(0, 10)} ${digest.slice(10)}`),
    ),
  HTTPS: service,
  MX: fc.oneof(
    fc.constant('0 .'),
    fc.tuple(large, hosts).map((parts) => parts.join('\t')),
  ),
  NS: hosts,
  SRV: fc.tuple(large, large, large, fc.oneof(fc.constant('.'), hosts)).map((parts) => parts.join(' ')),
  SVCB: service,
  TLSA: fc
    .tuple(fc.constantFrom(0, 1, 2, 3), fc.constantFrom(0, 1), fc.constantFrom([0, 100], [1, 32], [2, 64]))
    .chain(([usage, selector, [matching = 0, size = 0]]) =>
      hexOf(size).map((data) => `${usage} ${selector} ${matching} ${data}`),
    ),
  TXT: txt,
}

export type TypedValue = { type: RecordType; value: string }

export const typedValues: fc.Arbitrary<TypedValue> = fc.oneof(
  ...Object.entries(values).map(([type, arbitrary]) => arbitrary.map((value) => ({ type: type as RecordType, value }))),
)

const records = fc
  .record({
    name: ownerNames,
    typed: typedValues,
    ttl: fc.integer({ min: 30, max: 86_400 }),
    comment: fc.option(fc.string({ unit: 'binary', maxLength: 30 })),
  })
  .map(({ name, typed: { type, value }, ttl, comment }): WritableRecord => {
    const relative = relativeName(name, zone)
    const rdata = parseRdata(type, value, zone)
    if (!relative.ok || !rdata.ok)
      throw new Error(`valid ${type} at ${name} refused: ${value}: ${JSON.stringify(rdata)}`)
    return { name: relative.value, type, value: rdata.value, ttl, comment }
  })

// The records that our own rules let stand together.
export const zones = fc.array(records, { minLength: 1, maxLength: 40 }).map((all) => {
  const refused = new Set(conflictsWithin(all).map(({ record }) => record))
  return all.filter((record) => !refused.has(record))
})
