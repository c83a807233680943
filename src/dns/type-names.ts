// Names and numbers of record types: those that zones contain, those stored by number, and all other existing types.
import { typeNumbers } from './packet/numbers.ts'
import { isNamedType, type NamedType, type RecordType, recordTypes } from './record-types.ts'

// Not allowed in zones: the platform creates them when it signs a zone.
const signingTypes = 'SIG:24 NXT:30 RRSIG:46 NSEC:47 DNSKEY:48 NSEC3:50 NSEC3PARAM:51 ZONEMD:63'
// Stored as TYPEnnn.
const convertedTypes = 'RP:17 AFSDB:18 RT:21 KX:36 DHCID:49'
// Listed so that only a misspelled type is unknown. Types that other software knows and we can't validate are not stored:
// malformed rdata of such a type would make a secondary refuse the whole zone.
const foreignTypes =
  'MD:3 MF:4 MB:7 MG:8 MR:9 NULL:10 WKS:11 MINFO:14 X25:19 ISDN:20 NSAP:22 NSAP-PTR:23 KEY:25 PX:26 GPOS:27 EID:31 ' +
  'NIMLOC:32 ATMA:34 A6:38 SINK:40 APL:42 IPSECKEY:45 HIP:55 NINFO:56 RKEY:57 TALINK:58 CSYNC:62 DSYNC:66 HHIT:67 ' +
  'BRID:68 SPF:99 NID:104 L32:105 L64:106 LP:107 EUI48:108 EUI64:109 NXNAME:128 AVC:258 DOA:259 AMTRELAY:260 ' +
  'RESINFO:261 WALLET:262 CLA:263 IPN:264 TA:32768 DLV:32769 KEYDATA:65533 ANAME:0 LUA:0'

type OtherType = { name: string; number: number; kind: 'signing' | 'converted' | 'foreign' }

const otherTypes: OtherType[] = [
  ...listed(signingTypes, 'signing'),
  ...listed(convertedTypes, 'converted'),
  ...listed(foreignTypes, 'foreign'),
]
const otherByName = new Map(otherTypes.map((one) => [one.name, one]))
// Types with the number 0 are private to a program and have no number.
const otherByNumber = new Map(otherTypes.filter(({ number }) => number > 0).map((one) => [one.number, one]))

function listed(text: string, kind: OtherType['kind']): OtherType[] {
  return text.split(' ').map((item) => {
    const [name = '', number] = item.split(':')
    return { name, number: Number(number), kind }
  })
}

// ALIAS has no number, because it is never sent.
const namesByNumber = new Map<number, NamedType>(
  recordTypes.flatMap((type) => (type === 'ALIAS' ? [] : [[typeNumbers[type], type] as const])),
)

// The canonical name of a type: TYPE1 becomes A. Null if a zone can't contain it.
export function recordTypeOf(text: string): RecordType | null {
  if (isNamedType(text)) return text
  const type = /^TYPE\d+$/.test(text) ? typeInZoneFile(text) : 'unknown'
  return isNamedType(type) || type.startsWith('TYPE') ? (type as RecordType) : null
}

export function isRecordType(text: string): text is RecordType {
  return isNamedType(text) || recordTypeOf(text) === text
}

export function numberOf(type: Exclude<RecordType, 'ALIAS'>): number {
  return isNamedType(type) ? typeNumbers[type as Exclude<NamedType, 'ALIAS'>] : Number(type.slice(4))
}

// Why a zone can't contain a type; null if it can, or if there is no such type.
export function typeRefusal(text: string): string | null {
  const type = text.slice(0, 32).toUpperCase()
  const number = /^TYPE(\d{1,5})$/.exec(type)?.[1]
  const found = number === undefined ? otherByName.get(type) : otherByNumber.get(Number(number))
  if (found?.kind === 'signing') return `${found.name} records are created by the platform when it signs a zone.`
  if (found?.kind === 'foreign') return `The record type ${found.name} is not supported.`
  return null
}

export type FileType = RecordType | 'SOA' | 'signing' | 'foreign' | 'unknown'

export function typeInZoneFile(text: string): FileType {
  const type = text.slice(0, 32).toUpperCase()
  if (type === 'SOA' || isNamedType(type)) return type
  const numbered = /^TYPE(\d{1,5})$/.exec(type)
  if (!numbered) return fileTypeOf(otherByName.get(type)) ?? 'unknown'
  const number = Number(numbered[1])
  if (number === typeNumbers.SOA) return 'SOA'
  // 0, OPT, 65535 and the types that only exist in questions and messages are not types of records.
  const isMeta = number === 0 || number === typeNumbers.OPT || (number > 128 && number < 256) || number >= 65_535
  if (isMeta) return 'unknown'
  return namesByNumber.get(number) ?? fileTypeOf(otherByNumber.get(number)) ?? `TYPE${number}`
}

function fileTypeOf(found: OtherType | undefined): FileType | null {
  if (!found) return null
  return found.kind === 'converted' ? `TYPE${found.number}` : found.kind
}
