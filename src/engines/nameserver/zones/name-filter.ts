// Tells which names do not exist, for all threads: names are added to it before they are served, and none is taken out. So
// a name that it has not is in no zone; one that it has may exist, or not any more.
import { randomBytes } from 'node:crypto'
import { headerOctets } from '../../../dns/packet/numbers.ts'
import { lowerCase } from '../../../dns/packet/wire-names.ts'

// 4 MiB. With a million names one in some hundred others seems to exist, which costs a look at the zone.
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

/** Where a name of a question stands to the names that exist. */
export type Closest =
  /** It may exist, or nothing can be said now. */
  | 'unknown'
  /** No zone has it. */
  | 'nowhere'
  /** It does not exist; `encloserAt` and `encloserHash` tell which name above it does. */
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
  /** Changes when all names were taken out. */
  era = 1
  /** Of the last question that was `below`: where the name that exists begins, and its hash. */
  encloserAt = 0
  encloserHash = 0

  constructor(memory = nameFilterMemory()) {
    this.memory = memory
    this.#words = new Int32Array(memory)
    this.#seed = this.#words[seedAt]!
  }

  /** Too many names for it to be of much use; most of them are gone by then. */
  get isFull(): boolean {
    return this.#added > maxNames
  }

  /** Of a name in the form of `wireName`; from the last label to the first, as the names above it come first. */
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

  /** Takes all names out; `fill` puts back those that must be in it, and ends whatever relies on the others. */
  renew(fill: () => void): void {
    Atomics.add(this.#words, versionAt, 1)
    for (let at = 0; at < words; at++) this.#words[at] = 0
    this.#added = 0
    this.era++
    fill()
    Atomics.add(this.#words, versionAt, 1)
  }

  /** Looks the name of a question up; what it tells holds if it `stands` when the answer is found. */
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

  /** Whether no names were taken out since the last `closest`. */
  get stands(): boolean {
    return Atomics.load(this.#words, versionAt) === this.#version
  }

  #has(hash: number): boolean {
    const mix = mixed(hash)
    const bits = bitsOf(mix)
    return (Atomics.load(this.#words, mix >>> (32 - wordBits)) & bits) === bits
  }
}
