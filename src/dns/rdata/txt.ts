// TXT values: accepts raw text or quoted strings, and returns quoted character-strings of at most 255 octets.
import { type Field, splitFields } from '../fields.ts'
import { octetsOf, quotedOctets } from '../octets.ts'
import { type Parsed, parsed, refused } from '../parsed.ts'
import { maxRdataOctets } from '../record-types.ts'

const maxStringOctets = 255

function wireStrings(octets: Buffer): Buffer[] {
  if (octets.length === 0) return [octets]
  const strings: Buffer[] = []
  for (let at = 0; at < octets.length; at += maxStringOctets) {
    strings.push(octets.subarray(at, at + maxStringOctets))
  }
  return strings
}

function canonicalTxt(texts: Buffer[]): Parsed<string> {
  const strings = texts.flatMap(wireStrings)
  const size = strings.reduce((sum, string) => sum + 1 + string.length, 0)
  if (size > maxRdataOctets) {
    return refused(`The text is ${size} octets long; the limit of a TXT record is ${maxRdataOctets}.`)
  }
  return parsed(strings.map(quotedOctets).join(' '))
}

// In a zone file, every field is a separate string, quoted or not.
export function parseTxtFields(fields: Field[]): Parsed<string> {
  if (fields.length === 0) return refused('A TXT record needs text. Write "" for an empty string.')
  const texts: Buffer[] = []
  for (const field of fields) {
    const octets = octetsOf(field.raw)
    if (!octets.ok) return octets
    texts.push(octets.value)
  }
  return canonicalTxt(texts)
}

// In the API, an unquoted value is one text, including spaces: nobody who sends "v=spf1 -all" means two strings.
export function parseTxtValue(value: string): Parsed<string> {
  if (!value.startsWith('"')) {
    if (value === '') return refused('A TXT record needs text. Write "" for an empty string.')
    // Taken literally, a pasted "v=DKIM1\; k=rsa" would be published with its backslash and fail silently.
    if (/\\(?:[;"\\]|\d{3})/.test(value)) {
      return refused('The text has backslash escapes but no quotes. Put it in quotes, for example "a\\\\b" for a\\b.')
    }
    return canonicalTxt([Buffer.from(value, 'utf8')])
  }
  const fields = splitFields(value)
  if (!fields.ok) return fields
  if (fields.value.some((field) => !field.quoted)) {
    return refused('There is text outside the quotes. Put each string in quotes, for example "one" "two".')
  }
  return parseTxtFields(fields.value)
}

// The character-strings of a canonical value, in wire format.
export function txtStrings(value: string): Buffer[] {
  const fields = splitFields(value)
  if (!fields.ok) return []
  return fields.value.flatMap((field) => {
    const octets = octetsOf(field.raw)
    return octets.ok ? wireStrings(octets.value) : []
  })
}
