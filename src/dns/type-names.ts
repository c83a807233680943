// Names and numbers of record types: those that zones hold, those that they hold by number, and the others that exist.
import { typeNumbers } from './packet/numbers.ts'
import { isNamedType, type NamedType, type RecordType, recordTypes } from './record-types.ts'

// Zones do not hold these: the service makes them when it signs a zone.
const signingTypes = 'SIG:24 NXT:30 RRSIG:46 NSEC:47 DNSKEY:48 NSEC3:50 NSEC3PARAM:51 ZONEMD:63'
// Stored as TYPEnnn.
const convertedTypes = 'RP:17 AFSDB:18 RT:21 KX:36 DHCID:49'
// Known, so that a misspelt type stays an error. What others know and we cannot check is not stored: malformed rdata of
// such a type would stop the whole zone at a secondary.
const foreignTypes =
  'MD:3 MF:4 MB:7 MG:8 MR:9 NULL:10 WKS:11 MINFO:14 X25:19 ISDN:20 NSAP:22 NSAP-PTR:23 KEY:25 PX:26 GPOS:27 EID:31 ' +
  'NIMLOC:32 ATMA:34 A6:38 SINK:40 APL:42 IPSECKEY:45 HIP:55 NINFO:56 RKEY:57 TALINK:58 CSYNC:62 DSYNC:66 HHIT:67 ' +
  'BRID:68 SPF:99 NID:104 L32:105 L64:106 LP:107 EUI48:108 EUI64:109 NXNAME:128 AVC:258 DOA:259 AMTRELAY:260 ' +
  'RESINFO:261 WALLET:262 CLA:263 IPN:264 TA:32768 DLV:32769 KEYDATA:65533 ANAME:0 LUA:0'

type Known = { name: string; number: number; kind: 'signing' | 'converted' | 'foreign' }

const known: Known[] = [
  ...listed(signingTypes, 'signing'),
  ...listed(convertedTypes, 'converted'),
  ...listed(foreignTypes, 'foreign'),
]
const knownByName = new Map(known.map((one) => [one.name, one]))
// Those with the number 0 are private to programs, and have none.
const knownByNumber = new Map(known.filter(({ number }) => number > 0).map((one) => [one.number, one]))

function listed(text: string, kind: Known['kind']): Known[] {
  return text.split(' ').map((item) => {
    const [name = '', number] = item.split(':')
    return { name, number: Number(number), kind }
  })
}

// ALIAS has no number: it never goes over the wire.
const namesByNumber = new Map<number, NamedType>(
  recordTypes.flatMap((type) => (type === 'ALIAS' ? [] : [[typeNumbers[type], type] as const])),
)

// What a type is called here: TYPE1 is A. Null for what a zone cannot hold.
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

// Why a zone cannot hold a type; null if it can, or if there is no such type.
export function typeRefusal(text: string): string | null {
  const type = text.slice(0, 32).toUpperCase()
  const number = /^TYPE(\d{1,5})$/.exec(type)?.[1]
  const found = number === undefined ? knownByName.get(type) : knownByNumber.get(Number(number))
  if (found?.kind === 'signing') return `${found.name} records are created by the platform when it signs a zone.`
  if (found?.kind === 'foreign') return `The record type ${found.name} is not supported.`
  return null
}

export type FileType = RecordType | 'SOA' | 'signing' | 'foreign' | 'unknown'

export function typeInZoneFile(text: string): FileType {
  const type = text.slice(0, 32).toUpperCase()
  if (type === 'SOA' || isNamedType(type)) return type
  const numbered = /^TYPE(\d{1,5})$/.exec(type)
  if (!numbered) return fileTypeOf(knownByName.get(type)) ?? 'unknown'
  const number = Number(numbered[1])
  if (number === typeNumbers.SOA) return 'SOA'
  // 0, OPT and 65535 are no types of records, nor are those that exist only in questions and messages.
  const isMeta = number === 0 || number === typeNumbers.OPT || (number > 128 && number < 256) || number >= 65_535
  if (isMeta) return 'unknown'
  return namesByNumber.get(number) ?? fileTypeOf(knownByNumber.get(number)) ?? `TYPE${number}`
}

function fileTypeOf(found: Known | undefined): FileType | null {
  if (!found) return null
  return found.kind === 'converted' ? `TYPE${found.number}` : found.kind
}
