// A Bloom filter of existing names, shared by all threads. Names are added before they are served, and never removed. So a
// name that isn't in it is in no zone; one that is may exist, or may have existed.
import { randomBytes } from 'node:crypto'
import { headerOctets } from '../../../dns/packet/numbers.ts'
import { lowerCase } from '../../../dns/packet/wire-names.ts'

// 4 MiB. With a million names, one in some hundred others seems to exist, which costs a lookup in the zone.
const wordBits = 20
const words = 1 << wordBits
const seedAt = words
const versionAt = words + 1
const maxNames = 2_000_000
const maxLabels = 128

/** Only one thread may add names. */
export function nameFilterMemory(): SharedArrayBuffer {
  const memory = new SharedArrayBuffer((words + 2) * Int32Array.BYTES_PER_ELEMENT)
  new Int32Array(memory)[seedAt] = randomBytes(4).readInt32BE(0)
  return memory
}

/** The result of looking up the name of a question. */
export type Closest =
  /** It may exist, or the filter is being renewed. */
  | 'unknown'
  /** No zone contains it. */
  | 'nowhere'
  /** It doesn't exist, but the ancestor given by `encloserAt` and `encloserHash` does. */
  | 'below'

function mixed(hash: number): number {
  let mix = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return mix ^ (mix >>> 16)
}

/** Three bits of a word. */
const bitsOf = (mix: number) => (1 << (mix & 31)) | (1 << ((mix >>> 5) & 31)) | (1 << ((mix >>> 10) & 31))
const prime = 0x01000193

export class NameFilter {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  readonly #seed: number
  readonly #starts = new Uint16Array(maxLabels)
  readonly #hashes = new Int32Array(maxLabels)
  #added = 0
  #version = 0
  /** Changes whenever all names were removed. */
  era = 1
  /** Of the last question that was `below`: the offset of the existing ancestor, and its hash. */
  encloserAt = 0
  encloserHash = 0

  constructor(memory = nameFilterMemory()) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#seed = this.#words[seedAt]!
  }

  /** Whether it has too many names to be of much use; most of them no longer exist. */
  get isFull(): boolean {
    return this.#added > maxNames
  }

  /** The hash of a name in the form of `wireName`; from the last label to the first, so that ancestors come first. */
  hashOf(name: string): number {
    const starts = this.#starts
    let count = 0
    for (let at = 0; name.charCodeAt(at) > 0; at += 1 + name.charCodeAt(at)) starts[count++] = at
    let hash = this.#seed
    for (let index = count - 1; index >= 0; index--) {
      const end = starts[index]! + 1 + name.charCodeAt(starts[index]!)
      for (let at = starts[index]!; at < end; at++) hash = Math.imul(hash ^ name.charCodeAt(at), prime)
    }
    return hash
  }

  add(name: string): void {
    const mix = mixed(this.hashOf(name))
    const at = mix >>> (32 - wordBits)
    const word = this.#words[at]!
    const bits = word | bitsOf(mix)
    if (bits === word) return
    Atomics.store(this.#words, at, bits)
    this.#added++
  }

  /** Removes all names. `fill` adds those that must be in it, and invalidates whatever relies on the others. */
  renew(fill: () => void): void {
    Atomics.add(this.#words, versionAt, 1)
    for (let at = 0; at < words; at++) this.#words[at] = 0
    this.#added = 0
    this.era++
    fill()
    Atomics.add(this.#words, versionAt, 1)
  }

  /** Looks up the name of a question. The result is valid if `stands` is true once the answer was found. */
  closest(message: Buffer): Closest {
    const starts = this.#starts
    const hashes = this.#hashes
    let count = 0
    for (let at = headerOctets; message[at]! > 0; at += 1 + message[at]!) starts[count++] = at
    let hash = this.#seed
    for (let index = count - 1; index >= 0; index--) {
      const end = starts[index]! + 1 + message[starts[index]!]!
      for (let at = starts[index]!; at < end; at++) hash = Math.imul(hash ^ lowerCase[message[at]!]!, prime)
      hashes[index] = hash
    }
    this.#version = Atomics.load(this.#words, versionAt)
    if ((this.#version & 1) !== 0) return 'unknown'
    let found = 0
    while (found < count && !this.#has(hashes[found]!)) found++
    if (found === count) return 'nowhere'
    this.encloserAt = starts[found]!
    this.encloserHash = hashes[found]!
    return found === 0 ? 'unknown' : 'below'
  }

  /** Whether no names were removed since the last `closest`. */
  get stands(): boolean {
    return Atomics.load(this.#words, versionAt) === this.#version
  }

  #has(hash: number): boolean {
    const mix = mixed(hash)
    const bits = bitsOf(mix)
    return (Atomics.load(this.#words, mix >>> (32 - wordBits)) & bits) === bits
  }
}
