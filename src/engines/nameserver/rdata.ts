// Converts stored record values to wire format, once, when a zone is built.
import { ipv4Octets, ipv6Octets } from '../../dns/addresses.ts'
import { splitFields } from '../../dns/fields.ts'
import { octetsOf } from '../../dns/octets.ts'
import { wireName } from '../../dns/packet/wire-names.ts'
import { svcbParams } from '../../dns/svcb.ts'
import { txtStrings } from '../../dns/txt.ts'

/**
 * `head`, then `names`, then `tail`. Only the types of RFC 1035 have separate names, because only those may be
 * compressed (RFC 3597, section 4); a name in SRV or SVCB data is part of the octets.
 */
export type Rdata = { head: Buffer; names: readonly string[]; tail: Buffer }

const none = Buffer.alloc(0)

function octets(...parts: (Buffer | string)[]): Rdata {
  // A slice of Node's buffer pool would keep the whole pool in memory as long as the zone.
  const whole = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)))
  const head = Buffer.allocUnsafeSlow(whole.length)
  whole.copy(head)
  return { head, names: [], tail: none }
}

function u16(text: string): Buffer {
  const number = Number(text)
  return Buffer.from([number >> 8, number & 0xff])
}

function name(value: string): Rdata {
  return { head: none, names: [wireName(value)], tail: none }
}

/** Three numbers, the first of `firstOctets`, and hexadecimal digits: DS and TLSA. */
function digest(value: string, firstOctets: 1 | 2): Rdata {
  const [first = '', second = '', third = '', digits = ''] = value.split(' ')
  const head = firstOctets === 2 ? u16(first) : Buffer.from([Number(first)])
  return octets(head, Buffer.from([Number(second), Number(third)]), Buffer.from(digits, 'hex'))
}

function service(value: string): Rdata {
  const [priority = '', target = ''] = value.split(' ', 2)
  const params = svcbParams(value).flatMap(({ key, wire }) => [u16(`${key}`), u16(`${wire.length}`), wire])
  return octets(u16(priority), wireName(target), ...params)
}

function caa(value: string): Rdata | null {
  const fields = splitFields(value)
  if (!fields.ok || fields.value.length !== 3) return null
  const [flags, tag, property] = fields.value
  const text = octetsOf(property!.raw)
  if (!text.ok) return null
  return octets(Buffer.from([Number(flags!.raw), tag!.raw.length]), tag!.raw, text.value)
}

const writers: Readonly<Record<string, (value: string) => Rdata | null>> = {
  A(value) {
    const address = ipv4Octets(value)
    return address && octets(address)
  },
  AAAA(value) {
    const address = ipv6Octets(value)
    return address && octets(address)
  },
  CAA: caa,
  CNAME: name,
  DS: (value) => digest(value, 2),
  HTTPS: service,
  MX(value) {
    const [preference = '', target = ''] = value.split(' ')
    return { head: u16(preference), names: [wireName(target)], tail: none }
  },
  NS: name,
  SRV(value) {
    const [priority = '', weight = '', port = '', target = ''] = value.split(' ')
    return octets(u16(priority), u16(weight), u16(port), wireName(target))
  },
  SVCB: service,
  TLSA: (value) => digest(value, 1),
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

/** Null if the value is not canonical; values from the API always are. */
export function rdataOf(type: string, value: string): Rdata | null {
  return writers[type]?.(value) ?? null
}
