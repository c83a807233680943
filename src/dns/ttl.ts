// TTLs: what a zone file may contain, what a record may have, and what an RRset answers with.
import { ttlLimits } from './record-types.ts'

const unitSeconds: Readonly<Record<string, number>> = { w: 604_800, d: 86_400, h: 3600, m: 60, s: 1 }
const maxFileTtl = 0xffff_ffff

// Null unless the text is a TTL: seconds, or BIND's units as in 1h30m.
export function fileTtl(text: string): number | null {
  if (!/^\d/.test(text) || text.length > 60 || !/^(?:\d{1,10}|(?:\d{1,10}[wdhms])+)$/i.test(text)) return null
  let seconds = 0
  for (const [, digits, unit] of text.toLowerCase().matchAll(/(\d+)([wdhms]?)/g)) {
    seconds += Number(digits) * (unitSeconds[unit ?? ''] ?? 1)
  }
  return seconds <= maxFileTtl ? seconds : null
}

export function clampedTtl(ttl: number): number {
  return Math.min(ttlLimits.max, Math.max(ttlLimits.min, ttl))
}

// All records of an RRset have the same TTL (RFC 2181, section 5.2): the lowest, so that no change is late.
export function rrsetTtl(records: Iterable<{ ttl: number }>): number {
  let lowest: number = ttlLimits.max
  for (const { ttl } of records) lowest = Math.min(lowest, ttl)
  return lowest
}
