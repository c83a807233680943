// The records of a zone as read from the database: one string for most zones, a map by name for large ones.
import { wireName } from '../../../dns/packet/wire-names.ts'
import { challengeType } from '../../../services/dns/index.ts'
import { NameMap, type NameMapDraft } from './name-map.ts'

export type ZoneRecord = { name: string; type: string; value: string; ttl: number }

/** Lines of type, ttl, name and value. A string is a tenth of the size of a built zone; large zones are stored by name. */
export type ZoneRecords = string | RecordsByName

function recordOf(line: string): ZoneRecord {
  const type = line.indexOf(' ')
  const ttl = line.indexOf(' ', type + 1)
  const name = line.indexOf(' ', ttl + 1)
  return {
    type: line.slice(0, type),
    ttl: Number(line.slice(type + 1, ttl)),
    name: line.slice(ttl + 1, name),
    value: line.slice(name + 1),
  }
}

export function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    yield text.slice(at, end)
    at = end + 1
  }
}

export function* recordsOf(text: string): Generator<ZoneRecord> {
  for (const line of linesOf(text)) yield recordOf(line)
}

/** The key of a name as written in a line: relative to the zone, and `@` for its apex. */
export function keyOf(name: string, origin: string): string {
  return name === '@' ? origin : wireName(name).slice(0, -1) + origin
}

const parentOf = (key: string) => key.slice(1 + key.charCodeAt(0))
const hasType = (lines: string | undefined, type: string) =>
  lines !== undefined && (lines.startsWith(`${type} `) || lines.includes(`\n${type} `))

type Parts = {
  lines: NameMap<string>
  /** How many names are directly below a name; a name with any exists, even without records. */
  children: NameMap<number>
  /** Names with an ALIAS. */
  aliases: NameMap<true>
  /** How many names below the apex have NS records. */
  cuts: number
  extras: string
}

/** Types of lines that aren't records of the zone. There are few, and they are reread with every change. */
const extraTypes: readonly string[] = [challengeType]
const isExtra = (text: string, at: number) => extraTypes.some((type) => text.startsWith(`${type} `, at))

/** The immutable records of a large zone: `change` creates a copy that shares unchanged parts. Keys are those of `keyOf`. */
export class RecordsByName {
  readonly origin: string
  readonly #parts: Parts

  constructor(origin: string, parts: Parts) {
    this.origin = origin
    this.#parts = parts
  }

  /** Lines of types that are added to a built zone: those of ACME challenges. */
  get extras(): string {
    return this.#parts.extras
  }

  get hasCuts(): boolean {
    return this.#parts.cuts > 0
  }

  /** Without the extras; undefined for a name without records. */
  linesAt(key: string): string | undefined {
    return this.#parts.lines.get(key)
  }

  /** Whether a name exists, with or without records. */
  has(key: string): boolean {
    return key === this.origin || this.#parts.lines.has(key) || this.#parts.children.has(key)
  }

  /** Whether there are names below this one. */
  hasBelow(key: string): boolean {
    return this.#parts.children.has(key)
  }

  /** Every name that exists. */
  *keys(): Generator<string> {
    const { lines, children } = this.#parts
    yield this.origin
    for (const [key] of lines) if (key !== this.origin) yield key
    for (const [key] of children) if (key !== this.origin && !lines.has(key)) yield key
  }

  /** All lines, in texts of limited length, with the extras last. */
  *texts(characters = 1 << 16): Generator<string> {
    let text = ''
    for (const [, lines] of this.#parts.lines) {
      text += text === '' ? lines : `\n${lines}`
      if (text.length < characters) continue
      yield text
      text = ''
    }
    yield [text, this.extras].filter((part) => part !== '').join('\n')
  }

  /** The lines of every name with an ALIAS. */
  *aliasTexts(): Generator<string> {
    for (const [key] of this.#parts.aliases) yield this.#parts.lines.get(key)!
  }

  /** Keys whose lines differ, ignoring the extras; null if there are too many to compare. */
  differing(other: RecordsByName): string[] | null {
    return this.#parts.lines.differing(other.#parts.lines, maxCompared)
  }

  /** Whether one was made from the other by changes. */
  shares(other: RecordsByName): boolean {
    return this.#parts.lines.shares(other.#parts.lines)
  }

  edit(): RecordsDraft {
    return new RecordsDraft(this.origin, this.#parts)
  }

  /** A copy with these lines at the changed names, and with the extras among the lines. */
  change(names: Iterable<string>, text: string): RecordsByName {
    const draft = this.edit()
    for (const name of names) draft.remove(keyOf(name, this.origin))
    draft.add(text)
    return draft.done()
  }
}

// After a change of more names, secondaries get the whole zone.
const maxCompared = 1_000

export class RecordsDraft {
  readonly #origin: string
  readonly #lines: NameMapDraft<string>
  readonly #children: NameMapDraft<number>
  readonly #aliases: NameMapDraft<true>
  #cuts: number
  readonly #extras: string[] = []

  constructor(origin: string, { lines, children, aliases, cuts }: Parts) {
    this.#origin = origin
    this.#lines = lines.edit()
    this.#children = children.edit()
    this.#aliases = aliases.edit()
    this.#cuts = cuts
  }

  /** Adds lines. Consecutive lines of one name are stored as one slice of the text. */
  add(text: string): void {
    let name = ''
    let start = 0
    let end = -1
    const flush = () => {
      if (end < 0) return
      const key = keyOf(name, this.#origin)
      const before = this.#lines.get(key)
      const lines = text.slice(start, end)
      this.#put(key, before === undefined ? lines : `${before}\n${lines}`)
    }
    for (let at = 0; at < text.length; ) {
      const found = text.indexOf('\n', at)
      const lineEnd = found < 0 ? text.length : found
      const nameAt = text.indexOf(' ', text.indexOf(' ', at) + 1) + 1
      const own = text.slice(nameAt, text.indexOf(' ', nameAt))
      if (isExtra(text, at)) this.#extras.push(text.slice(at, lineEnd))
      else {
        if (own !== name || end !== at - 1) {
          flush()
          name = own
          start = at
        }
        end = lineEnd
      }
      at = lineEnd + 1
    }
    flush()
  }

  remove(key: string): void {
    if (this.#lines.has(key)) this.#put(key, undefined)
  }

  done(): RecordsByName {
    return new RecordsByName(this.#origin, {
      lines: this.#lines.done(),
      children: this.#children.done(),
      aliases: this.#aliases.done(),
      cuts: this.#cuts,
      extras: this.#extras.join('\n'),
    })
  }

  #put(key: string, lines: string | undefined): void {
    const existed = this.#has(key)
    const before = this.#lines.get(key)
    if (key !== this.#origin) this.#cuts += Number(hasType(lines, 'NS')) - Number(hasType(before, 'NS'))
    if (hasType(lines, 'ALIAS')) this.#aliases.set(key, true)
    else if (hasType(before, 'ALIAS')) this.#aliases.delete(key)
    if (lines === undefined) this.#lines.delete(key)
    else this.#lines.set(key, lines)
    if (this.#has(key) !== existed) this.#count(key, existed ? -1 : 1)
  }

  /** Counts an added or removed name at its parent, which may appear or disappear with it. */
  #count(key: string, change: 1 | -1): void {
    if (key === this.#origin) return
    const parent = parentOf(key)
    const existed = this.#has(parent)
    const count = (this.#children.get(parent) ?? 0) + change
    if (count === 0) this.#children.delete(parent)
    else this.#children.set(parent, count)
    if (this.#has(parent) !== existed) this.#count(parent, change)
  }

  #has(key: string): boolean {
    return key === this.#origin || this.#lines.has(key) || this.#children.has(key)
  }
}

/** `lines` is the map to start with: one for a large zone isn't redistributed as it grows. */
export function emptyRecords(origin: string, lines = new NameMap<string>()): RecordsByName {
  const parts = { lines, children: new NameMap<number>(), aliases: new NameMap<true>() }
  return new RecordsByName(origin, { ...parts, cuts: 0, extras: '' })
}
