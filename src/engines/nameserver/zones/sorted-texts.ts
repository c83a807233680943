// An immutable sorted list of texts: a changed copy shares all but a few of its parts, whatever its size.

const partLength = 512

/** The index of a text, or where it would be. */
function placeOf(texts: readonly string[], text: string): number {
  let low = 0
  let high = texts.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (texts[middle]! < text) low = middle + 1
    else high = middle
  }
  return low
}

export class SortedTexts {
  /** None is empty, unless it is the only one. */
  readonly #parts: readonly (readonly string[])[]

  constructor(parts: readonly (readonly string[])[]) {
    this.#parts = parts
  }

  static from(sorted: readonly string[]): SortedTexts {
    const parts: string[][] = []
    for (let at = 0; at < sorted.length; at += partLength) parts.push(sorted.slice(at, at + partLength))
    return new SortedTexts(parts)
  }

  /** All texts in parts of limited length, which never change. */
  get parts(): readonly (readonly string[])[] {
    return this.#parts
  }

  /** The part that contains a text, or would: the last one that doesn't start after it. */
  #partOf(text: string): number {
    let low = 0
    let high = this.#parts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#parts[middle]![0]! <= text) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }

  has(text: string): boolean {
    const part = this.#parts[this.#partOf(text)] ?? []
    return part[placeOf(part, text)] === text
  }

  /** The last text up to `text`. If all are greater, the last of all, because the chain is circular. */
  atOrBefore(text: string): string {
    const part = this.#parts[this.#partOf(text)]!
    const at = placeOf(part, text)
    if (part[at] === text) return text
    return at > 0 ? part[at - 1]! : this.#parts.at(-1)!.at(-1)!
  }

  before(text: string): string {
    const index = this.#partOf(text)
    const at = placeOf(this.#parts[index]!, text)
    return this.#parts[index]![at - 1] ?? this.#parts.at(index - 1)!.at(-1)!
  }

  /** The first text after `text`; the first of all if there is none. */
  after(text: string): string {
    const index = this.#partOf(text)
    const part = this.#parts[index]!
    const at = placeOf(part, text)
    return part[part[at] === text ? at + 1 : at] ?? this.#parts[index + 1]?.[0] ?? this.#parts[0]![0]!
  }

  /** The texts that start with `prefix`. */
  *within(prefix: string): Generator<string> {
    for (let index = this.#partOf(prefix); index < this.#parts.length; index++) {
      const part = this.#parts[index]!
      for (let at = placeOf(part, prefix); at < part.length; at++) {
        if (!part[at]!.startsWith(prefix)) return
        yield part[at]!
      }
    }
  }

  *[Symbol.iterator](): Generator<string> {
    for (const part of this.#parts) yield* part
  }

  /** A copy with and without some texts. */
  change(added: Iterable<string>, removed: Iterable<string>): SortedTexts {
    let parts = [...this.#parts]
    const edit = (text: string, put: boolean) => {
      const index = new SortedTexts(parts).#partOf(text)
      const part = parts[index] ?? []
      const at = placeOf(part, text)
      if ((part[at] === text) === put) return
      const changed = part.toSpliced(at, put ? 0 : 1, ...(put ? [text] : []))
      const halves =
        changed.length > 2 * partLength ? [changed.slice(0, partLength), changed.slice(partLength)] : [changed]
      parts = parts.toSpliced(index, 1, ...halves.filter((half) => half.length > 0))
    }
    for (const text of removed) edit(text, false)
    for (const text of added) edit(text, true)
    return new SortedTexts(parts)
  }
}
