// Files named by the hash of their content, with compressed copies: written once, verified before each reuse.
import { createHash, hash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import {
  brotliCompress,
  brotliDecompress,
  constants,
  createBrotliDecompress,
  createGunzip,
  gunzip,
  gzip,
} from 'node:zlib'
import { syncPath } from '../files/durable.ts'
import { createKnownFiles, type KnownFiles } from './known-files.ts'

export type StoredFile = {
  /** SHA-256 of the content in hexadecimal: its name in the store, and its ETag. */
  hash: string
  size: number
  /** Sizes of the compressed copies, if compression helps. */
  br?: number
  gzip?: number
}

export type Encoding = 'br' | 'gzip'

/** The name of a blob: its hash, and the encoding if it is a compressed copy. */
export const blobName = /^([0-9a-f]{64})(?:\.(br|gzip))?$/

export type Blobs = {
  known: KnownFiles
  pathOf(hash: string, encoding?: Encoding): string
  /** Stores a file unless an undamaged copy exists. The extension of its name decides whether it is compressed. */
  store(name: string, size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile>
  /** Finds content that is already stored, without reading it; null unless this process knows that it is intact. */
  findStored(name: string, hash: string, size: number): Promise<StoredFile | null>
  /** Whether the file exists and its content matches its name. */
  isWhole(hash: string, encoding?: Encoding): Promise<boolean>
  /** The content of a file that fits into memory; null if it is missing or damaged. */
  load(hash: string, encoding?: Encoding): Promise<Buffer | null>
  /** Restores a missing or damaged file from its other copies. Returns whether it is intact now. */
  repair(hash: string, encoding?: Encoding): Promise<boolean>
}

const compressible = new Set(
  '.html .htm .css .js .mjs .cjs .json .map .svg .txt .xml .md .csv .ico .wasm .webmanifest .ttf .otf .eot'.split(' '),
)
// A smaller file fits into one packet anyway. Compressing a larger one takes too much time and memory.
const minCompressedBytes = 860
/** Larger files are streamed to disk instead of buffered, and have no compressed copies. */
export const maxBufferedBytes = 10 << 20
const smallBytes = 256 << 10

const compressors = { br: promisify(brotliCompress), gzip: promisify(gzip) }
const decompressors = { br: promisify(brotliDecompress), gzip: promisify(gunzip) }
const decoders = { br: createBrotliDecompress, gzip: createGunzip }

/** The path of a blob within the store. */
export function blobPath(name: string, encoding?: Encoding): string {
  return `${name.slice(0, 2)}/${encoding ? `${name}.${encoding}` : name}`
}

export function isCompressible(fileName: string, bytes: number): boolean {
  return compressible.has(extname(fileName).toLowerCase()) && bytes >= minCompressedBytes
}

/** The compressed copies of a file; null if they save too little. */
export async function compressedCopies(content: Buffer): Promise<Record<Encoding, Buffer> | null> {
  const { length } = content
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: length <= smallBytes ? 6 : 5,
    [constants.BROTLI_PARAM_SIZE_HINT]: length,
    // The default window is 4 MB. Setting it up takes longer than compressing a page.
    [constants.BROTLI_PARAM_LGWIN]: Math.min(22, Math.max(10, Math.ceil(Math.log2(length)))),
  }
  const [br, zipped] = await Promise.all([
    compressors.br(content, { params, chunkSize: Math.max(length, 1024) }),
    compressors.gzip(content),
  ])
  return br.length >= length * 0.95 ? null : { br, gzip: zipped }
}

export function decompress(content: Buffer, encoding: Encoding): Promise<Buffer> {
  return decompressors[encoding](content, { maxOutputLength: maxBufferedBytes + 1 })
}

/** Whether the content matches the name. Rejects if a compressed copy can't be decompressed. */
export async function isContentOf(content: Buffer, name: string, encoding?: Encoding): Promise<boolean> {
  return hash('sha256', encoding ? await decompress(content, encoding) : content) === name
}

export async function isStreamOf(source: Readable, name: string, encoding?: Encoding): Promise<boolean> {
  const digest = createHash('sha256')
  if (encoding) await pipeline(source, decoders[encoding](), digest)
  else await pipeline(source, digest)
  return digest.read().toString('hex') === name
}

/** `onDamaged` is called for a damaged file that is about to be rewritten. */
export function createBlobs(directory: string, onDamaged: (name: string) => void): Blobs {
  const pathOf = (name: string, encoding?: Encoding) => join(directory, blobPath(name, encoding))
  const known = createKnownFiles()

  async function load(name: string, encoding?: Encoding): Promise<Buffer | null> {
    try {
      const content = await readFile(pathOf(name, encoding))
      return (await isContentOf(content, name, encoding)) ? content : null
    } catch (error) {
      if (isFileError(error)) return null
      throw error
    }
  }

  async function isWhole(name: string, encoding?: Encoding): Promise<boolean> {
    try {
      const source = createReadStream(pathOf(name, encoding), { highWaterMark: 1 << 20 })
      return await isStreamOf(source, name, encoding)
    } catch (error) {
      if (isFileError(error)) return false
      throw error
    }
  }

  /**
   * Whether a stored file can be reused. It is first marked as used, so that the sweep keeps it, and then read, which fails
   * if the sweep is just removing it. A file that this process has read before isn't read again.
   */
  async function reuse(name: string, encoding?: Encoding): Promise<boolean> {
    const path = pathOf(name, encoding)
    const used = await known.use(path)
    if (used !== false) return used !== null
    const whole = (await load(name, encoding)) !== null
    if (whole) await known.noteWhole(path)
    else onDamaged(encoding ? `${name}.${encoding}` : name)
    return whole
  }

  async function writeCopies(name: string, content: Buffer): Promise<Pick<StoredFile, 'br' | 'gzip'>> {
    const copies = await compressedCopies(content)
    if (!copies) return {}
    await Promise.all([
      writeAtomically(pathOf(name, 'br'), (temporaryPath) => writeFile(temporaryPath, copies.br)),
      writeAtomically(pathOf(name, 'gzip'), (temporaryPath) => writeFile(temporaryPath, copies.gzip)),
    ])
    await Promise.all([known.noteWritten(pathOf(name, 'br')), known.noteWritten(pathOf(name, 'gzip'))])
    return { br: copies.br.length, gzip: copies.gzip.length }
  }

  async function findStored(fileName: string, name: string, size: number): Promise<StoredFile | null> {
    const sizeOf = async (encoding?: Encoding) => (await known.use(pathOf(name, encoding))) || null
    if ((await sizeOf()) !== size) return null
    if (!isCompressible(fileName, size)) return { hash: name, size }
    const [br, gzip] = await Promise.all([sizeOf('br'), sizeOf('gzip')])
    return br && gzip ? { hash: name, size, br, gzip } : null
  }

  async function compress(fileName: string, name: string, content: Buffer): Promise<Pick<StoredFile, 'br' | 'gzip'>> {
    if (!isCompressible(fileName, content.length)) return {}
    const whole = await Promise.all([reuse(name, 'br'), reuse(name, 'gzip')])
    if (!whole[0] || !whole[1]) return writeCopies(name, content)
    const [br, zipped] = await Promise.all([stat(pathOf(name, 'br')), stat(pathOf(name, 'gzip'))])
    return { br: br.size, gzip: zipped.size }
  }

  /** Buffers the content once, for the hash, the file and its compressed copies. */
  async function storeSmall(fileName: string, content: Buffer): Promise<StoredFile> {
    const name = hash('sha256', content)
    if (!(await reuse(name))) await writeAtomically(pathOf(name), (temporaryPath) => writeFile(temporaryPath, content))
    return { hash: name, size: content.length, ...(await compress(fileName, name, content)) }
  }

  /** The hash is only known once everything is written, so an existing file is replaced. */
  async function storeLarge(size: number, content: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<StoredFile> {
    const digest = createHash('sha256')
    const temporaryPath = join(directory, `${randomBytes(12).toString('hex')}.new`)
    async function* hashed() {
      for await (const chunk of content) {
        digest.update(chunk)
        yield chunk
      }
    }
    await mkdir(dirname(temporaryPath), { recursive: true })
    try {
      await pipeline(hashed, createWriteStream(temporaryPath, { flags: 'wx' }))
      const name = digest.digest('hex')
      const target = pathOf(name)
      await mkdir(dirname(target), { recursive: true })
      await rename(temporaryPath, target)
      return { hash: name, size }
    } finally {
      await rm(temporaryPath, { force: true })
    }
  }

  async function repair(name: string, encoding?: Encoding): Promise<boolean> {
    if (await isWhole(name, encoding)) return true
    if (encoding) {
      const content = (await repair(name)) ? await load(name) : null
      if (content) await writeCopies(name, content)
      return content !== null && isWhole(name, encoding)
    }
    for (const copy of ['br', 'gzip'] as const) {
      const content = await load(name, copy)
      if (!content) continue
      const plain = await decompress(content, copy)
      await writeAtomically(pathOf(name), async (temporaryPath) => {
        await writeFile(temporaryPath, plain)
        await syncPath(temporaryPath)
      })
      return true
    }
    return false
  }

  return {
    pathOf,
    known,
    async store(name, size, content) {
      if (size > maxBufferedBytes) return storeLarge(size, content)
      const chunks: Buffer[] = []
      for await (const chunk of content) chunks.push(chunk)
      return storeSmall(name, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    },
    findStored,
    isWhole,
    load,
    repair,
  }
}

/** Writes to a temporary file and renames it, so that readers and crashes never see a partial file. */
export async function writeAtomically(
  path: string,
  write: (temporaryPath: string) => Promise<unknown>,
  temporaryPath = `${path}.${randomBytes(6).toString('hex')}.new`,
): Promise<void> {
  try {
    await write(temporaryPath).catch(async (error) => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      await mkdir(dirname(temporaryPath), { recursive: true })
      await write(temporaryPath)
    })
    await rename(temporaryPath, path)
  } catch (error) {
    await rm(temporaryPath, { force: true })
    throw error
  }
}

/** Whether a file couldn't be read because it is missing or damaged, rather than because the machine lacks resources. */
export function isFileError(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'EIO' || code === 'EISDIR' || /^(Z_|ERR_)/.test(code)
}
