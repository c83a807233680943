// Converts stored record values to wire format.
import { splitFields } from '../fields.ts'
import { wireName } from '../packet/wire-names.ts'
import type { NamedType } from '../record-types.ts'
import { isRecordType } from '../type-names.ts'
import { locOctets } from './loc.ts'
import { genericOctets } from './rdata-generic.ts'
import { type LaidOut, layouts, partsOnWire } from './rdata-layouts.ts'
import { svcbParams } from './svcb.ts'
import { txtStrings } from './txt.ts'

/**
 * `head`, then `names`, then `tail`. Only the types of RFC 1035 have separate names, because only those may be compressed
 * (RFC 3597, section 4). In other types, such as SRV or SVCB, names are part of the octets.
 */
export type Rdata = { head: Buffer; names: readonly string[]; tail: Buffer }

const none = Buffer.alloc(0)

function octets(...parts: (Buffer | string)[]): Rdata {
  // A slice of Node's buffer pool would keep the whole pool in memory for as long as the zone.
  const whole = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)))
  const head = Buffer.allocUnsafeSlow(whole.length)
  whole.copy(head)
  return { head, names: [], tail: none }
}

function u16(number: number): Buffer {
  return Buffer.from([number >> 8, number & 0xff])
}

function service(value: string): Rdata {
  const [priority = '', target = ''] = value.split(' ', 2)
  const params = svcbParams(value).flatMap(({ key, wire }) => [u16(key), u16(wire.length), wire])
  return octets(u16(Number(priority)), wireName(target), ...params)
}

const writers: Partial<Readonly<Record<NamedType, (value: string) => Rdata | null>>> = {
  HTTPS: service,
  LOC(value) {
    const fields = splitFields(value)
    const found = fields.ok ? locOctets(fields.value) : fields
    return found.ok ? octets(found.value) : null
  },
  SVCB: service,
  TXT(value) {
    const strings = txtStrings(value)
    return strings.length === 0 ? null : textRdata(strings)
  },
}

/** Character-strings of at most 255 octets each. */
export function textRdata(strings: readonly Buffer[]): Rdata {
  return octets(...strings.flatMap((string) => [Buffer.from([string.length]), string]))
}

export function addressRdata(address: Buffer): Rdata {
  return { head: address, names: [], tail: none }
}

/** A name in the form of wireName, which may be compressed. */
export function nameRdata(name: string): Rdata {
  return { head: none, names: [name], tail: none }
}

export function soaRdata(soa: {
  mname: string
  rname: string
  serial: number
  refresh: number
  retry: number
  expire: number
  minimum: number
}): Rdata {
  const tail = Buffer.allocUnsafeSlow(20)
  const numbers = [soa.serial, soa.refresh, soa.retry, soa.expire, soa.minimum]
  for (const [index, number] of numbers.entries()) tail.writeUInt32BE(number >>> 0, index * 4)
  return { head: none, names: [wireName(soa.mname), wireName(soa.rname)], tail }
}

/** Null if the value isn't canonical; values from the API always are. */
export function rdataOf(type: string, value: string): Rdata | null {
  if (!isRecordType(type) || type === 'ALIAS') return null
  const writer = writers[type as NamedType]
  if (writer) return writer(value)
  const layout = layouts[type as LaidOut]
  if (!layout) return octets(genericOctets(value))
  if (layout.compressed) {
    const head = layout.kinds.length === 1 ? none : octets(...partsOnWire(layout, value).slice(0, -1)).head
    return { head, names: [wireName(value.slice(value.lastIndexOf(' ') + 1))], tail: none }
  }
  const parts = partsOnWire(layout, value)
  // A CAA record may have an empty value; all other parts have octets.
  return type === 'CAA' || parts.every((part) => part.length > 0) ? octets(...parts) : null
}
