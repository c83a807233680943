// Record values: converts presentation format of any type to the canonical text that is stored and compared.
import { type Field, splitFields } from '../fields.ts'
import { hostTarget } from '../names.ts'
import { type Parsed, parsed, refused, shown, unreadableText } from '../parsed.ts'
import { isNamedType, type NamedType, type NumberedType, policyOf, type RecordType } from '../record-types.ts'
import { isRecordType, typeRefusal } from '../type-names.ts'
import { locOctets, locText } from './loc.ts'
import type { RdataReader, ResolveTarget } from './rdata-fields.ts'
import { genericPresentation, genericValue, isGeneric, readOpaque } from './rdata-generic.ts'
import { type LaidOut, layouts, otherLayouts, partsOnWire, readLaidOut } from './rdata-layouts.ts'
import { parseSvcb } from './svcb.ts'
import { parseTxtFields, parseTxtValue } from './txt.ts'
import { WireReader } from './wire-reader.ts'

// The longest canonical value, 4,096 octets all written as \DDD, with room for quotes and spaces.
const maxValueCharacters = 20_000

const readers: Partial<Readonly<Record<NamedType, RdataReader>>> = {
  HTTPS: parseSvcb,
  LOC(fields) {
    const octets = locOctets(fields)
    return octets.ok ? parsed(locText(new WireReader(octets.value))) : octets
  },
  SVCB: parseSvcb,
  TXT: parseTxtFields,
}

function explained(type: RecordType, result: Parsed<string>): Parsed<string> {
  if (result.ok) return result
  return refused(
    `${result.detail} The value of ${/^(?:[AHLMNOS]|URI)/.test(type) ? 'an' : 'a'} ${type} record must be ${policyOf(type).expects}.`,
  )
}

function readNumbered(type: NumberedType, fields: Field[], resolve: ResolveTarget): Parsed<string> {
  const layout = otherLayouts.get(Number(type.slice(4)))
  if (!layout) return readOpaque(type, fields)
  const value = readLaidOut(layout, fields, resolve)
  return value.ok ? parsed(genericValue(Buffer.concat(partsOnWire(layout, value.value)))) : value
}

function readFields(type: RecordType, fields: Field[], resolve: ResolveTarget): Parsed<string> {
  if (!isNamedType(type)) return readNumbered(type, fields, resolve)
  const reader = readers[type]
  return reader ? reader(fields, resolve) : readLaidOut(layouts[type as LaidOut], fields, resolve)
}

// Whether generic rdata of the type must be decoded: we store the type in another form, or must check its format.
function isKnown(type: RecordType): boolean {
  return isNamedType(type) || otherLayouts.has(Number(type.slice(4)))
}

// For fields of a zone file, where targets follow $ORIGIN and unquoted text is split at whitespace.
export function parseRdataFields(type: RecordType, fields: Field[], resolve: ResolveTarget): Parsed<string> {
  if (!isGeneric(fields) || !isKnown(type)) return explained(type, readFields(type, fields, resolve))
  const text = genericPresentation(type, fields)
  const presented = text.ok ? splitFields(text.value) : text
  if (!presented.ok) return explained(type, presented)
  // Names on the wire are absolute, so the zone doesn't matter.
  return explained(
    type,
    readFields(type, presented.value, (raw) => hostTarget(raw, '.')),
  )
}

// For values from the API, where targets are absolute and unquoted text is one string.
export function parseRdata(type: RecordType, value: string, zone: string): Parsed<string> {
  if (!isRecordType(type)) {
    return refused(typeRefusal(type) ?? `The record type ${shown(String(type))} is not supported.`)
  }
  if (typeof value !== 'string') return explained(type, refused('The value is not text.'))
  if (value.length > maxValueCharacters) {
    return explained(type, refused(`The value is longer than ${maxValueCharacters} characters.`))
  }
  const unreadable = unreadableText(value)
  if (unreadable) return explained(type, refused(`The value ${unreadable}.`))
  const text = value.replace(/^[ \t]+/, '')
  const trimmed = withoutLastBlanks(text)
  const fields = splitFields(trimmed)
  if (type === 'TXT' && !(fields.ok && isGeneric(fields.value))) return explained(type, parseTxtValue(trimmed))
  if (!fields.ok) return explained(type, fields)
  return parseRdataFields(type, fields.value, (raw) => hostTarget(raw, zone))
}

// Not /[ \t]+$/, which takes quadratic time on a long run of whitespace before another character. An escaped space at the
// end belongs to the value.
function withoutLastBlanks(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--
  return text[end - 1] === '\\' ? text.slice(0, end + 1) : text.slice(0, end)
}
