// The _headers file of a site: blocks of a path pattern and the headers to send with responses at matching paths.
import { hashOf, unmatchable } from './credentials.ts'
import { matchesPattern, type Pattern, parsePattern, splitPath } from './patterns.ts'
import type { ParseNote } from './redirects.ts'

export type HeaderBlock = {
  pattern: Pattern
  headers: [name: string, value: string][]
  /** Hashes of `name:password` pairs from Basic-Auth, any of which gives access. */
  credentials?: Buffer[]
}

/** Keyed by lower-case name; the values of all matching blocks, joined as HTTP does. */
export type ExtraHeaders = Map<string, string>

// Framing belongs to the server: a site that set it could split responses or break a shared connection. Validators and
// ranges must match the content. Cookies would be shared through public caches.
const refused = new Set([
  'accept-ranges',
  'connection',
  'content-encoding',
  'content-length',
  'content-range',
  'date',
  'etag',
  'host',
  'http2-settings',
  'keep-alive',
  'location',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'set-cookie',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const maxHeaders = 1_000
const maxValueLength = 4_096
// What a visitor sends is compared with all of them.
const maxPasswords = 1_000

export function parseHeaders(text: string): { blocks: HeaderBlock[]; notes: ParseNote[] } {
  const blocks: HeaderBlock[] = []
  const notes: ParseNote[] = []
  let block: HeaderBlock | null = null
  let count = 0
  let passwords = 0
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    // This isn't a header but contains passwords, so neither the headers nor the notes may include its text.
    const protects = /^basic-auth\b/i.test(line)
    const note = (text: string) => notes.push({ line: index + 1, text, ...(protects && { protects }) })
    if (line === '' || line.startsWith('#')) continue
    if (!/^\s/.test(raw)) {
      const pattern = parsePattern(line)
      block = pattern && { pattern, headers: [] }
      if (block) blocks.push(block)
      else
        note(
          `${protects ? 'Basic-Auth' : line} is not a path with placeholders as whole segments and a * only at its end`,
        )
      continue
    }
    // A value can't start with whitespace: otherwise a line of blanks would match in as many ways as it has characters.
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+)\s*:\s*([\x21-\x7e][\x20-\x7e\t]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) note('a header line is a name, a colon and a printable value')
    else if (value.length > maxValueLength) note(`a header value has at most ${maxValueLength} characters`)
    else if (refused.has(name.toLowerCase())) note(`${name} cannot be set by a site`)
    else if (!block) note(`${name} stands below no path`)
    else if (++count > maxHeaders) {
      if (count === maxHeaders + 1 || protects) note(`only the first ${maxHeaders} headers are sent`)
    } else if (protects) {
      const pairs = value.split(/\s+/).filter(Boolean)
      passwords += pairs.length
      if (!pairs.every((pair) => /^[^:]+:.+$/.test(pair)))
        note('Basic-Auth is followed by name:password, once or several times')
      else if (passwords > maxPasswords) {
        note(`a site has at most ${maxPasswords} passwords`)
        block.credentials ??= [unmatchable]
      } else block.credentials = [...(block.credentials ?? []), ...pairs.map(hashOf)]
    } else block.headers.push([name.toLowerCase(), value])
  }
  return { blocks: blocks.filter(({ headers, credentials }) => headers.length > 0 || credentials), notes }
}

/** Indexes of the blocks that match a decoded path. Paths with the same indexes share their headers. */
export function matchingBlocks(blocks: readonly HeaderBlock[], path: string): number[] {
  const parts = splitPath(path)
  const found: number[] = []
  for (let i = 0; i < blocks.length; i++) if (matchesPattern(blocks[i]!.pattern, parts)) found.push(i)
  return found
}

export function headersOf(blocks: readonly HeaderBlock[], indexes: readonly number[]): ExtraHeaders {
  const merged: ExtraHeaders = new Map()
  for (const index of indexes) {
    for (const [name, value] of blocks[index]!.headers) {
      const before = merged.get(name)
      merged.set(name, before === undefined ? value : `${before}, ${value}`)
    }
  }
  return merged
}
