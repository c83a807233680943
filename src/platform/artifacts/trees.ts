// Reads the trees of server projects from a directory, packs them into an archive, and writes them to a new directory. The
// author of a tree is not trusted: links are never followed, and nothing is written outside the directory.
import { createHash } from 'node:crypto'
import { constants, createWriteStream } from 'node:fs'
import { access, type FileHandle, mkdir, open, readdir, readlink, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { ByteReader } from '../files/byte-reader.ts'
import { BadArchive, readTar, type TarEntry, tarEnd, tarHeader, tarPadding } from '../files/tar.ts'

/** The content must be read before the next entry. */
export type TreeEntry =
  | Exclude<TarEntry, { kind: 'file' }>
  | (Extract<TarEntry, { kind: 'file' }> & { content: AsyncIterable<Buffer> | Iterable<Buffer> })

const chunkBytes = 256 << 10
const largeBytes = 4 << 20
const writesAtOnce = 16
// More than a build may produce.
const limits = { entries: 400_000, bytes: 5 * 1024 ** 3 }

/** Yields a directory before its content. */
export async function* readTree(directory: string, path: string): AsyncGenerator<TreeEntry> {
  await access(directory)
  yield { kind: 'directory', path, mode: 0o755 }
  yield* readInside(directory, `${path}/`)
}

async function* readInside(directory: string, prefix: string): AsyncGenerator<TreeEntry> {
  for (const child of await readdir(directory, { withFileTypes: true })) {
    const [from, path] = [join(directory, child.name), prefix + child.name]
    if (child.isDirectory()) {
      yield { kind: 'directory', path, mode: 0o755 }
      yield* readInside(from, `${path}/`)
    } else if (child.isSymbolicLink()) yield { kind: 'link', path, target: await readlink(from) }
    else if (child.isFile()) {
      const file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW)
      yield* fileEntry(file, path, (await file.stat()).mode & 0o100 ? 0o755 : 0o644)
    }
  }
}

/** Closes the file after its content was read. */
export async function* fileEntry(file: FileHandle, path: string, mode: number): AsyncGenerator<TreeEntry> {
  try {
    const { size } = await file.stat()
    yield { kind: 'file', path, mode, size, content: chunksOf(file, size) }
  } finally {
    await file.close()
  }
}

/** Reads a file from the start, up to the size that it had when it was opened. */
export async function* chunksOf(file: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    // A new buffer each time: earlier chunks may still be waiting to be written.
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, size - at))
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

/** The header and content of an entry, without padding. */
export async function* entryBytes(entry: TreeEntry): AsyncGenerator<Buffer> {
  yield tarHeader(entry)
  if (entry.kind !== 'file') return
  let written = 0
  for await (const chunk of entry.content) {
    written += chunk.length
    yield chunk
  }
  if (written !== entry.size) throw new Error(`${entry.path} changed while it was read.`)
}

/** Joins small chunks, because the compressor costs the same for each chunk, however small. */
export async function* inBlocks(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = []
  let length = 0
  for await (const piece of pieces) {
    held.push(piece)
    length += piece.length
    if (length < chunkBytes) continue
    yield Buffer.concat(held, length)
    held = []
    length = 0
  }
  yield Buffer.concat(held, length)
}

/** Writes the archive of a tree to `file`. */
export async function packTree(directory: string, file: string): Promise<{ hash: string; size: number }> {
  const digest = createHash('sha256')
  let size = 0
  async function* archive(): AsyncGenerator<Buffer> {
    for await (const entry of readInside(directory, '')) {
      yield* entryBytes(entry)
      if (entry.kind === 'file') yield tarPadding(entry.size)
    }
    yield tarEnd
  }
  async function* counted(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of pieces) {
      digest.update(piece)
      size += piece.length
      yield piece
    }
  }
  // Level 1 halves a node_modules folder in a quarter of the time that level 9 takes.
  const gzip = createGzip({ level: 1, chunkSize: chunkBytes })
  await pipeline(inBlocks(archive()), gzip, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 }))
  return { hash: digest.digest('hex'), size }
}

/** Creates `directory` and writes the tree of an archive into it. Closes the archive. */
export async function unpackTree(archive: FileHandle, directory: string): Promise<void> {
  const source = archive.createReadStream({ highWaterMark: chunkBytes })
  const gunzip = createGunzip({ chunkSize: chunkBytes })
  source.on('error', (error) => gunzip.destroy(error))
  const reader = new ByteReader(source.pipe(gunzip))
  let write: TreeWriter | null = null
  let [entries, bytes] = [0, 0]
  try {
    write = await createTreeWriter(directory)
    for await (const entry of readTar(reader)) {
      if (entry.kind === 'file') bytes += entry.size
      if (++entries > limits.entries || bytes > limits.bytes) throw new BadArchive('The archive is too large.')
      if (entry.kind !== 'file') await write.add(entry)
      else {
        await write.add({ ...entry, content: reader.stream(entry.size) })
        await reader.take(tarPadding(entry.size).length)
      }
    }
    await write.end()
  } finally {
    source.destroy()
    gunzip.destroy()
    await write?.settled()
  }
}

export type TreeWriter = {
  /** Rejects with BadArchive for a path that already exists or whose directory isn't in this tree. */
  add(entry: TreeEntry): Promise<void>
  /** Resolves when everything is written; rejects if something couldn't be. */
  end(): Promise<void>
  /** Resolves when no write is in progress. */
  settled(): Promise<void>
}

/** Only writes into directories that it created itself, so never through a link. */
export async function createTreeWriter(directory: string): Promise<TreeWriter> {
  const made = new Set([directory])
  const running = new Set<Promise<void>>()
  let failure: unknown
  await mkdir(dirname(directory), { recursive: true })
  await mkdir(directory, { mode: 0o755 })

  async function write(entry: TreeEntry, path: string): Promise<void> {
    if (entry.kind === 'link') return symlink(entry.target, path)
    if (entry.kind === 'directory') {
      await mkdir(path, { mode: 0o755 })
      return void made.add(path)
    }
    const options = { flag: 'wx', mode: entry.mode & 0o100 ? 0o755 : 0o644 }
    if (entry.size > largeBytes) return writeFile(path, entry.content, options)
    const chunks: Buffer[] = []
    for await (const chunk of entry.content) chunks.push(chunk)
    const writing: Promise<void> = writeFile(path, Buffer.concat(chunks), options)
      .catch((error) => {
        failure ??= refused(error, entry)
      })
      .finally(() => running.delete(writing))
    running.add(writing)
    if (running.size >= writesAtOnce) await Promise.race(running)
  }

  return {
    async add(entry) {
      const path = join(directory, entry.path)
      if (!made.has(dirname(path))) throw new BadArchive(`${entry.path} is in no directory of its tree.`)
      await write(entry, path).catch((error) => {
        throw refused(error, entry)
      })
      if (failure) throw failure
    },
    async end() {
      await Promise.all(running)
      if (failure) throw failure
    },
    settled: async () => void (await Promise.all(running)),
  }
}

function refused(error: NodeJS.ErrnoException, { path }: TreeEntry): unknown {
  return error.code === 'EEXIST' ? new BadArchive(`${path} is there twice.`) : error
}
