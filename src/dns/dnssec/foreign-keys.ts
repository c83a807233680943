// Keys of another provider that signs the same zone (RFC 8901), as values of DNSKEY records.
import { dsTextOfDnskey, isDsOfDnskey } from './ds-texts.ts'
import { keyTagOf } from './keys.ts'

/** 256 signs records; 257 also signs keys, and the parent has its DS. A revoked key has other flags. */
const flagsOfKeys = [256, 257]
const protocolOfKeys = 3

/** The length of a public key by algorithm (RFC 8624: those still recommended, and RSA/SHA-512). */
const octetsOf = new Map<number, { min: number; max: number }>([
  [8, { min: 131, max: 516 }],
  [10, { min: 131, max: 516 }],
  [13, { min: 64, max: 64 }],
  [14, { min: 96, max: 96 }],
  [15, { min: 32, max: 32 }],
  [16, { min: 57, max: 57 }],
])

export const foreignKeyExpects = 'flags 256 or 257, protocol 3, algorithm (8, 10 or 13 to 16) and key in base64'

/** Parses a key into its stored form; null if it is invalid. */
export function readForeignKey(text: string): string | null {
  const [flags = '', protocol = '', algorithm = '', ...parts] = text.trim().split(/\s+/)
  const isNumber = [flags, protocol, algorithm].every((one) => /^\d{1,3}$/.test(one))
  const size = octetsOf.get(Number(algorithm))
  if (!isNumber || !flagsOfKeys.includes(Number(flags)) || Number(protocol) !== protocolOfKeys || !size) return null
  const base64 = parts.join('')
  const key = Buffer.from(base64, 'base64')
  if (key.toString('base64') !== base64 || key.length < size.min || key.length > size.max) return null
  return `${Number(flags)} ${protocolOfKeys} ${Number(algorithm)} ${base64}`
}

/** The rdata of a stored key. */
export function foreignRdata(key: string): Buffer {
  const [flags, protocol, algorithm, base64] = key.split(' ')
  const head = [Number(flags) >> 8, Number(flags) & 0xff, Number(protocol), Number(algorithm)]
  return Buffer.concat([Buffer.from(head), Buffer.from(base64!, 'base64')])
}

/** Whether the parent may have a DS record for it. */
export const isEntryPoint = (rdata: Uint8Array) => (rdata[1]! & 1) === 1

export const isDsOfForeign = (zone: string, key: string, ds: string) => isDsOfDnskey(zone, foreignRdata(key), ds)

export function viewForeignKey(zone: string, key: string) {
  const rdata = foreignRdata(key)
  return { dnskey: key, keyTag: keyTagOf(rdata), ds: isEntryPoint(rdata) ? dsTextOfDnskey(zone, rdata) : null }
}
