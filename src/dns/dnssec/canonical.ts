// The canonical order of names, and the canonical form of the record sets that are signed (RFC 4034, section 6).
import { hash } from 'node:crypto'
import { signingAlgorithm } from './keys.ts'

/** A record set to be signed: names in the form of `wireName`, each rdata in wire format, in lower case. */
export type SignedSet = { owner: string; type: number; ttl: number; rdatas: readonly Buffer[] }

/**
 * A text that sorts like the name: labels from last to first, with each octet incremented, so that the end of a label sorts
 * before everything else.
 */
export function orderKey(name: string): string {
  let key = ''
  for (let at = 0; name.charCodeAt(at) > 0; ) {
    const end = at + 1 + name.charCodeAt(at)
    let label = ''
    for (let octet = at + 1; octet < end; octet++) label += String.fromCharCode(name.charCodeAt(octet) + 1)
    key = `${label}\0${key}`
    at = end
  }
  return key
}

export function nameOfKey(key: string): string {
  let name = '\0'
  for (let at = 0; at < key.length; ) {
    const end = key.indexOf('\0', at)
    let label = String.fromCharCode(end - at)
    for (; at < end; at++) label += String.fromCharCode(key.charCodeAt(at) - 1)
    name = label + name
    at = end + 1
  }
  return name
}

/** The number of labels, without the root and a leading asterisk. */
export function labelCount(name: string): number {
  let count = name.startsWith('\x01*') ? -1 : 0
  for (let at = 0; name.charCodeAt(at) > 0; at += 1 + name.charCodeAt(at)) count++
  return count
}

/** The sorted, distinct records of a set as they are signed. In one buffer, because a large zone has very many sets. */
export function canonicalSet({ owner, type, ttl, rdatas }: SignedSet): Buffer {
  const sorted = rdatas.toSorted(Buffer.compare)
  const distinct = sorted.filter((rdata, index) => index === 0 || !rdata.equals(sorted[index - 1]!))
  const octets = Buffer.allocUnsafe(distinct.reduce((sum, rdata) => sum + owner.length + 10 + rdata.length, 0))
  let at = 0
  for (const rdata of distinct) {
    at += octets.write(owner, at, 'latin1')
    at = octets.writeUInt16BE(type, at)
    at = octets.writeUInt16BE(1, at)
    at = octets.writeUInt32BE(ttl, at)
    at = octets.writeUInt16BE(rdata.length, at)
    at += rdata.copy(octets, at)
  }
  return octets
}

const fingerprintOctets = 20

/** Identifies a set among the signatures of a key, as a binary string. */
export function fingerprintOf(canonical: Buffer): string {
  return hash('sha256', canonical, 'buffer').toString('latin1', 0, fingerprintOctets)
}

/** The validity of a signature, in seconds since 1970. */
export type Validity = { inception: number; expiry: number }

/** The rdata of an RRSIG up to its signature. */
export function rrsigHead(
  { owner, type, ttl }: Pick<SignedSet, 'owner' | 'type' | 'ttl'>,
  { inception, expiry }: Validity,
  { tag, signer }: { tag: number; signer: string },
): Buffer {
  const octets = Buffer.allocUnsafe(18 + signer.length)
  octets.writeUInt16BE(type, 0)
  octets[2] = signingAlgorithm
  octets[3] = labelCount(owner)
  octets.writeUInt32BE(ttl, 4)
  octets.writeUInt32BE(expiry, 8)
  octets.writeUInt32BE(inception, 12)
  octets.writeUInt16BE(tag, 16)
  octets.write(signer, 18, 'latin1')
  return octets
}
