// Generic rdata (RFC 3597, \\# length digits): kept for types that we don't name, converted to text for all others.
import type { Field } from '../fields.ts'
import { hexOctets, quotedOctets } from '../octets.ts'
import { type Parsed, parsed, refused } from '../parsed.ts'
import { isNamedType, maxRdataOctets, type NamedType, type NumberedType, type RecordType } from '../record-types.ts'
import { locText } from './loc.ts'
import { plainTexts, wholeNumber } from './rdata-fields.ts'
import { type LaidOut, layouts, otherLayouts, textFromWire } from './rdata-layouts.ts'
import { paramToText } from './svcb-params.ts'
import { WireReader } from './wire-reader.ts'

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

const writers: Partial<Readonly<Record<NamedType, (wire: WireReader) => string>>> = {
  HTTPS: service,
  LOC: locText,
  SVCB: service,
  TXT: strings,
}

export function isGeneric(fields: Field[]): boolean {
  return fields[0]?.raw === '\\#' && !fields[0].quoted
}

export function genericValue(octets: Buffer): string {
  const digits = octets.toString('hex').toUpperCase()
  return `\\# ${octets.length}${digits && ` ${digits}`}`
}

// The octets of a canonical value.
export function genericOctets(value: string): Buffer {
  return Buffer.from(value.split(' ')[2] ?? '', 'hex')
}

function readOctets(fields: Field[]): Parsed<Buffer> {
  const texts = plainTexts(fields.slice(1), 1, Number.POSITIVE_INFINITY)
  if (!texts.ok) return texts
  const length = wholeNumber(texts.value[0], 65_535)
  const digits = texts.value.slice(1).join('')
  const hex = digits === '' ? '' : hexOctets(digits)
  if (length === null || hex === null || hex.length !== length * 2) {
    return refused('Generic rdata must be \\#, the number of octets, and that many octets in hexadecimal.')
  }
  if (length > maxRdataOctets) return refused(`The value is longer than ${maxRdataOctets} octets.`)
  return parsed(Buffer.from(hex, 'hex'))
}

// Converts generic rdata to text that isn't canonical yet and must still be read as a value of its type.
export function genericPresentation(type: RecordType, fields: Field[]): Parsed<string> {
  const octets = readOctets(fields)
  if (!octets.ok) return octets
  const layout = isNamedType(type) ? layouts[type as LaidOut] : otherLayouts.get(Number(type.slice(4)))
  const wire = new WireReader(octets.value)
  if (type === 'ALIAS') return refused('An ALIAS record cannot use generic rdata.')
  const text = layout ? textFromWire(layout, wire) : (writers[type as NamedType]?.(wire) ?? '')
  if (wire.failed || wire.at !== wire.octets.length) {
    return refused(`The generic rdata is not well-formed rdata of type ${type}.`)
  }
  return parsed(text)
}

// Accepts any octets, for types without a name or layout here.
export function readOpaque(type: NumberedType, fields: Field[]): Parsed<string> {
  if (!isGeneric(fields)) return refused(`A value of type ${type} must be generic rdata.`)
  const octets = readOctets(fields)
  return octets.ok ? parsed(genericValue(octets.value)) : octets
}
