// Decodes zone files: UTF-8, and lines in other encodings as octets, like BIND.
import { isUtf8 } from 'node:buffer'

export type ZoneText = {
  text: string
  // The numbers of the first lines that aren't UTF-8.
  otherLines: number[]
}

const utf8 = new TextDecoder('utf-8')
// Used by old editors; Latin-1 is part of it.
const western = new TextDecoder('windows-1252')
const maxReported = 2000
const [lineFeed, quote, backslash, semicolon] = [0x0a, 0x22, 0x5c, 0x3b]

function commentStart(line: Uint8Array): number {
  let quoted = false
  for (let at = 0; at < line.length; at++) {
    if (line[at] === backslash) at++
    else if (line[at] === quote) quoted = !quoted
    else if (line[at] === semicolon && !quoted) return at
  }
  return line.length
}

// Outside of comments, every octet is escaped rather than guessed.
function otherText(line: Uint8Array): string {
  const end = commentStart(line)
  const data = Buffer.from(line.buffer, line.byteOffset, end)
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (character) => `\\${character.charCodeAt(0)}`)
  return data + western.decode(line.subarray(end))
}

export function decodeZoneFile(octets: Uint8Array): ZoneText {
  if (isUtf8(octets)) return { text: utf8.decode(octets), otherLines: [] }
  const parts: string[] = []
  const otherLines: number[] = []
  let decoded = 0
  let line = 0
  for (let start = 0; start < octets.length; ) {
    const found = octets.indexOf(lineFeed, start)
    const end = found < 0 ? octets.length : found + 1
    const part = octets.subarray(start, end)
    line++
    if (!isUtf8(part)) {
      // Consecutive UTF-8 lines are decoded together, because a hostile file has millions of them.
      parts.push(utf8.decode(octets.subarray(decoded, start)), otherText(part))
      decoded = end
      if (otherLines.length < maxReported) otherLines.push(line)
    }
    start = end
  }
  return { text: parts.join('') + utf8.decode(octets.subarray(decoded)), otherLines }
}
