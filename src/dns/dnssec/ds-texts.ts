// DS records as text: those of a key, and whether one at the parent is of a key.
import { hash } from 'node:crypto'
import { wireName } from '../packet/wire-names.ts'
import { digestType, dnskeyRdata, signingAlgorithm } from './keys.ts'

export type PublicKey = { tag: number; publicKey: Uint8Array }

/** Digests that a DS record may have: SHA-1, SHA-256 and SHA-384. Some registrars make one of their own. */
const digests = new Map([
  [1, 'sha1'],
  [digestType, 'sha256'],
  [4, 'sha384'],
])

function digestOf(zone: string, publicKey: Uint8Array, type: number): string | null {
  const algorithm = digests.get(type)
  if (algorithm === undefined) return null
  const owner = Buffer.from(wireName(zone), 'latin1')
  return hash(algorithm, Buffer.concat([owner, dnskeyRdata(publicKey)]), 'hex').toUpperCase()
}

export function dsTextOf(zone: string, { tag, publicKey }: PublicKey): string {
  return `${tag} ${signingAlgorithm} ${digestType} ${digestOf(zone, publicKey, digestType)}`
}

/** Whether the text of a DS record is one of this key, with whichever digest. */
export function isDsOf(zone: string, { tag, publicKey }: PublicKey, text: string): boolean {
  const [seenTag, algorithm, type, digest] = text.split(' ')
  if (Number(seenTag) !== tag || Number(algorithm) !== signingAlgorithm) return false
  return digestOf(zone, publicKey, Number(type)) === digest?.toUpperCase()
}

/** The rdata of a DS record as text. Throws a RangeError if it is broken. */
export function dsTextOfRdata(rdata: Buffer): string {
  if (rdata.length < 5) throw new RangeError('a DS record is cut off')
  const digest = rdata.toString('hex', 4).toUpperCase()
  return `${rdata.readUInt16BE(0)} ${rdata[2]} ${rdata[3]} ${digest}`
}

/** The rdata of a DNSKEY record as text. Throws a RangeError if it is broken. */
export function dnskeyTextOfRdata(rdata: Buffer): string {
  if (rdata.length < 5) throw new RangeError('a DNSKEY record is cut off')
  return `${rdata.readUInt16BE(0)} ${rdata[2]} ${rdata[3]} ${rdata.toString('base64', 4)}`
}
