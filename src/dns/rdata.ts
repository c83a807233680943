// Record values: presentation format of any type to the one canonical text that is stored and compared.
import { ipv4Octets, ipv4Text, ipv6Octets, ipv6Text } from './addresses.ts'
import { type Field, splitFields } from './fields.ts'
import { hostTarget } from './names.ts'
import { type Parsed, parsed, refused, shown, unreadableText } from './parsed.ts'
import { plainTexts, type RdataReader, type ResolveTarget } from './rdata-fields.ts'
import { parseHost, parseMx, parseSrv } from './rdata-hosts.ts'
import { parseCaa, parseDs, parseTlsa } from './rdata-security.ts'
import { isRecordType, type RecordType, typePolicies } from './record-types.ts'
import { parseSvcb } from './svcb.ts'
import { parseTxtFields, parseTxtValue } from './txt.ts'

// The longest canonical value, 4,096 octets all written as \DDD, with room for quotes and blanks.
const highestValueCharacters = 20_000

function address(
  called: string,
  read: (text: string) => Buffer | null,
  write: (octets: Buffer) => string,
): RdataReader {
  return (fields) => {
    const texts = plainTexts(fields, 1, 1)
    if (!texts.ok) return texts
    const text = texts.value[0] ?? ''
    const octets = read(text)
    return octets ? parsed(write(octets)) : refused(`${shown(text)} is not an ${called} address.`)
  }
}

const readers: Readonly<Record<RecordType, RdataReader>> = {
  A: address('IPv4', ipv4Octets, ipv4Text),
  AAAA: address('IPv6', ipv6Octets, ipv6Text),
  ALIAS: parseHost,
  CAA: parseCaa,
  CNAME: parseHost,
  DS: parseDs,
  HTTPS: parseSvcb,
  MX: parseMx,
  NS: parseHost,
  SRV: parseSrv,
  SVCB: parseSvcb,
  TLSA: parseTlsa,
  TXT: parseTxtFields,
}

function explained(type: RecordType, result: Parsed<string>): Parsed<string> {
  if (result.ok) return result
  return refused(
    `${result.detail} The value of ${/^[AHMNS]/.test(type) ? 'an' : 'a'} ${type} record is ${typePolicies[type].expects}.`,
  )
}

// From the fields of a zone file, where targets follow $ORIGIN and unquoted text is split at blanks.
export function parseRdataFields(type: RecordType, fields: Field[], resolve: ResolveTarget): Parsed<string> {
  return explained(type, readers[type](fields, resolve))
}

// From a value of the API, where targets are absolute and unquoted text is one string.
export function parseRdata(type: RecordType, value: string, zone: string): Parsed<string> {
  if (!isRecordType(type)) return refused(`The record type ${shown(String(type))} is not supported.`)
  if (typeof value !== 'string') return explained(type, refused('The value is not text.'))
  if (value.length > highestValueCharacters) {
    return explained(type, refused(`The value is longer than ${highestValueCharacters} characters.`))
  }
  const unreadable = unreadableText(value)
  if (unreadable) return explained(type, refused(`The value ${unreadable}.`))
  const text = value.replace(/^[ \t]+/, '')
  const trimmed = withoutLastBlanks(text)
  if (type === 'TXT') return explained(type, parseTxtValue(trimmed))
  const fields = splitFields(trimmed)
  if (!fields.ok) return explained(type, fields)
  return parseRdataFields(type, fields.value, (raw) => hostTarget(raw, zone))
}

// Not /[ \t]+$/, which takes quadratic time on a long run of blanks before another character. A blank that a
// backslash escapes belongs to the value.
function withoutLastBlanks(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === ' ' || text[end - 1] === '\t')) end--
  return text[end - 1] === '\\' ? text.slice(0, end + 1) : text.slice(0, end)
}
