// Parses large JSON bodies in pieces, so that other requests are served in between.
import type { FieldError } from '../errors.ts'
import { invalidFields } from '../fields.ts'
import { createPauses, type Pauses } from '../pauses.ts'

/** Parses a piece of valid UTF-8 as JSON. `pointer` is its location, `from` the index of the first item of a list. */
export type ParsePiece = (raw: Buffer, place: { pointer: string; from?: number }) => unknown

/** Larger documents are parsed in pieces. */
export const maxUnsplitBytes = 128 << 10
const pieceBytes = 64 << 10
// Lists and objects at these levels are split. Deeper ones are parsed as part of what contains them.
const maxDepth = 3
const maxDeepBytes = 256 << 10
const maxParts = 200_000
// No operation takes this many, and no lockfile has them. 100,000 keys of one object take 100 ms to parse.
const maxFields = 10_000
const bytesPerPause = 16 << 10

const utf8 = new TextDecoder('utf-8', { fatal: true })
// A byte order mark only counts at the very start.
const utf8Piece = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a document, without a byte order mark; throws if it isn't UTF-8. */
export const textOf = (raw: Buffer) => utf8.decode(raw)

/** The text of a piece; throws if it isn't UTF-8. */
export const pieceText = (raw: Buffer) => utf8Piece.decode(raw)

export const withoutBom = (raw: Buffer) =>
  raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf ? raw.subarray(3) : raw

/** Parses a document; if it is large, with pauses for other work. */
export async function parseJson(raw: Buffer): Promise<unknown> {
  if (raw.length <= maxUnsplitBytes) return JSON.parse(textOf(raw))
  return parseInPieces(withoutBom(raw), (piece) => JSON.parse(pieceText(piece)))
}

const code = (character: string) => character.charCodeAt(0)
const [quote, backslash, comma, colon] = [code('"'), code('\\'), code(','), code(':')]
const [openList, closeList, openObject, closeObject] = [code('['), code(']'), code('{'), code('}')]
const isBlank = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The positions of the commas, colons and ends of the outer lists and objects, and their depths. */
type Outline = { at: number[]; depth: number[] }

async function outlineOf(raw: Buffer, pauses: Pauses): Promise<Outline> {
  const outline: Outline = { at: [], depth: [] }
  let depth = 0
  let nextPause = bytesPerPause
  for (let at = 0; at < raw.length; at++) {
    if (at >= nextPause) {
      nextPause = at + bytesPerPause
      const pause = pauses()
      if (pause) await pause
    }
    const byte = raw[at]!
    if (byte === quote) at = endOfText(raw, at)
    else if (byte === openList || byte === openObject) depth++
    else if (byte === comma || byte === colon || byte === closeList || byte === closeObject) {
      if (depth <= maxDepth) {
        outline.at.push(at)
        outline.depth.push(depth)
        if (outline.at.length > maxParts) throw tooLong(`The body has more than ${maxParts} parts.`)
      }
      if (byte === closeList || byte === closeObject) depth--
    }
  }
  if (depth !== 0) throw cutShort()
  return outline
}

/** The end of the string that begins at `start`. Scans byte by byte, because the string may be full of quotes. */
function endOfText(raw: Buffer, start: number): number {
  for (let at = start + 1; at < raw.length; at++) {
    if (raw[at] === backslash) at++
    else if (raw[at] === quote) return at
  }
  throw cutShort()
}

const cutShort = () => new SyntaxError('Unexpected end of JSON input')

const tooLong = (detail: string) =>
  invalidFields([{ in: 'body', pointer: '#', code: 'too_long', detail } satisfies FieldError])

export function pointerPart(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

const unexpected = () => new SyntaxError('Unexpected token in JSON')

/** Like parsing it as a whole, except for the wording of syntax errors. */
export async function parseInPieces(raw: Buffer, parse: ParsePiece): Promise<unknown> {
  const pauses = createPauses()
  const { at, depth } = await outlineOf(raw, pauses)
  /** The next unused entry of the outline. */
  let cursor = 0

  /** Removes surrounding whitespace. */
  function trim(start: number, end: number): [number, number] {
    while (start < end && isBlank(raw[start])) start++
    while (end > start && isBlank(raw[end - 1])) end--
    return [start, end]
  }

  async function piece(start: number, end: number, pointer: string): Promise<unknown> {
    const pause = pauses()
    if (pause) await pause
    return parse(raw.subarray(start, end), { pointer })
  }

  async function value(start: number, end: number, level: number, pointer: string): Promise<unknown> {
    const [from, to] = trim(start, end)
    const first = raw[from]
    const isPlain = first !== openList && first !== openObject
    if (to - from <= pieceBytes || level >= maxDepth || isPlain) {
      // No operation takes such a body, and parsing it at once would take long.
      if (to - from > maxDeepBytes && !isPlain) throw tooLong('The body has a large array nested in other arrays.')
      return piece(from, to, pointer)
    }
    while (at[cursor]! < from) cursor++
    return first === openList ? list(from, to, level + 1, pointer) : object(from, to, level + 1, pointer)
  }

  /** The next entry that ends an item or a field: a comma, or the end of the surrounding list or object. */
  function endOf(level: number, end: number): number {
    let found = cursor
    while (found < at.length && (depth[found] !== level || raw[at[found]!] === colon)) found++
    if (found >= at.length || at[found]! >= end) throw unexpected()
    return found
  }

  async function list(start: number, end: number, level: number, pointer: string): Promise<unknown[]> {
    const items: unknown[] = []
    if (trim(start + 1, end - 1)[0] === end - 1) return items
    let from = start + 1
    let count = 0
    const add = async (to: number) => {
      if (count === 0) return
      const pause = pauses()
      if (pause) await pause
      const text = Buffer.concat([Buffer.from('['), raw.subarray(from, to), Buffer.from(']')])
      const found = parse(text, { pointer, from: items.length }) as unknown[]
      // There must be something between two commas.
      if (found.length !== count) throw unexpected()
      for (const item of found) items.push(item)
      count = 0
    }
    for (let last = false, begin = from; !last; ) {
      const found = endOf(level, end)
      const to = at[found]!
      last = raw[to] !== comma
      if (last && (raw[to] !== closeList || to !== end - 1)) throw unexpected()
      if (to - begin > pieceBytes) {
        await add(begin - 1)
        items.push(await value(begin, to, level, `${pointer}/${items.length}`))
        from = to + 1
      } else {
        count++
        if (last || to - from > pieceBytes) {
          await add(to)
          from = to + 1
        }
      }
      while (cursor < at.length && at[cursor]! <= to) cursor++
      begin = to + 1
    }
    return items
  }

  async function object(start: number, end: number, level: number, pointer: string): Promise<unknown> {
    const fields = new Map<string, unknown>()
    if (trim(start + 1, end - 1)[0] === end - 1) return {}
    for (let last = false, begin = start + 1; !last; ) {
      if (depth[cursor] !== level || raw[at[cursor]!] !== colon) throw unexpected()
      const middle = at[cursor]!
      const key = parse(raw.subarray(begin, middle), { pointer })
      if (typeof key !== 'string') throw unexpected()
      cursor++
      const to = at[endOf(level, end)]!
      last = raw[to] !== comma
      if (last && (raw[to] !== closeObject || to !== end - 1)) throw unexpected()
      if (fields.has(key)) throw new RepeatedKey(key)
      if (fields.size >= maxFields) throw tooLong(`The body has an object of more than ${maxFields} fields.`)
      fields.set(key, await value(middle + 1, to, level, `${pointer}/${pointerPart(key)}`))
      while (cursor < at.length && at[cursor]! <= to) cursor++
      begin = to + 1
    }
    return Object.fromEntries(fields)
  }

  return value(0, raw.length, 0, '#')
}

export class RepeatedKey extends Error {
  readonly key: string
  constructor(key: string) {
    super(`${key} appears twice`)
    this.key = key
  }
}
