// Reads tar archives of any program, treated as hostile: ustar, pax and GNU names, and only files, links and directories.

import { createPauses } from '../pauses.ts'
import type { ByteReader } from './byte-reader.ts'
import { BadArchive, tarPadding } from './tar.ts'

export type ArchiveEntry = {
  kind: 'file' | 'link' | 'directory'
  /** As written in the archive, without a leading `./` or a trailing slash. */
  path: string
  mode: number
  size: number
  /** Of a link. */
  target: string
}

const blockBytes = 512
const maxHeaderLength = 64 << 10
/** No system has longer names, including the terminating NUL. */
const maxNameLength = 4096
// Of all files together. Programs write a few per file; compressed, any number costs nothing to send, but each takes time.
const maxAttributes = 1_000_000
// Of one file in all its headers, because they are read without a pause.
const maxAttributesPerFile = 1_000
// Folders and headers with long names: three or four for each file that a deployment may have.
const maxOthers = 200_000
const kinds: Record<string, ArchiveEntry['kind'] | undefined> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '2': 'link',
  '5': 'directory',
}
const otherKinds: Record<string, string> = {
  '1': 'a hard link',
  '3': 'a device',
  '4': 'a device',
  '6': 'a pipe',
  S: 'a sparse file',
}
const utf8 = new TextDecoder('utf-8', { fatal: true })

const nameTooLong = () => new BadArchive('An entry in the archive has a name that is too long.')

function decode(bytes: Buffer): string {
  if (bytes.length > maxNameLength) throw nameTooLong()
  try {
    return utf8.decode(bytes)
  } catch {
    throw new BadArchive('The archive has a name that is not UTF-8.')
  }
}

function field(block: Buffer, at: number, bytes: number): Buffer {
  const piece = block.subarray(at, at + bytes)
  const end = piece.indexOf(0)
  return end < 0 ? piece : piece.subarray(0, end)
}

function number(block: Buffer, at: number, bytes: number): number {
  // GNU sets the first bit for numbers that are too large for octal digits.
  if (block[at]! & 0x80) {
    const value = Number(BigInt(`0x${block.toString('hex', at, at + bytes)}`) & ((1n << BigInt(bytes * 8 - 1)) - 1n))
    if (!Number.isSafeInteger(value)) throw new BadArchive('The archive has a number that is too large.')
    return value
  }
  const text = field(block, at, bytes).toString('latin1').trim()
  if (!/^[0-7]*$/.test(text)) throw new BadArchive('The archive is damaged.')
  return text === '' ? 0 : Number.parseInt(text, 8)
}

/** The checksum counts its own field as blanks. */
function checkSum(block: Buffer): void {
  let sum = 8 * 0x20
  for (let at = 0; at < blockBytes; at++) if (at < 148 || at >= 156) sum += block[at]!
  if (number(block, 148, 8) !== sum) throw new BadArchive('This is not a tar archive, or it is damaged.')
}

/** Calls `count` for each attribute. */
function paxOf(bytes: Buffer, count: () => void): Map<string, string> {
  const found = new Map<string, string>()
  for (let at = 0; at < bytes.length; ) {
    count()
    const length = Number.parseInt(bytes.toString('latin1', at, at + 8), 10)
    const record = bytes.subarray(at, at + length)
    const blank = record.indexOf(0x20)
    const equals = record.indexOf(0x3d)
    const isWhole = length > 0 && record.length === length && blank > 0 && equals > blank && record.at(-1) === 0x0a
    if (!isWhole) throw new BadArchive('The archive is damaged.')
    const key = record.toString('latin1', blank + 1, equals)
    // The size of a sparse file is not that of its content.
    if (key.startsWith('GNU.sparse.'))
      throw new BadArchive('The archive contains a sparse file, which cannot be deployed.')
    if (key === 'path' || key === 'linkpath' || key === 'size') found.set(key, decode(record.subarray(equals + 1, -1)))
    at += length
  }
  return found
}

/** Programs write names with a leading `./` and a trailing `/`. Everything else is left for the caller to check. */
export function plainName(path: string): string {
  const start = /^(?:\.\/+)*/.exec(path)![0].length
  let end = path.length
  // A regular expression would retry at every run of slashes.
  while (end > start && path[end - 1] === '/') end--
  return path.slice(start, end)
}

/**
 * Yields the entries of an archive. The caller must read a file's content (`size` bytes and padding) from `reader` before
 * the next entry.
 */
export async function* readArchive(reader: ByteReader): AsyncGenerator<ArchiveEntry> {
  let pax = new Map<string, string>()
  let longName: string | null = null
  let longTarget: string | null = null
  let attributes = 0
  let ofFile = 0
  const count = () => {
    if (++attributes > maxAttributes) throw new BadArchive('The files in the archive have too many attributes.')
    if (++ofFile > maxAttributesPerFile) {
      throw new BadArchive(`A file in the archive has more than ${maxAttributesPerFile} attributes.`)
    }
  }
  let others = 0
  const pauses = createPauses()
  for (;;) {
    // There may be megabytes of consecutive headers, all in memory already.
    const pause = pauses()
    if (pause) await pause
    const block = await reader.take(blockBytes)
    if (block.every((byte) => byte === 0)) return
    checkSum(block)
    const flag = String.fromCharCode(block[156]!)
    if ('5xgLK'.includes(flag) && ++others > maxOthers) {
      throw new BadArchive('The archive has too many folders, or headers without a file.')
    }
    const ownSize = number(block, 124, 12)
    if ('xgLK'.includes(flag)) {
      if (ownSize > ('LK'.includes(flag) ? maxNameLength : maxHeaderLength)) throw nameTooLong()
      const bytes = await reader.take(ownSize)
      await reader.take(tarPadding(ownSize).length)
      if (flag === 'x') pax = paxOf(bytes, count)
      if (flag === 'g' && paxOf(bytes, count).size > 0) {
        throw new BadArchive('The archive sets one name or size for all of its files.')
      }
      if (flag === 'L') longName = decode(field(bytes, 0, bytes.length))
      if (flag === 'K') longTarget = decode(field(bytes, 0, bytes.length))
      continue
    }
    const isUstar = block.toString('latin1', 257, 263) === 'ustar\0'
    const prefix = isUstar ? field(block, 345, 155) : Buffer.alloc(0)
    const short = decode(
      prefix.length > 0 ? Buffer.concat([prefix, Buffer.from('/'), field(block, 0, 100)]) : field(block, 0, 100),
    )
    const name = pax.get('path') ?? longName ?? short
    const kind = kinds[flag]
    const shown = JSON.stringify(name.slice(0, 200))
    if (!kind)
      throw new BadArchive(`${shown} is ${otherKinds[flag] ?? 'of an unsupported type'}, which cannot be deployed.`)
    const sizeText = pax.get('size') ?? String(ownSize)
    const size = kind === 'file' ? Number(sizeText) : 0
    if (!/^\d+$/.test(sizeText) || !Number.isSafeInteger(size)) throw new BadArchive(`${shown} has no size.`)
    if (kind !== 'file' && ownSize !== 0) throw new BadArchive(`${shown} has content, but is not a file.`)
    const target = pax.get('linkpath') ?? longTarget ?? decode(field(block, 157, 100))
    yield { kind, path: plainName(name), mode: number(block, 100, 8), size, target }
    pax = new Map()
    ofFile = 0
    longName = null
    longTarget = null
  }
}
