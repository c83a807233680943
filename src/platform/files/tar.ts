// Tar archives (ustar with pax headers) as streams that any tar can read, and a reader that refuses all other forms.
import type { ByteReader } from './byte-reader.ts'

export type TarEntry =
  | { kind: 'directory'; path: string; mode: number }
  | { kind: 'link'; path: string; target: string }
  | { kind: 'file'; path: string; mode: number; size: number }

/** `head` contains the entry's headers as they are in the archive. */
export type ReadEntry = TarEntry & { head: Buffer }

/** An archive that this writer can't have created. */
export class BadArchive extends Error {
  override name = 'BadArchive'
}

const blockBytes = 512
const flags = { file: '0', link: '2', directory: '5', pax: 'x' } as const
const kinds = { '0': 'file', '2': 'link', '5': 'directory' } as const
// What fits into the fields of a header; anything longer goes into a pax header.
const maxNameLength = 100
const maxSize = 8 ** 11 - 1
// Linux's PATH_MAX, for the path and the target of a link.
const maxPaxLength = 2 * 4096 + 128
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Two empty blocks. */
export const tarEnd = Buffer.alloc(2 * blockBytes)

/** The padding after a file's content. */
export function tarPadding(size: number): Buffer {
  return tarEnd.subarray(0, (blockBytes - (size % blockBytes)) % blockBytes)
}

export function tarHeader(entry: TarEntry): Buffer {
  const size = entry.kind === 'file' ? entry.size : 0
  const target = entry.kind === 'link' ? entry.target : ''
  const records: string[] = []
  if (Buffer.byteLength(entry.path) > maxNameLength) records.push(paxRecord('path', entry.path))
  if (Buffer.byteLength(target) > maxNameLength) records.push(paxRecord('linkpath', target))
  if (size > maxSize) records.push(paxRecord('size', String(size)))
  const mode = entry.kind === 'link' ? 0o777 : entry.mode
  const block = header({ name: entry.path, mode, size, flag: flags[entry.kind], target })
  if (records.length === 0) return block
  const pax = Buffer.from(records.join(''))
  const before = header({ name: 'pax', mode: 0o600, size: pax.length, flag: flags.pax, target: '' })
  return Buffer.concat([before, pax, tarPadding(pax.length), block])
}

/** The number at the start counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  let length = Buffer.byteLength(rest)
  while (`${length}`.length + Buffer.byteLength(rest) !== length) length = `${length}`.length + Buffer.byteLength(rest)
  return `${length}${rest}`
}

type Fields = { name: string; mode: number; size: number; flag: string; target: string }

function header({ name, mode, size, flag, target }: Fields): Buffer {
  const block = Buffer.alloc(blockBytes)
  const octal = (value: number, at: number, digits: number) =>
    block.write(value.toString(8).padStart(digits, '0'), at, digits, 'latin1')
  Buffer.from(name).copy(block, 0, 0, maxNameLength)
  octal(mode, 100, 7)
  octal(0, 108, 7)
  octal(0, 116, 7)
  octal(size > maxSize ? 0 : size, 124, 11)
  octal(Math.floor(Date.now() / 1000), 136, 11)
  block.write(flag, 156, 'latin1')
  Buffer.from(target).copy(block, 157, 0, maxNameLength)
  block.write('ustar\x0000', 257, 'latin1')
  octal(sumOf(block), 148, 6)
  block.write('\0 ', 154, 'latin1')
  return block
}

/** The checksum counts its own field as blanks. */
function sumOf(block: Buffer): number {
  let sum = 8 * 0x20
  for (let at = 0; at < blockBytes; at++) if (at < 148 || at >= 156) sum += block[at]!
  return sum
}

/**
 * Yields the entries of an archive. The caller must read a file's content (`size` bytes and padding) from `reader` before
 * the next entry.
 */
export async function* readTar(reader: ByteReader): AsyncGenerator<ReadEntry> {
  for (;;) {
    const first = await reader.take(blockBytes)
    if (first.every((byte) => byte === 0)) return
    const pax = new Map<string, string>()
    let block = first
    let head = first
    if (field(first, 156, 1) === flags.pax) {
      const { size } = parse(first)
      if (size > maxPaxLength) throw new BadArchive('An entry of the archive has a name that is too long.')
      const text = await reader.take(size)
      const padding = await reader.take(tarPadding(size).length)
      block = await reader.take(blockBytes)
      head = Buffer.concat([first, text, padding, block])
      for (const [key, value] of paxRecords(text)) pax.set(key, value)
    }
    yield { ...entryOf(block, pax), head }
  }
}

function entryOf(block: Buffer, pax: Map<string, string>): TarEntry {
  const { mode, size: ownSize, name } = parse(block)
  const kind = kinds[field(block, 156, 1) as keyof typeof kinds]
  const path = checkPath(pax.get('path') ?? name)
  const size = pax.has('size') ? Number(pax.get('size')) : ownSize
  if (!Number.isSafeInteger(size) || size < 0) throw new BadArchive(`${path} has no size.`)
  if (kind === 'file') return { kind, path, mode, size }
  if (kind === undefined || size !== 0) throw new BadArchive(`${path} is of a kind that no backup has.`)
  if (kind === 'directory') return { kind, path, mode }
  const target = pax.get('linkpath') ?? field(block, 157, maxNameLength)
  if (target === '' || target.includes('\0')) throw new BadArchive(`${path} is a link to nowhere.`)
  return { kind, path, target }
}

function parse(block: Buffer): { name: string; mode: number; size: number } {
  const number = (at: number, digits: number) => {
    const text = field(block, at, digits)
    if (!/^[0-7]+$/.test(text)) throw new BadArchive('The archive is damaged.')
    return Number.parseInt(text, 8)
  }
  if (field(block, 257, 5) !== 'ustar' || number(148, 6) !== sumOf(block)) {
    throw new BadArchive('The archive is damaged.')
  }
  return { name: field(block, 0, maxNameLength), mode: number(100, 7) & 0o777, size: number(124, 11) }
}

function field(block: Buffer, at: number, bytes: number): string {
  const piece = block.subarray(at, at + bytes)
  const end = piece.indexOf(0)
  // If a name is cut within a character, the pax header has the whole name.
  return piece.subarray(0, end < 0 ? bytes : end).toString()
}

function* paxRecords(bytes: Buffer): Generator<[string, string]> {
  for (let at = 0; at < bytes.length; ) {
    const length = Number.parseInt(bytes.subarray(at, at + 6).toString('latin1'), 10)
    const record = bytes.subarray(at, at + length)
    const match = length > 0 && record.length === length ? /^\d+ (\w+)=(.*)\n$/s.exec(decode(record)) : null
    if (!match) throw new BadArchive('The archive is damaged.')
    yield [match[1]!, match[2]!]
    at += length
  }
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new BadArchive('The archive has a name that is not UTF-8.')
  }
}

/** Only allows plain names below the directory into which the archive is unpacked. */
function checkPath(path: string): string {
  const plain = path.split('/').every((name) => name !== '' && name !== '.' && name !== '..' && name.length <= 255)
  if (!plain || path.includes('\0'))
    throw new BadArchive(`The archive has the path ${JSON.stringify(path.slice(0, 200))}, which no backup has.`)
  return path
}
