// Splits zone files (RFC 1035) into entries: joins lines within parentheses, splits fields, separates comments.
import { type Field, readField } from '../fields.ts'
import { unreadableText } from '../parsed.ts'

export type ZoneEntry = {
  line: number
  lastLine: number
  // As much of the source as a report shows.
  text: string
  fields: Field[]
  // The line starts with whitespace, so it belongs to the previous entry's name.
  inheritsOwner: boolean
  comment: string
  // Written by our exporter for a record type that only exists here. Other programs treat it as a comment.
  ours: boolean
  problem: { line: number; detail: string } | null
}

// Two characters that are unlikely at the start of a comment, then a name.
export const ownLinePrefix = ';@berth '
// The start of every file that we export.
export const ownHeader = '; Zone '

const shownCharacters = 200
// No record needs more: a TXT record of 4,096 octets has at most that many empty strings, or four characters per octet. A
// hostile file may be one entry of many MiB.
const maxFields = 5_000
const maxFieldCharacters = 20_000
const maxCommentCharacters = 4_096
const fieldStops: ReadonlySet<string> = new Set([' ', '\t', '"', '\n', '\r', ';', '(', ')'])

function lineBreakLength(source: string, at: number): number {
  if (source[at] === '\n') return 1
  if (source[at] !== '\r') return 0
  return source[at + 1] === '\n' ? 2 : 1
}

function lineEnd(source: string, start: number): number {
  let at = start
  while (at < source.length && source[at] !== '\n' && source[at] !== '\r') at++
  return at
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}

export function* zoneEntries(source: string): Generator<ZoneEntry> {
  let at = source.startsWith('\ufeff') ? 1 : 0
  let line = 1
  while (at < source.length) {
    const start = at
    const ours = source.startsWith(ownLinePrefix, at)
    if (ours) at += ownLinePrefix.length
    const fields: Field[] = []
    const comments: string[] = []
    let commentCharacters = 0
    const entry: ZoneEntry = {
      line,
      lastLine: line,
      text: '',
      fields,
      inheritsOwner: !ours && isBlank(source[at]),
      comment: '',
      ours,
      problem: null,
    }
    const openedAt: number[] = []
    let previousEnd = -1
    const fail = (detail: string, where = line) => {
      entry.problem ??= { line: where, detail }
    }

    for (;;) {
      const character = source[at]
      entry.lastLine = line
      if (character === undefined) break
      const breakLength = lineBreakLength(source, at)
      if (breakLength > 0) {
        at += breakLength
        line++
        if (openedAt.length === 0 || ours) break
      } else if (isBlank(character)) {
        at++
      } else if (character === ';') {
        const end = lineEnd(source, at)
        if (commentCharacters < maxCommentCharacters) {
          const comment = source.slice(at + 1, Math.min(end, at + 1 + maxCommentCharacters))
          comments.push(comment)
          commentCharacters += comment.length + 1
        }
        at = end
      } else if (character === '(') {
        openedAt.push(line)
        at++
      } else if (character === ')') {
        if (openedAt.pop() === undefined) fail('A closing parenthesis has no matching opening one.')
        at++
      } else {
        const read = readField(source, at, fieldStops)
        const long = read.raw.length > maxFieldCharacters
        const unreadable = read.problem ?? (long ? 'is too long' : unreadableText(read.raw))
        if (unreadable) {
          fail(read.problem ?? `The text ${unreadable}.`)
          // Open parentheses are dropped with the broken field; the next line starts a new entry.
          if (read.problem) openedAt.length = 0
        }
        if (fields.length < maxFields) {
          const raw = long ? read.raw.slice(0, shownCharacters) : read.raw
          fields.push({ raw, quoted: read.quoted, adjacent: at === previousEnd })
        } else fail(`An entry has more than ${maxFields} fields.`)
        at = read.end
        previousEnd = at
      }
    }
    const open = openedAt.at(-1)
    if (open !== undefined) fail('An opening parenthesis is never closed.', open)
    if (fields.length === 0 && !entry.problem) continue
    const shownEnd = Math.min(at, start + shownCharacters)
    entry.text = source
      .slice(start, shownEnd)
      .toWellFormed()
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim()
    entry.comment = comments
      .join(' ')
      .toWellFormed()
      .replace(/[\s\p{Cc}]+/gu, ' ')
      .trim()
    yield entry
  }
}
