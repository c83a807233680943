// Builds the gap tables of signed zones from their chains; for large zones in steps, and in parts that versions share.
import { orderKey } from '../../../dns/dnssec/canonical.ts'
import { type GapPart, Gaps, hashOctets, writeOctet } from '../zones/gaps.ts'
import { chainOf, type SignedZone } from './chain.ts'

const partsInAStep = 4

/** Writes an entry of an NSEC chain, decoding its key, in which the end of a label is 0 and every octet is incremented. */
function writeKey(octets: Uint8Array, start: number, key: string, from: number): number {
  let at = start
  for (let index = from; index < key.length; index++) {
    const code = key.charCodeAt(index)
    if (code === 0) octets[at++] = 0
    else at = writeOctet(octets, at, code - 1)
  }
  return at
}

/** The tables of a large zone are in shared memory, so that passing them to threads needs no copy. */
function pack(entries: readonly string[], from: number, hashed: boolean, share: boolean): GapPart {
  const scratch = new Uint8Array(entries.reduce((sum, entry) => sum + 2 * entry.length, 0))
  const starts = [0]
  let at = 0
  for (const entry of entries) {
    if (!hashed) at = writeKey(scratch, at, entry, from)
    else for (let index = 0; index < hashOctets; index++) scratch[at++] = entry.charCodeAt(index)
    starts.push(at)
  }
  const room = 4 * starts.length
  const memory = share ? new SharedArrayBuffer(room + at) : new ArrayBuffer(room + at)
  const part = { starts: new Uint32Array(memory, 0, starts.length), octets: new Uint8Array(memory, room) }
  part.starts.set(starts)
  part.octets.set(scratch.subarray(0, at))
  return part
}

let last = 0
/** By part of a chain, because versions of a large zone share most parts. */
const packed = new WeakMap<readonly string[], GapPart>()
const built = new WeakMap<SignedZone, Gaps | 'in progress'>()

/** The gaps of a version of a zone; null while those of a large zone are being built, in steps. */
export function gapsOf(zone: SignedZone): Gaps | null {
  const known = built.get(zone)
  if (known) return known === 'in progress' ? null : known
  const hashed = zone.signed.signing.denial === 'nsec3'
  const from = hashed ? 0 : orderKey(zone.origin).length
  const chain = chainOf(zone).parts
  const share = chain.length > 1
  let left = 0
  const step = (max: number): Gaps | null => {
    for (let packedNow = 0; left < chain.length; left++) {
      if (packed.has(chain[left]!)) continue
      if (packedNow++ === max) return null
      packed.set(chain[left]!, pack(chain[left]!, from, hashed, share))
    }
    const parts = chain.map((part) => packed.get(part)!)
    const gaps = new Gaps({ id: ++last, hashed, originOctets: zone.origin.length, parts })
    built.set(zone, gaps)
    return gaps
  }
  const continueLater = () => {
    if (!step(partsInAStep)) setImmediate(continueLater)
  }
  const gaps = step(partsInAStep)
  if (gaps) return gaps
  built.set(zone, 'in progress')
  setImmediate(continueLater)
  return null
}
