// Keys of signed zones (RFC 4034, 6605): one combined signing key, ECDSA on P-256 with SHA-256.
import { hash } from 'node:crypto'

export const signingAlgorithm = 13
/** Zone key and secure entry point: one key signs everything. */
export const keyFlags = 257
/** SHA-256, for DS and CDS records. */
export const digestType = 2

/** The rdata of the DNSKEY record. `publicKey` has both coordinates, 32 octets each. */
export function dnskeyRdata(publicKey: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([keyFlags >> 8, keyFlags & 0xff, 3, signingAlgorithm]), publicKey])
}

/** RFC 4034, appendix B. */
export function keyTagOf(dnskey: Uint8Array): number {
  let sum = 0
  for (const [at, octet] of dnskey.entries()) sum += (at & 1) === 1 ? octet : octet << 8
  return (sum + (sum >>> 16)) & 0xffff
}

/** The rdata of the DS and CDS records for a DNSKEY record. `origin` is in the form of `wireName`. */
export function dsRdata(origin: string, dnskey: Uint8Array): Buffer {
  const digest = hash('sha256', Buffer.concat([Buffer.from(origin, 'latin1'), dnskey]), 'buffer')
  const tag = keyTagOf(dnskey)
  return Buffer.concat([Buffer.from([tag >> 8, tag & 0xff, dnskey[3]!, digestType]), digest])
}
