// Parses the packer's output as hostile input, with limits on count, size, depth and the length of names.
import type { Readable } from 'node:stream'
import { ByteReader, TruncatedStream } from '../../../platform/files/byte-reader.ts'
import { BuildFailure } from '../explain/failure.ts'
import { entryHeaderBytes, entryKinds } from './packer.ts'

export type Limits = { entries: number; bytes: number; pathBytes: number; depth: number }

export type Entry =
  | { kind: 'directory'; path: string }
  | { kind: 'link'; path: string; target: string }
  /** The content must be read before the next entry. */
  | { kind: 'file'; path: string; executable: boolean; size: number; content: FileContent }

/** With `sha256`, the store has the content, and it may be read at any time or not at all. */
export type FileContent = { whole(): Promise<Buffer>; stream(): AsyncIterable<Buffer>; sha256?: string }

export type Packed = {
  /** The matching candidate and its path in the sandbox, or the names in the root directory. */
  output: { path: string; inside: string } | { missing: string[] }
  entries(): AsyncGenerator<Entry>
}

const maxTextLength = 10_000
const maxNameLength = 255
// Linux's PATH_MAX without the NUL.
export const maxTargetLength = 4095
const utf8 = new TextDecoder('utf-8', { fatal: true })

export async function readPacked(stream: Readable, limits: Limits): Promise<Packed> {
  const reader = new ByteReader(stream)
  const first = await readHeader(reader)
  const text = async () => (await reader.take(checkSize(first.size, maxTextLength))).toString()
  if (first.kind === entryKinds.missing) {
    return { output: { missing: (await text()).split('\0').filter(Boolean) }, entries: async function* () {} }
  }
  if (first.kind === entryKinds.refused) throw refusal(readable(first.name), await text())
  if (first.kind !== entryKinds.output) throw new TruncatedStream('The packer began with something else.')
  const output = { path: first.name.toString(), inside: await text() }
  return { output, entries: () => readEntries(reader, limits) }
}

async function* readEntries(reader: ByteReader, limits: Limits): AsyncGenerator<Entry> {
  let entries = 0
  let bytes = 0
  for (;;) {
    const { kind, name, size } = await readHeader(reader)
    if (kind === entryKinds.end) return
    if (++entries > limits.entries) throw tooLarge(`more than ${limits.entries} files`)
    if (kind === entryKinds.refused) {
      throw refusal(readable(name), (await reader.take(checkSize(size, maxTextLength))).toString())
    }
    const path = checkPath(name, limits)
    if (kind === entryKinds.directory) yield { kind: 'directory', path }
    else if (kind === entryKinds.link) {
      yield { kind: 'link', path, target: checkTarget(path, await reader.take(checkSize(size, maxTargetLength))) }
    } else if (kind === entryKinds.file || kind === entryKinds.executable) {
      bytes += size
      if (bytes > limits.bytes) throw tooLarge(`larger than ${Math.floor(limits.bytes / 1024 ** 2)} MiB`)
      let isConsumed = false
      const consume = <T>(content: T): T => {
        isConsumed = true
        return content
      }
      const content: FileContent = {
        whole: () => consume(reader.take(size)),
        stream: () => consume(reader.stream(size)),
      }
      yield { kind: 'file', path, executable: kind === entryKinds.executable, size, content }
      if (!isConsumed) for await (const _ of reader.stream(size));
    } else throw new TruncatedStream('The packer wrote an unknown kind of entry.')
  }
}

async function readHeader(reader: ByteReader): Promise<{ kind: number; name: Buffer; size: number }> {
  const header = await reader.take(entryHeaderBytes)
  const name = await reader.take(checkSize(header.readUInt32BE(1), 1 << 16))
  return { kind: header.readUInt8(0), name, size: Number(header.readBigUInt64BE(5)) }
}

function checkSize(bytes: number, most: number): number {
  if (bytes > most) throw new TruncatedStream('The packer announced more than it may.')
  return bytes
}

export const tooLarge = (how: string) => new BuildFailure('output_too_large', `The output is ${how}.`)

export function refusal(path: string, why: string): BuildFailure {
  return new BuildFailure('output_unsafe', `${path} ${printable(why)}, so it cannot be published.`)
}

function decode(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

/** For messages: shows bytes that aren't text as numbers. */
function readable(name: Buffer): string {
  return printable(decode(name) ?? name.toString('latin1').replace(/[\x80-\xff]/g, byteOf))
}

/** Control characters would garble log lines, and the database can't store NUL. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return text.replace(/[\x00-\x1f\x7f]/g, byteOf).slice(0, 300)
}

const byteOf = (character: string) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`

/** Returns a path of plain names below the output directory. */
export function checkPath(name: Buffer, { pathBytes, depth }: Pick<Limits, 'pathBytes' | 'depth'>): string {
  const shown = readable(name)
  if (name.length > pathBytes) throw refusal(`${shown.slice(0, 100)}…`, `has a path longer than ${pathBytes} bytes`)
  const path = decode(name)
  if (path === null) throw refusal(shown, 'has a name that is not UTF-8')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\x00-\x1f\x7f]/.test(path)) throw refusal(shown, 'has a control character in its name')
  const parts = path.split('/')
  if (parts.length > depth) throw refusal(`${shown.slice(0, 100)}…`, `is more than ${depth} folders deep`)
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..') throw refusal(shown, 'has an empty, `.` or `..` segment')
    if (Buffer.byteLength(part) > maxNameLength) throw refusal(shown, `has a name longer than ${maxNameLength} bytes`)
  }
  return path
}

/** The target of a link. Unlike on a file system, it may be empty, too long or contain NUL. */
export function checkTarget(path: string, bytes: Buffer): string {
  const target = decode(bytes)
  if (target === null) throw refusal(path, 'is a link whose target is not UTF-8')
  if (target === '' || target.includes('\0') || bytes.length > maxTargetLength) {
    throw refusal(path, 'is a link whose target is not a path')
  }
  return target
}
