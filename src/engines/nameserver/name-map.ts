// A map of names that never changes: a changed copy shares all but a few of its parts, whatever its size.

const partBits = 8
const partCount = 1 << partBits

type Parts<V> = (Map<string, V> | undefined)[]

function partOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 15)) & (partCount - 1)
}

export class NameMap<V> {
  readonly #parts: Parts<V>
  readonly size: number

  constructor(parts: Parts<V> = [], size = 0) {
    this.#parts = parts
    this.size = size
  }

  get(name: string): V | undefined {
    return this.#parts[partOf(name)]?.get(name)
  }

  has(name: string): boolean {
    return this.#parts[partOf(name)]?.has(name) ?? false
  }

  *[Symbol.iterator](): Generator<[string, V]> {
    for (const part of this.#parts) if (part) yield* part
  }

  edit(): NameMapDraft<V> {
    return new NameMapDraft([...this.#parts], this.size)
  }

  /** Names with another value in `other`, found in the parts that the two do not share; null if they are more than `most`. */
  differing(other: NameMap<V>, most: number): string[] | null {
    const names: string[] = []
    for (let index = 0; index < partCount && names.length <= most; index++) {
      const [own, its] = [this.#parts[index], other.#parts[index]]
      if (own === its) continue
      for (const [name, value] of own ?? []) if (its?.get(name) !== value) names.push(name)
      for (const name of its?.keys() ?? []) if (!own?.has(name)) names.push(name)
    }
    return names.length > most ? null : names
  }

  /** Whether some part was taken over: it then was made from `other`, or both from a third one. */
  shares(other: NameMap<V>): boolean {
    return this.#parts.some((part, index) => part !== undefined && part === other.#parts[index])
  }
}

/** Copies a part at its first change. */
export class NameMapDraft<V> {
  readonly #parts: Parts<V>
  readonly #copied = new Set<number>()
  #size: number

  constructor(parts: Parts<V>, size: number) {
    this.#parts = parts
    this.#size = size
  }

  get(name: string): V | undefined {
    return this.#parts[partOf(name)]?.get(name)
  }

  has(name: string): boolean {
    return this.#parts[partOf(name)]?.has(name) ?? false
  }

  set(name: string, value: V): void {
    const part = this.#own(name)
    this.#size -= part.size
    part.set(name, value)
    this.#size += part.size
  }

  delete(name: string): void {
    if (this.#own(name).delete(name)) this.#size--
  }

  /** The map; the draft must not be used any more. */
  done(): NameMap<V> {
    return new NameMap(this.#parts, this.#size)
  }

  #own(name: string): Map<string, V> {
    const index = partOf(name)
    if (!this.#copied.has(index)) {
      this.#copied.add(index)
      this.#parts[index] = new Map(this.#parts[index])
    }
    return this.#parts[index]!
  }
}
