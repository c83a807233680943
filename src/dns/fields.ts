// Splits presentation format into fields: plain words and quoted strings, with backslash escapes left in place.
import { type Parsed, parsed, refused } from './parsed.ts'

export type Field = {
  // Without quotes, escapes untouched.
  raw: string
  quoted: boolean
  // No whitespace between this field and the previous one, as in alpn="h2".
  adjacent: boolean
}

export type FieldRead = { raw: string; quoted: boolean; end: number; problem?: string }

const doubleQuote = 0x22
const backslash = 0x5c
const valueStops: ReadonlySet<string> = new Set([' ', '\t', '"', '\n', '\r'])

function isLineBreak(character: string | undefined): boolean {
  return character === undefined || character === '\n' || character === '\r'
}

export function readField(text: string, start: number, stops: ReadonlySet<string>): FieldRead {
  const quoted = text[start] === '"'
  const first = quoted ? start + 1 : start
  let at = first
  for (; ; at++) {
    // Most of a long text is plain, so this skips ahead. At the end of the text, charCodeAt returns NaN, which stops it.
    if (quoted) while (text.charCodeAt(at) > doubleQuote && text.charCodeAt(at) !== backslash) at++
    const character = text[at]
    if (character === '\\') {
      at++
      if (isLineBreak(text[at])) {
        return { raw: '', quoted, end: at, problem: 'A backslash must be followed by a character.' }
      }
    } else if (quoted && character === '"') {
      return { raw: text.slice(first, at), quoted, end: at + 1 }
    } else if (quoted ? isLineBreak(character) : character === undefined || stops.has(character)) {
      break
    }
  }
  if (quoted) return { raw: '', quoted, end: at, problem: 'A quoted string has no closing quote.' }
  return { raw: text.slice(first, at), quoted, end: at }
}

export function splitFields(value: string): Parsed<Field[]> {
  const fields: Field[] = []
  let at = 0
  let previousEnd = -1
  while (at < value.length) {
    if (value[at] === ' ' || value[at] === '\t') {
      at++
      continue
    }
    const read = readField(value, at, valueStops)
    if (read.problem) return refused(read.problem)
    if (read.end === at) return refused('A value must be a single line.')
    fields.push({ raw: read.raw, quoted: read.quoted, adjacent: at === previousEnd })
    at = read.end
    previousEnd = at
  }
  return parsed(fields)
}
