// Finds the gap in the chain of a signed zone that a name is in, from the octets of its question and in any thread. All
// names in one gap have the same proof.
import { hash } from 'node:crypto'
import { headerOctets, maxNameOctets } from '../../../dns/packet/numbers.ts'
import { lowerCase } from '../../../dns/packet/wire-names.ts'

/** Some entries of a chain: entry i is between `starts[i]` and `starts[i + 1]` of the octets. */
export type GapPart = { readonly starts: Uint32Array; readonly octets: Uint8Array }

/** A chain in the form that is sent to threads. */
export type GapTable = {
  readonly id: number
  /** Whether entries are NSEC3 hashes. Otherwise they are names below the origin, encoded so that octets sort like names. */
  readonly hashed: boolean
  readonly originOctets: number
  readonly parts: readonly GapPart[]
}

export const hashOctets = 20
// More than any part has.
const maxPart = 4096

/** Writes an octet of a label. 0 ends a label, so octets that wouldn't sort after it are written as two octets. */
export function writeOctet(octets: Uint8Array, at: number, octet: number): number {
  if (octet > 1) {
    octets[at] = octet
    return at + 1
  }
  octets[at] = 1
  octets[at + 1] = octet + 1
  return at + 2
}

/** Shared by all zones, because it is only used within one call. */
const scratch = new Uint8Array(2 * maxNameOctets)

export class Gaps {
  readonly table: GapTable
  readonly #name = scratch
  #length = 0

  constructor(table: GapTable) {
    this.table = table
  }

  /** The number of the gap of a query's name, whose closest encloser starts at `encloserAt`. */
  find(message: Buffer, nameEnd: number, encloserAt: number): number {
    const { parts, hashed } = this.table
    if (hashed) this.#hash(message, nameEnd, encloserAt)
    else this.#key(message, nameEnd)
    let low = 0
    for (let high = parts.length; low < high; ) {
      const middle = (low + high) >> 1
      if (this.#isBehind(parts[middle]!, 0)) high = middle
      else low = middle + 1
    }
    // The chain is circular: what is before the first entry is after the last one.
    const index = low === 0 ? parts.length - 1 : low - 1
    const part = parts[index]!
    const count = part.starts.length - 1
    if (low === 0) return index * maxPart + count - 1
    let first = 0
    for (let high = count; first < high; ) {
      const middle = (first + high) >> 1
      if (this.#isBehind(part, middle)) high = middle
      else first = middle + 1
    }
    return index * maxPart + first - 1
  }

  /** Whether an entry sorts after the name. */
  #isBehind({ starts, octets }: GapPart, index: number): boolean {
    const name = this.#name
    const start = starts[index]!
    const length = starts[index + 1]! - start
    const shorter = Math.min(length, this.#length)
    for (let at = 0; at < shorter; at++) {
      const difference = octets[start + at]! - name[at]!
      if (difference !== 0) return difference > 0
    }
    return length > this.#length
  }

  /** Writes the labels from the last one below the origin to the first. */
  #key(message: Buffer, nameEnd: number): void {
    const name = this.#name
    const origin = nameEnd - this.table.originOctets
    let at = 0
    for (let end = origin; end > headerOctets; ) {
      let start = headerOctets
      for (let next = start; next < end; next += 1 + message[next]!) start = next
      for (let octet = start + 1; octet < end; octet++) at = writeOctet(name, at, lowerCase[message[octet]!]!)
      name[at++] = 0
      end = start
    }
    this.#length = at
  }

  /** Hashes the ancestor that is one label longer than the encloser. */
  #hash(message: Buffer, nameEnd: number, encloserAt: number): void {
    let start = headerOctets
    for (let next = start; next < encloserAt; next += 1 + message[next]!) start = next
    const name = Buffer.allocUnsafe(nameEnd - start)
    for (let at = start; at < nameEnd; at++) name[at - start] = lowerCase[message[at]!]!
    hash('sha1', name, 'buffer').copy(this.#name)
    this.#length = hashOctets
  }
}
