// Writes a zone file that BIND accepts unchanged and our own reader reads back completely.

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
  // What the nameservers answer while the zone has no address records of its own; only written as comments.
  generated?: readonly Omit<WritableRecord, 'comment'>[]
  comments?: readonly string[]
}

// Types whose last field is a name, which must end with a dot in a file.
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
  // Canonical values have no control characters. Spaces are kept, because they count in a quoted string.
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

// Parents before children, siblings together: the order in which zones are signed (RFC 4034, section 6.1).
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

// One space between fields: aligned columns would make a large zone half as long again.
function formatLine({ name, ttl, type, value, comment }: Line): string {
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
    formatLine({ name: '@', ttl: soa.ttl, type: 'SOA', value: soaValue }),
    ...[...nameservers]
      .sort(compareText)
      .map((host) => formatLine({ name: '@', ttl: soa.ttl, type: 'NS', value: fullyQualified(host) })),
  ]
  for (const { name, type, value, comment } of inCanonicalOrder(records)) {
    const ttl = ttls.get(`${name} ${type}`) ?? ttlLimits.default
    const line = { name, ttl, type, value: valueInFile(type, value), comment: oneLine(comment ?? '') }
    // Other programs have no ALIAS, so to them it is a comment.
    lines.push(type === 'ALIAS' ? ownLinePrefix + formatLine(line) : formatLine(line))
  }
  if (generated.length > 0) {
    lines.push('; While these names have no address record of their own, the nameservers answer them with:')
    for (const { name, type, value, ttl } of inCanonicalOrder(generated)) {
      lines.push(`; ${formatLine({ name, ttl, type, value: valueInFile(type, value) })}`)
    }
  }
  return `${lines.join('\n')}\n`
}
