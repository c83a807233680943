// Writes a zone as a zone file that BIND takes unchanged and our own reader takes back whole.

import { portableSvcb } from '../rdata/svcb.ts'
import type { RecordType } from '../record-types.ts'
import { ttlLimits } from '../record-types.ts'
import { rrsetTtl } from '../ttl.ts'
import { ownHeader, ownLinePrefix } from './zone-file-entries.ts'

export type WritableRecord = { name: string; type: RecordType; value: string; ttl: number; comment?: string | null }

export type WritableZone = {
  zone: string
  serial: number
  nameservers: readonly string[]
  soa: {
    mname: string
    rname: string
    refresh: number
    retry: number
    expire: number
    minimum: number
    ttl: number
  }
  records: readonly WritableRecord[]
  // What the nameservers answer with while the zone has no address of its own; written as comments only.
  generated?: readonly Omit<WritableRecord, 'comment'>[]
  comments?: readonly string[]
}

// Types whose last field is a name that must end in a dot in a file.
const pointing: ReadonlySet<RecordType> = new Set(['ALIAS', 'CNAME', 'DNAME', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV'])

function fullyQualified(name: string): string {
  return name.endsWith('.') ? name : `${name}.`
}

// A line break in a comment would let its author write records.
function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
}

function valueInFile(type: RecordType, value: string): string {
  // Canonical values have none; blanks stay as they are, since in a quoted string they count.
  const text = value.replace(/\p{Cc}/gu, ' ')
  if (type === 'HTTPS' || type === 'SVCB') return portableSvcb(text)
  return pointing.has(type) ? fullyQualified(text) : text
}

function reversedLabels(name: string): string {
  return name === '@' ? '' : name.split('.').reverse().join('\u0000')
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

// Parents before children and siblings together, as zones are signed and compared (RFC 4034, section 6.1).
function inCanonicalOrder<T extends WritableRecord>(records: readonly T[]): T[] {
  const keyed = records.map((record) => ({ record, order: reversedLabels(record.name) }))
  keyed.sort(
    (one, other) =>
      compareText(one.order, other.order) ||
      compareText(one.record.type, other.record.type) ||
      compareText(one.record.value, other.record.value),
  )
  return keyed.map(({ record }) => record)
}

function rrsetTtls(records: readonly WritableRecord[]): Map<string, number> {
  const ttls = new Map<string, number>()
  for (const { name, type, ttl } of records) {
    const key = `${name} ${type}`
    ttls.set(key, rrsetTtl([{ ttl }, { ttl: ttls.get(key) ?? ttl }]))
  }
  return ttls
}

type Line = { name: string; ttl: number; type: string; value: string; comment?: string }

// One blank between fields: columns would make a large zone half as long again.
function written({ name, ttl, type, value, comment }: Line): string {
  const line = `${name} ${ttl} IN ${type} ${value}`
  return comment ? `${line} ; ${comment}` : line
}

export function writeZoneFile(input: WritableZone): string {
  const { zone, serial, nameservers, soa, records, generated = [], comments = [] } = input
  const ttls = rrsetTtls(records)

  const { mname, rname, refresh, retry, expire, minimum } = soa
  const timers = [serial, refresh, retry, expire, minimum].join(' ')
  const soaValue = `${fullyQualified(mname)} ${fullyQualified(rname)} ${timers}`
  const lines = [
    ownHeader + fullyQualified(zone),
    ...comments.map((comment) => `; ${oneLine(comment)}`),
    `$ORIGIN ${fullyQualified(zone)}`,
    `$TTL ${ttlLimits.default}`,
    written({ name: '@', ttl: soa.ttl, type: 'SOA', value: soaValue }),
    ...[...nameservers]
      .sort(compareText)
      .map((host) => written({ name: '@', ttl: soa.ttl, type: 'NS', value: fullyQualified(host) })),
  ]
  for (const { name, type, value, comment } of inCanonicalOrder(records)) {
    const ttl = ttls.get(`${name} ${type}`) ?? ttlLimits.default
    const line = { name, ttl, type, value: valueInFile(type, value), comment: oneLine(comment ?? '') }
    // ALIAS exists in no other program, so to them it is a comment.
    lines.push(type === 'ALIAS' ? ownLinePrefix + written(line) : written(line))
  }
  if (generated.length > 0) {
    lines.push('; While these names have no address record of their own, the nameservers answer them with:')
    for (const { name, type, value, ttl } of inCanonicalOrder(generated)) {
      lines.push(`; ${written({ name, ttl, type, value: valueInFile(type, value) })}`)
    }
  }
  return `${lines.join('\n')}\n`
}
