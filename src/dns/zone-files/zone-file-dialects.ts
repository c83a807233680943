// Dialects of zone files exported by other services: recognizes them, and repairs lines that mean something else there.
import type { Field } from '../fields.ts'
import { ttlLimits } from '../record-types.ts'
import { ownHeader } from './zone-file-entries.ts'

export const dialects = ['bind', 'cloudflare', 'godaddy', 'route53'] as const
export type Dialect = (typeof dialects)[number]

// The signs of a dialect are at the beginning of a file.
const sniffedCharacters = 8_192

export function dialectOf(text: string): Dialect | null {
  if (text.startsWith(ownHeader)) return null
  const head = text.slice(0, sniffedCharacters)
  if (/^;; ?Domain:/m.test(head) || head.includes('cf_tags=')) return 'cloudflare'
  if (/^; Exported \(y-m-d/m.test(head)) return 'godaddy'
  if (/^\\052[.\s]|\sAWS\s+ALIAS\s/m.test(head) || /\.awsdns-\d\d\./.test(head)) return 'route53'
  if (/^; (?:File written on|dnssec_signzone version)/m.test(head)) return 'bind'
  return null
}

// A line before it is read as a record. A repair changes it and explains that in `notes`.
export type Line = {
  ttl: number | null
  class: string
  type: string
  rdata: Field[]
  comment: string
  notes: string[]
}

const aliasTtl = 60

function plainField(raw: string): Field {
  return { raw, quoted: false, adjacent: false }
}

// Types whose last fields are names, and the index of the first of these.
const targets: Readonly<Record<string, number>> = { CNAME: 0, NS: 0, PTR: 0, MX: 1, SRV: 3, ALIAS: 0 }

const endsInDot = (name: string) => name.endsWith('.')

export function repair(line: Line, { dialect, isApex }: { dialect: Dialect | null; isApex: boolean }): Line {
  const type = line.type.toUpperCase()
  const note = (detail: string) => void line.notes.push(detail)
  if (line.ttl === 1) {
    line.ttl = ttlLimits.default
    note(`The TTL 1 means automatic at Cloudflare; ${ttlLimits.default} is used instead.`)
  }
  if (type === 'SPF') {
    line.type = 'TXT'
    note('Records of type SPF are obsolete (RFC 7208); this one is imported as TXT.')
  } else if (type === 'ANAME') {
    line.type = 'ALIAS'
    note('The ANAME record is imported as ALIAS.')
  } else if (line.class === 'AWS' && type === 'ALIAS' && /^(?:A|AAAA|CNAME)$/i.test(line.rdata[0]?.raw ?? '')) {
    // cli53 writes: ALIAS, the type of the answer, the target, the id of its zone, and whether its health counts.
    Object.assign(line, { class: 'IN', ttl: aliasTtl, rdata: line.rdata.slice(1, 2) })
    note(`The Route 53 alias is imported as ALIAS with a TTL of ${aliasTtl}.`)
  }
  if (dialect === 'cloudflare') {
    line.comment = line.comment.replace(/ ?\bcf_tags=\S*/g, '').trim()
    if (type === 'CNAME' && isApex) {
      line.type = 'ALIAS'
      note('The CNAME record of the domain itself, which Cloudflare flattens, is imported as ALIAS.')
    }
  }
  const at = targets[type]
  const target = at === undefined ? undefined : line.rdata[at]
  if (dialect === 'godaddy' && at !== undefined && target?.raw.includes('.') && !endsInDot(target.raw)) {
    line.rdata = line.rdata.with(at, plainField(`${target.raw}.`))
    note(`GoDaddy omits the trailing dot; the target is ${target.raw}.`)
  }
  return line
}

// The owner that the exporting service meant; null if it means what it says.
export function repairedOwner(
  raw: string,
  dialect: Dialect | null,
  zone: string,
): { raw: string; note: string } | null {
  // \052 is octal. In decimal, as everyone else writes escapes, it would be a digit, which needs no escape.
  if (/^\\052(?:\.|$)/.test(raw))
    return { raw: `*${raw.slice(4)}`, note: 'Route 53 writes * as \\052; it is imported as *.' }
  if (dialect !== 'cloudflare' && dialect !== 'godaddy') return null
  const name = raw.toLowerCase()
  if (name !== zone && !name.endsWith(`.${zone}`)) return null
  return { raw: `${raw}.`, note: `The trailing dot of ${raw} is missing; it is read as a full name.` }
}

// A value that isn't an address: GoDaddy writes it for a domain that points to its own pages.
export function isPlaceholder(line: Line, dialect: Dialect | null): boolean {
  return (
    dialect === 'godaddy' && /^A$/i.test(line.type) && /^(?:parked|websitebuilder)$/i.test(line.rdata[0]?.raw ?? '')
  )
}
