// DS records as text: creates them for keys, and checks whether one at the parent belongs to a key.
import { hash } from 'node:crypto'
import { wireName } from '../packet/wire-names.ts'
import { digestType, dnskeyRdata, keyTagOf } from './keys.ts'

export type PublicKey = { tag: number; publicKey: Uint8Array }

/** Digests that a DS record may have: SHA-1, SHA-256 and SHA-384. Some registrars create their own. */
const digests = new Map([
  [1, 'sha1'],
  [digestType, 'sha256'],
  [4, 'sha384'],
])

function digestOf(zone: string, dnskey: Uint8Array, type: number): string | null {
  const algorithm = digests.get(type)
  if (algorithm === undefined) return null
  const owner = Buffer.from(wireName(zone), 'latin1')
  return hash(algorithm, Buffer.concat([owner, dnskey]), 'hex').toUpperCase()
}

/** The DS record for the rdata of any DNSKEY record. */
export function dsTextOfDnskey(zone: string, dnskey: Uint8Array): string {
  return `${keyTagOf(dnskey)} ${dnskey[3]} ${digestType} ${digestOf(zone, dnskey, digestType)}`
}

export function dsTextOf(zone: string, { publicKey }: PublicKey): string {
  return dsTextOfDnskey(zone, dnskeyRdata(publicKey))
}

/** Whether the text is a DS record for the rdata of a DNSKEY record, with any digest. */
export function isDsOfDnskey(zone: string, dnskey: Uint8Array, text: string): boolean {
  const [seenTag, algorithm, type, digest] = text.split(' ')
  if (Number(seenTag) !== keyTagOf(dnskey) || Number(algorithm) !== dnskey[3]) return false
  return digestOf(zone, dnskey, Number(type)) === digest?.toUpperCase()
}

/** The same for one of our own keys. */
export function isDsOf(zone: string, { publicKey }: PublicKey, text: string): boolean {
  return isDsOfDnskey(zone, dnskeyRdata(publicKey), text)
}

/** The rdata of a DS record as text. Throws a RangeError if it is malformed. */
export function dsTextOfRdata(rdata: Buffer): string {
  if (rdata.length < 5) throw new RangeError('a DS record is cut off')
  const digest = rdata.toString('hex', 4).toUpperCase()
  return `${rdata.readUInt16BE(0)} ${rdata[2]} ${rdata[3]} ${digest}`
}

/** The rdata of a DNSKEY record as text. Throws a RangeError if it is malformed. */
export function dnskeyTextOfRdata(rdata: Buffer): string {
  if (rdata.length < 5) throw new RangeError('a DNSKEY record is cut off')
  return `${rdata.readUInt16BE(0)} ${rdata[2]} ${rdata[3]} ${rdata.toString('base64', 4)}`
}
