// The payloads: plain ones, and hostile ones for the same parser.
import { packet } from '../dns/client.ts'
import { pieceSizes } from './surface.ts'
import { repeat } from './wire.ts'

/** The start, the repeated part, and the end. */
export type Repeated = { head: string; piece: string; tail: string }

export type Payloads<Payload> = { plain: Payload; shapes: Record<string, Payload> }

/** Repeats a part until there are this many bytes. */
export function written({ head, piece, tail }: Repeated, bytes: number): Buffer {
  return Buffer.concat([Buffer.from(head, 'latin1'), repeat(piece, bytes), Buffer.from(tail, 'latin1')])
}

const only = (piece: string): Repeated => ({ head: '', piece, tail: '' })

const ok = 'HTTP/1.1 200 OK\r\n'

const bare: Repeated = { head: `${ok}Connection: close\r\n\r\n`, piece: '', tail: '' }
const inChunks = (size: number, extension = ''): Repeated => ({
  head: `${ok}Transfer-Encoding: chunked\r\n\r\n`,
  piece: `${size.toString(16)}${extension}\r\n${'x'.repeat(size)}\r\n`,
  tail: '0\r\n\r\n',
})
const ending = { head: '', tail: `${ok}Content-Length: 2\r\n\r\nok` }
const early = (lines: number) => `HTTP/1.1 103 Early Hints\r\n${'a: b\r\n'.repeat(lines)}\r\n`

/** Responses of a server to the edge. */
export const responses: Payloads<Repeated> = {
  plain: { ...bare, piece: 'x'.repeat(16 << 10) },
  shapes: {
    ...Object.fromEntries(pieceSizes.map((size) => [`chunks of ${size}`, inChunks(size)])),
    'chunks of 1 with an extension': inChunks(1, ';a=b'),
    '103 without headers': { piece: early(0), ...ending },
    '103 with 10 headers': { piece: early(10), ...ending },
    '103 with 1,000 headers': { piece: early(1_000), ...ending },
    '100 Continue': { piece: 'HTTP/1.1 100 Continue\r\n\r\n', ...ending },
    'headers without end': { ...bare, head: ok, piece: 'a: b\r\n' },
    'trailers without end': { ...bare, head: `${ok}Transfer-Encoding: chunked\r\n\r\n0\r\n`, piece: 'a: b\r\n' },
    'a status line without end': { ...bare, head: 'HTTP/1.1 200 ', piece: 'x' },
  },
}

/** The output of a program. */
export const output: Payloads<Repeated> = {
  plain: only(`${'a line of a log, as programs print them, '.repeat(3).slice(0, 99)}\n`),
  shapes: {
    'empty lines': only('\n'),
    'lines of one letter': only('x\n'),
    'carriage returns': only('\r'),
    'one line without end': only('x'),
    'bytes that are no text': only('\xff\xfe'),
    'half characters': only('\xe2\x82'),
    'colours and cursor movements': only('\x1b[31m\x1b[0m\x1b[2K\n'),
    NUL: only('\0'),
    JSON: only('{"a":1}\n'),
  },
}

function message(counts: [number, number, number, number], rest: Buffer | string, flags = 0): Buffer {
  const start = Buffer.alloc(12)
  start.writeUInt16BE(flags, 2)
  for (const [index, count] of counts.entries()) start.writeUInt16BE(count, 4 + 2 * index)
  return Buffer.concat([start, Buffer.from(rest as string, 'latin1')])
}

/** Each name points to the previous one. */
const pointers = Buffer.concat(
  Array.from({ length: 2_000 }, (_, i) => Buffer.from([0xc0 | ((12 + 2 * i) >> 8), (12 + 2 * i) & 255])),
)
const tail = '\0\x01\0\x01'
const labels = `${'\x01a'.repeat(127)}\0${tail}`
const options = `\0\0\x29\x10\0\0\0\0\0${String.fromCharCode(4_000 >> 8, 4_000 & 255)}${'\0\x05\0\0'.repeat(1_000)}`
const records = '\x01a\0\0\x01\0\x01\0\0\0\0\0\x04\x01\x01\x01\x01'
const update = 5 << 11

/** DNS messages; the plain one queries an existing name. */
export const messages: Payloads<(name: string) => Buffer> = {
  plain: (name) => packet(1, name, 'A'),
  shapes: {
    'messages of 0 bytes': () => Buffer.alloc(0),
    'messages of 1 byte': () => Buffer.alloc(1),
    'only a header': () => message([0, 0, 0, 0], ''),
    'counts without records': () => message([65_535, 65_535, 65_535, 65_535], ''),
    'pointers to pointers': () => message([1, 0, 0, 0], pointers),
    'names of 127 labels': () => message([1, 0, 0, 0], labels),
    'thousand EDNS options': () => message([1, 0, 0, 1], `\x01a\0${tail}${options}`),
    'thousand records': () => message([1, 1_000, 0, 0], `\x01a\0${tail}${records.repeat(1_000)}`),
    'unsigned updates': () => message([1, 0, 1_000, 0], `\x01a\0\0\x06\0\x01${records.repeat(1_000)}`, update),
  },
}

/** Zone files: a repeated line, or a line for each number. */
export const zoneFiles: Payloads<string | ((number: number) => string)> = {
  plain: (n) => `host-${n} 3600 IN A 10.0.${(n >> 8) & 255}.${n & 255}\n`,
  shapes: {
    'empty lines': '\n',
    comments: ';\n',
    parentheses: '(\n)\n',
    'one record again and again': 'a 300 A 10.0.0.1\n',
    'short records': (n) => `${n.toString(36)} A 1.1.1.1\n`,
    'escaped names': (n) => `${`\\${String(97 + (n % 26)).padStart(3, '0')}`.repeat(20)}${n} 300 A 10.0.0.1\n`,
    'texts of many empty strings': (n) => `t${n} 300 TXT ${'"" '.repeat(500)}\n`,
    'names of many labels': (n) => `${'a.'.repeat(60)}${n} 300 A 10.0.0.1\n`,
    'broken lines': '%\n',
    'an open quotation': (n) => (n === 0 ? 'a 300 TXT "' : 'x'),
    '$TTL again and again': '$TTL 300\n',
    '$ORIGIN one below the other': (n) => `$ORIGIN ${n % 100}\n`,
    'large ranges of $GENERATE': '$GENERATE 1-65535 h$ A 10.0.0.1\n',
    'one set of many records': (n) => `a 300 A 10.${n >> 16}.${(n >> 8) & 255}.${n & 255}\n`,
  },
}

export function zoneText(line: string | ((number: number) => string), bytes: number): string {
  const lines: string[] = []
  for (let length = 0, n = 0; length < bytes; n++) {
    const text = typeof line === 'string' ? line : line(n)
    lines.push(text)
    length += text.length
  }
  return lines.join('')
}

/** Bodies of API requests. */
export const documents: Payloads<Repeated> = {
  plain: { head: '{"subject":"a","message":"', piece: 'x', tail: '"}' },
  shapes: {
    'nested arrays': { head: '{"subject":', piece: '[', tail: '' },
    'nested objects': { head: '', piece: '{"a":', tail: '' },
    'many fields': { head: '{', piece: '"a":1,', tail: '"b":1}' },
    'many elements': { head: '[', piece: '0,', tail: '0]' },
    'long numbers': { head: '{"subject":', piece: '9', tail: '}' },
    escapes: { head: '{"subject":"', piece: '\\u0061', tail: '"}' },
    'half surrogates': { head: '{"subject":"a","message":"', piece: '\\ud800', tail: '"}' },
    'empty strings': { head: '[', piece: '"",', tail: '""]' },
    spaces: { head: '{', piece: ' ', tail: '}' },
  },
}
