// Large JSON of customers, parsed in pieces: a long list is many short ones, and other requests are answered in between.
import type { FieldError } from '../errors.ts'
import { invalidFields } from '../fields.ts'
import { createPauses, type Pauses } from '../pauses.ts'

/** Parses a piece of valid UTF-8 as JSON; `pointer` is where it stands, `from` the index of the first item of a list. */
export type ParsePiece = (raw: Buffer, place: { pointer: string; from?: number }) => unknown

/** What has more bytes is parsed in pieces. */
export const maxAtOnce = 128 << 10
const pieceBytes = 64 << 10
// Lists in what is in the body itself are taken apart; whatever lies deeper is parsed with what it lies in.
const deepest = 3
const maxDeepBytes = 256 << 10
const maxParts = 200_000
// No operation takes as many, and no lockfile has them; 100,000 keys of one object cost 100 ms in one go.
const maxFields = 10_000
const bytesPerLook = 16 << 10

const utf8 = new TextDecoder('utf-8', { fatal: true })
// A mark of the order of bytes is one only at the very beginning.
const utf8Piece = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a document, without the mark that tells the order of its bytes; throws if it is not UTF-8. */
export const textOf = (raw: Buffer) => utf8.decode(raw)

/** The text of a piece; throws if it is not UTF-8. */
export const pieceText = (raw: Buffer) => utf8Piece.decode(raw)

export const withoutMark = (raw: Buffer) =>
  raw[0] === 0xef && raw[1] === 0xbb && raw[2] === 0xbf ? raw.subarray(3) : raw

/** The document as it is written; while a large one is parsed, others get on. */
export async function parseJson(raw: Buffer): Promise<unknown> {
  if (raw.length <= maxAtOnce) return JSON.parse(textOf(raw))
  return parseInPieces(withoutMark(raw), (piece) => JSON.parse(pieceText(piece)))
}

const code = (character: string) => character.charCodeAt(0)
const [quote, backslash, comma, colon] = [code('"'), code('\\'), code(','), code(':')]
const [openList, closeList, openObject, closeObject] = [code('['), code(']'), code('{'), code('}')]
const isBlank = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Where the commas, colons and ends of the outer lists and objects are, and how deep. */
type Outline = { at: number[]; depth: number[] }

async function outlineOf(raw: Buffer, pauses: Pauses): Promise<Outline> {
  const outline: Outline = { at: [], depth: [] }
  let depth = 0
  let look = bytesPerLook
  for (let at = 0; at < raw.length; at++) {
    if (at >= look) {
      look = at + bytesPerLook
      const pause = pauses()
      if (pause) await pause
    }
    const byte = raw[at]!
    if (byte === quote) at = endOfText(raw, at)
    else if (byte === openList || byte === openObject) depth++
    else if (byte === comma || byte === colon || byte === closeList || byte === closeObject) {
      if (depth <= deepest) {
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

/** Where the text ends that begins at `start`; octet by octet, since it may be all quotes. */
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

/** The same as to parse it as a whole, except for the words in which a syntax error is told. */
export async function parseInPieces(raw: Buffer, parse: ParsePiece): Promise<unknown> {
  const pauses = createPauses()
  const { at, depth } = await outlineOf(raw, pauses)
  /** The next mark that was not used yet. */
  let mark = 0

  /** Without blanks around it. */
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
    if (to - from <= pieceBytes || level >= deepest || isPlain) {
      // Nothing that an operation takes is like that, and to parse it at once would take long.
      if (to - from > maxDeepBytes && !isPlain) throw tooLong('The body has a large array nested in other arrays.')
      return piece(from, to, pointer)
    }
    while (at[mark]! < from) mark++
    return first === openList ? list(from, to, level + 1, pointer) : object(from, to, level + 1, pointer)
  }

  /** The next mark that ends an item or a field: a comma, or the end of what it is in. */
  function endOf(level: number, end: number): number {
    let found = mark
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
      // Between two commas there has to be something.
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
      while (mark < at.length && at[mark]! <= to) mark++
      begin = to + 1
    }
    return items
  }

  async function object(start: number, end: number, level: number, pointer: string): Promise<unknown> {
    const fields = new Map<string, unknown>()
    if (trim(start + 1, end - 1)[0] === end - 1) return {}
    for (let last = false, begin = start + 1; !last; ) {
      if (depth[mark] !== level || raw[at[mark]!] !== colon) throw unexpected()
      const middle = at[mark]!
      const key = parse(raw.subarray(begin, middle), { pointer })
      if (typeof key !== 'string') throw unexpected()
      mark++
      const to = at[endOf(level, end)]!
      last = raw[to] !== comma
      if (last && (raw[to] !== closeObject || to !== end - 1)) throw unexpected()
      if (fields.has(key)) throw new RepeatedKey(key)
      if (fields.size >= maxFields) throw tooLong(`The body has an object of more than ${maxFields} fields.`)
      fields.set(key, await value(middle + 1, to, level, `${pointer}/${pointerPart(key)}`))
      while (mark < at.length && at[mark]! <= to) mark++
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
