// An immutable map of names: a changed copy shares all but a few of its parts, whatever its size.

/** Some entries. Parts are in groups, so that a change copies one part, its group, and the list of groups. */
type Part<V> = Map<string, V>
type Group<V> = (Part<V> | undefined)[]
type Groups<V> = (Group<V> | undefined)[]

// Parts of a few dozen entries are copied in microseconds. A small map has fewer parts, because each takes memory.
const small = { groupBits: 4, max: 16_384 }
const large = { groupBits: 6, min: 4_096 }

function hashOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return hash ^ (hash >>> 15)
}

/** There are as many groups as parts per group. */
function partIn<V>(groups: Groups<V>, groupBits: number, name: string): Part<V> | undefined {
  const hash = hashOf(name)
  const mask = (1 << groupBits) - 1
  return groups[(hash >>> groupBits) & mask]?.[hash & mask]
}

function* partsIn<V>(groups: Groups<V>): Generator<Part<V>> {
  for (const group of groups) for (const part of group ?? []) if (part) yield part
}

export class NameMap<V> {
  readonly #groups: Groups<V>
  readonly #groupBits: number
  readonly size: number

  constructor(groups: Groups<V> = [], size = 0, groupBits = small.groupBits) {
    this.#groups = groups
    this.#groupBits = groupBits
    this.size = size
  }

  /** An empty map that will be large. It isn't redistributed as it grows, which takes some 30 ms. */
  static large<V>(): NameMap<V> {
    return new NameMap<V>([], 0, large.groupBits)
  }

  get(name: string): V | undefined {
    return partIn(this.#groups, this.#groupBits, name)?.get(name)
  }

  has(name: string): boolean {
    return partIn(this.#groups, this.#groupBits, name)?.has(name) ?? false
  }

  *[Symbol.iterator](): Generator<[string, V]> {
    for (const part of partsIn(this.#groups)) yield* part
  }

  edit(): NameMapDraft<V> {
    return new NameMapDraft([...this.#groups], this.size, this.#groupBits)
  }

  /**
   * Names whose values differ in `other`, found in the parts that the two don't share; null if there are more than `max`, or
   * the maps are divided differently.
   */
  differing(other: NameMap<V>, max: number): string[] | null {
    if (this.#groupBits !== other.#groupBits) return null
    const names: string[] = []
    const count = 1 << this.#groupBits
    for (let group = 0; group < count; group++) {
      const [own, its] = [this.#groups[group], other.#groups[group]]
      if (own === its) continue
      for (let part = 0; part < count && names.length <= max; part++) addDiffering(own?.[part], its?.[part], names)
    }
    return names.length > max ? null : names
  }

  /** Whether the maps share a part: then one was made from the other, or both from a third one. */
  shares(other: NameMap<V>): boolean {
    if (this.#groupBits !== other.#groupBits) return false
    return this.#groups.some((group, index) => {
      const its = other.#groups[index]
      return group?.some((part, at) => part !== undefined && part === its?.[at]) ?? false
    })
  }
}

function addDiffering<V>(own: Part<V> | undefined, its: Part<V> | undefined, names: string[]): void {
  if (own === its) return
  for (const [name, value] of own ?? []) if (its?.get(name) !== value) names.push(name)
  for (const name of its?.keys() ?? []) if (!own?.has(name)) names.push(name)
}

/** Copies a part and its group when they first change. */
export class NameMapDraft<V> {
  #groups: Groups<V>
  #groupBits: number
  #size: number
  #copied = new Set<Group<V> | Part<V>>()

  constructor(groups: Groups<V>, size: number, groupBits: number) {
    this.#groups = groups
    this.#groupBits = groupBits
    this.#size = size
  }

  get(name: string): V | undefined {
    return partIn(this.#groups, this.#groupBits, name)?.get(name)
  }

  has(name: string): boolean {
    return partIn(this.#groups, this.#groupBits, name)?.has(name) ?? false
  }

  set(name: string, value: V): void {
    const part = this.#ownPart(name)
    this.#size -= part.size
    part.set(name, value)
    this.#size += part.size
    if (this.#groupBits === small.groupBits && this.#size > small.max) this.#divide(large.groupBits)
  }

  delete(name: string): void {
    if (this.#ownPart(name).delete(name)) this.#size--
  }

  /** The map; the draft must not be used any more. */
  done(): NameMap<V> {
    if (this.#groupBits === large.groupBits && this.#size < large.min) this.#divide(small.groupBits)
    return new NameMap(this.#groups, this.#size, this.#groupBits)
  }

  #ownPart(name: string): Part<V> {
    const hash = hashOf(name)
    const mask = (1 << this.#groupBits) - 1
    const [at, within] = [(hash >>> this.#groupBits) & mask, hash & mask]
    let group = this.#groups[at]
    if (!group || !this.#copied.has(group)) {
      group = [...(group ?? [])]
      this.#groups[at] = group
      this.#copied.add(group)
    }
    let part = group[within]
    if (!part || !this.#copied.has(part)) {
      part = new Map(part)
      group[within] = part
      this.#copied.add(part)
    }
    return part
  }

  /** Redistributes a map that grows or shrinks, which is rare. */
  #divide(groupBits: number): void {
    const entries = [...partsIn(this.#groups)]
    this.#groups = []
    this.#groupBits = groupBits
    this.#copied = new Set()
    for (const part of entries) for (const [name, value] of part) this.#ownPart(name).set(name, value)
  }
}
