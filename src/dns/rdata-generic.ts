// Generic rdata of zone files (RFC 3597, \# length digits): wire octets back to presentation format.
import { ipv4Text, ipv6Text } from './addresses.ts'
import type { Field } from './fields.ts'
import { hexOctets, quotedOctets } from './octets.ts'
import { type Parsed, parsed, refused } from './parsed.ts'
import { plainTexts, wholeNumber } from './rdata-fields.ts'
import type { RecordType } from './record-types.ts'
import { paramToText } from './svcb-params.ts'

class WireReader {
  at = 0
  readonly octets: Buffer
  failed = false

  constructor(octets: Buffer) {
    this.octets = octets
  }

  take(length: number): Buffer {
    if (this.at + length > this.octets.length) this.failed = true
    const part = this.octets.subarray(this.at, this.at + length)
    this.at += length
    return part
  }

  rest(): Buffer {
    return this.take(Math.max(0, this.octets.length - this.at))
  }

  get left(): boolean {
    return !this.failed && this.at < this.octets.length
  }

  number(size: 1 | 2): number {
    const part = this.take(size)
    return this.failed ? 0 : part.readUIntBE(0, size)
  }

  name(): string {
    let text = ''
    while (!this.failed) {
      const length = this.number(1)
      if (length === 0) break
      // Compression pointers have no place in generic rdata.
      if (length > 63) this.failed = true
      // Every octet escaped: the reader of names decides which are allowed, and a dot inside a label stays one.
      for (const octet of this.take(length)) text += `\\${octet.toString().padStart(3, '0')}`
      text += '.'
    }
    return text === '' ? '.' : text
  }
}

function strings(wire: WireReader): string {
  const texts: string[] = []
  while (wire.left) texts.push(quotedOctets(wire.take(wire.number(1))))
  return texts.join(' ')
}

function service(wire: WireReader): string {
  const texts = [`${wire.number(2)}`, wire.name()]
  while (wire.left) {
    const key = wire.number(2)
    const text = paramToText(key, wire.take(wire.number(2)))
    if (text.ok) texts.push(text.value)
    else wire.failed = true
  }
  return texts.join(' ')
}

const writers: Readonly<Record<RecordType, ((wire: WireReader) => string) | null>> = {
  A: (wire) => ipv4Text(wire.take(4)),
  AAAA: (wire) => (wire.octets.length === 16 ? ipv6Text(wire.take(16)) : ''),
  ALIAS: null,
  CAA: (wire) => `${wire.number(1)} ${wire.take(wire.number(1)).toString('latin1')} ${quotedOctets(wire.rest())}`,
  CNAME: (wire) => wire.name(),
  DS: (wire) => `${wire.number(2)} ${wire.number(1)} ${wire.number(1)} ${wire.rest().toString('hex')}`,
  HTTPS: service,
  MX: (wire) => `${wire.number(2)} ${wire.name()}`,
  NS: (wire) => wire.name(),
  SRV: (wire) => `${wire.number(2)} ${wire.number(2)} ${wire.number(2)} ${wire.name()}`,
  SVCB: service,
  TLSA: (wire) => `${wire.number(1)} ${wire.number(1)} ${wire.number(1)} ${wire.rest().toString('hex')}`,
  TXT: strings,
}

export function isGeneric(fields: Field[]): boolean {
  return fields[0]?.raw === '\\#' && !fields[0].quoted
}

// Not canonical yet: the result must still go through parseRdata.
export function genericPresentation(type: RecordType, fields: Field[]): Parsed<string> {
  const texts = plainTexts(fields.slice(1), 1, Number.POSITIVE_INFINITY)
  if (!texts.ok) return texts
  const length = wholeNumber(texts.value[0], 65_535)
  const digits = texts.value.slice(1).join('')
  const hex = digits === '' ? '' : hexOctets(digits)
  if (length === null || hex === null || hex.length !== length * 2) {
    return refused('Generic rdata is \\#, the number of octets, and as many octets in hexadecimal.')
  }
  const wire = new WireReader(Buffer.from(hex, 'hex'))
  const text = writers[type]?.(wire)
  if (text === undefined || wire.failed || wire.at !== wire.octets.length) {
    return refused(`The generic rdata is not well-formed rdata of type ${type}.`)
  }
  return parsed(text)
}
