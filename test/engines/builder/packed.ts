// Streams as the packer writes them, made by hand, and ways to read them.
import { Readable } from 'node:stream'
import { BuildFailure } from '../../../src/engines/builder/explain/failure.ts'
import { type Entry, type Limits, type Packed, readPacked } from '../../../src/engines/builder/tree/entries.ts'
import { entryHeaderBytes, entryKinds } from '../../../src/engines/builder/tree/packer.ts'
import { TruncatedStream } from '../../../src/platform/files/byte-reader.ts'

type Bytes = string | Buffer

/** One entry; `announced` sizes may lie. */
export function packed(
  kind: number,
  name: Bytes,
  content: Bytes = '',
  announced: { name?: number; size?: bigint } = {},
) {
  const [nameBytes, contentBytes] = [Buffer.from(name), Buffer.from(content)]
  const header = Buffer.alloc(entryHeaderBytes)
  header.writeUInt8(kind, 0)
  header.writeUInt32BE(announced.name ?? nameBytes.length, 1)
  header.writeBigUInt64BE(announced.size ?? BigInt(contentBytes.length), 5)
  return Buffer.concat([header, nameBytes, contentBytes])
}

export const packedOutput = packed(entryKinds.output, 'dist', '/build/dist')
export const packedEnd = packed(entryKinds.end, '')
export const file = (name: Bytes, content: Bytes = '') => packed(entryKinds.file, name, content)
export const folder = (name: Bytes) => packed(entryKinds.directory, name)
export const link = (name: Bytes, target: Bytes) => packed(entryKinds.link, name, target)

/** A whole stream of these entries. */
export const whole = (...entries: Buffer[]) => Buffer.concat([packedOutput, ...entries, packedEnd])

export const limits: Limits = { entries: 100, bytes: 1 << 20, pathBytes: 1024, depth: 64 }

/** An entry with its content read. */
export type Seen = { kind: Entry['kind']; path: string; target?: string; executable?: boolean; content?: string }

export async function see(entry: Entry): Promise<Seen> {
  if (entry.kind === 'directory') return { kind: entry.kind, path: entry.path }
  if (entry.kind === 'link') return { kind: entry.kind, path: entry.path, target: entry.target }
  const { kind, path, executable } = entry
  return { kind, path, executable, content: (await entry.content.whole()).toString('latin1') }
}

/** The chunks, one after another; never an empty one. */
export const streamOf = (...chunks: Buffer[]) => Readable.from(chunks.filter(({ length }) => length > 0))

export async function readAll(stream: Readable, most = limits): Promise<{ output: Packed['output']; entries: Seen[] }> {
  const { output, entries } = await readPacked(stream, most)
  const seen: Seen[] = []
  for await (const entry of entries()) seen.push(await see(entry))
  return { output, entries: seen }
}

/** How reading ends: `null` if all is well, else one of the two ends that its callers expect; all else is thrown. */
export async function endOf(bytes: Buffer, most = limits): Promise<BuildFailure | TruncatedStream | null> {
  try {
    await readAll(streamOf(bytes), most)
    return null
  } catch (error) {
    if (error instanceof BuildFailure || error instanceof TruncatedStream) return error
    throw error
  }
}

/** Entries in place of a stream, for those who take entries. */
export async function* entriesOf(...entries: Buffer[]): AsyncGenerator<Entry> {
  const most = { entries: 1e6, bytes: 2 ** 40, pathBytes: 3000, depth: 200 }
  yield* (await readPacked(streamOf(whole(...entries)), most)).entries()
}
