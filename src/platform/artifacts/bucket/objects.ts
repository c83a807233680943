// The blobs of a bucket: names them, stores and fetches each once, and verifies their hashes.
import { createHash, hash as hashOf, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { isDiskFull } from '../../files/disk.ts'
import { MissingObject, StoreUnavailable } from '../artifacts.ts'
import { blobPath, type Encoding, isContentOf, isFileError, isStreamOf, maxBufferedBytes } from '../blobs.ts'
import type { Folders } from '../local-inventory.ts'
import type { Bucket, Content, ObjectInfo } from './client.ts'
import type { DiskCache } from './disk-cache.ts'

export type ObjectOptions = {
  bucket: Bucket
  cache: DiskCache
  folders: Folders
  log?: Logger | undefined
  /** Called for an object that is missing or doesn't match its name. */
  onDamaged(name: string): Promise<void>
}

export const blobKey = (hash: string, encoding?: Encoding) => `files/${blobPath(hash, encoding)}`
export const nameOf = (hash: string, encoding?: Encoding) => (encoding ? `${hash}.${encoding}` : hash)

// So that repeated requests for a damaged object don't fetch it each time.
const missingMs = 5_000

export type Objects = ReturnType<typeof createObjects>

export function createObjects({ bucket, cache, folders, log, onDamaged }: ObjectOptions) {
  const fetching = new Map<string, Promise<Buffer | null>>()
  const recentlyMissing = new LRUCache<string, MissingObject>({ max: 1_000, ttl: missingMs })
  /** Inodes of cached files that this process has read and found intact. */
  const verified = new LRUCache<string, number>({ max: 20_000 })
  const pathOf = (hash: string, encoding?: Encoding) => join(folders.files, blobPath(hash, encoding))

  /** Fetches an object into the cache, once for all concurrent callers. Returns the content if it fits into memory. */
  function fetch(hash: string, encoding?: Encoding): Promise<Buffer | null> {
    const name = nameOf(hash, encoding)
    const running = fetching.get(name)
    if (running) return running
    const found = fetchOnce(hash, encoding).finally(() => fetching.delete(name))
    fetching.set(name, found)
    return found
  }

  async function fetchOnce(hash: string, encoding?: Encoding): Promise<Buffer | null> {
    const name = nameOf(hash, encoding)
    const before = recentlyMissing.get(name)
    if (before) throw before
    // Tries twice, because the network may have damaged the object.
    for (let tries = 0; tries < 2; tries++) {
      const found = await bucket.get(blobKey(hash, encoding))
      if (!found) break
      const content = await (found.size > maxBufferedBytes
        ? stream(found, hash, encoding)
        : buffer(found, hash, encoding))
      if (content !== false) return content
    }
    const error = new MissingObject(`${name} is missing in the artifact store, or damaged.`)
    recentlyMissing.set(name, error)
    await onDamaged(name)
    throw error
  }

  /** False if it is damaged. */
  async function buffer(
    found: ObjectInfo & { body: Readable },
    hash: string,
    encoding?: Encoding,
  ): Promise<Buffer | false> {
    const chunks: Buffer[] = []
    for await (const chunk of found.body) chunks.push(chunk)
    const content = Buffer.concat(chunks)
    if (!(await isContentOf(content, hash, encoding).catch(falseIfInvalid))) return false
    const put = () =>
      cache.put(pathOf(hash, encoding), content.length, (temporaryPath) => writeFile(temporaryPath, content))
    await put().catch(async (err) => {
      // An edge whose disk is full serves what fits into memory.
      log?.warn({ err }, 'an object of the artifact store could not be kept on the disk')
      if (isDiskFull(err)) await cache.makeRoom()
    })
    return content
  }

  async function stream(
    found: ObjectInfo & { body: Readable },
    hash: string,
    encoding?: Encoding,
  ): Promise<null | false> {
    // Only objects that fit into memory have compressed copies.
    if (encoding) {
      found.body.destroy()
      return false
    }
    const digest = createHash('sha256')
    async function* hashed() {
      for await (const chunk of found.body) {
        digest.update(chunk)
        yield chunk
      }
    }
    const damaged = Symbol()
    // Done first, because a body can only be read once.
    await mkdir(dirname(pathOf(hash)), { recursive: true })
    try {
      await cache.put(pathOf(hash), found.size, async (temporaryPath) => {
        await pipeline(hashed, createWriteStream(temporaryPath, { flags: 'wx' }))
        if (digest.digest('hex') !== hash) throw damaged
      })
      verified.set(hash, (await stat(pathOf(hash))).ino)
    } catch (error) {
      if (error === damaged) return false
      if (!isDiskFull(error)) throw error
      // Makes room for the next caller.
      await cache.makeRoom()
      throw new StoreUnavailable('The disk of this machine has no room for a file of the artifact store.', {
        cause: error,
      })
    }
    return null
  }

  /** Whether a cached file is still intact; each process reads it once. */
  async function isVerified(
    name: string,
    hash: string,
    encoding: Encoding | undefined,
    inode: number,
  ): Promise<boolean> {
    if (verified.get(name) === inode) return true
    const source = createReadStream(pathOf(hash, encoding), { highWaterMark: 1 << 20 })
    const isWhole = await isStreamOf(source, hash, encoding).catch(falseIfInvalid)
    if (isWhole) verified.set(name, inode)
    return isWhole
  }

  return {
    pathOf,
    /** The verified content; rejects with MissingObject if the bucket doesn't have it. */
    async load(hash: string, encoding?: Encoding): Promise<Buffer> {
      const path = pathOf(hash, encoding)
      const content = await readFile(path).catch(() => null)
      if (content && (await isContentOf(content, hash, encoding).catch(falseIfInvalid))) {
        cache.used(path)
        return content
      }
      return (await fetch(hash, encoding)) ?? (await readFile(path))
    },
    /** Opens it as a local file that this process has verified. */
    async open(hash: string, encoding?: Encoding) {
      const path = pathOf(hash, encoding)
      for (let tries = 0; ; tries++) {
        const file = await open(path).catch(ignoreMissing)
        if (file && (await isVerified(nameOf(hash, encoding), hash, encoding, (await file.stat()).ino))) {
          cache.used(path)
          return file
        }
        await file?.close()
        // The cache removed it at once: the cache is far too small, or the disk is full.
        if (tries === 3) throw new StoreUnavailable('The cache of artifacts has no room for a file.')
        if (file) await rm(path, { force: true })
        await fetch(hash, encoding)
      }
    },
    drop: (hash: string, encoding?: Encoding) => rm(pathOf(hash, encoding), { force: true }),
    /** Whether the bucket has an intact copy; reads all of it. */
    async isWhole(hash: string, encoding?: Encoding): Promise<boolean> {
      const found = await bucket.get(blobKey(hash, encoding))
      if (!found) return false
      return isStreamOf(found.body, hash, encoding).catch(falseIfInvalid)
    },
    /** The content in the bucket; null if it isn't intact. */
    async fetchIntact(hash: string, encoding?: Encoding): Promise<Buffer | null> {
      const found = await bucket.get(blobKey(hash, encoding))
      if (!found || found.size > maxBufferedBytes) {
        found?.body.destroy()
        return null
      }
      const chunks: Buffer[] = []
      for await (const chunk of found.body) chunks.push(chunk)
      const content = Buffer.concat(chunks)
      return (await isContentOf(content, hash, encoding).catch(falseIfInvalid)) ? content : null
    },
    async put(hash: string, encoding: Encoding | undefined, content: Content): Promise<void> {
      await bucket.put(blobKey(hash, encoding), content)
      recentlyMissing.delete(nameOf(hash, encoding))
    },
    /** Writes a temporary file, passes it and the result of writing to `use`, and removes it. */
    async withTemporaryFile<T>(
      write: (path: string) => Promise<T>,
      use: (path: string, written: T) => Promise<void>,
    ): Promise<T> {
      const path = join(folders.files, `${randomBytes(12).toString('hex')}.new`)
      await mkdir(dirname(path), { recursive: true })
      try {
        const written = await write(path)
        await use(path, written)
        return written
      } finally {
        await rm(path, { force: true })
      }
    },
  }
}

export function contentOf(bytes: Buffer): Content {
  return { sha256: hashOf('sha256', bytes), size: bytes.length, body: bytes }
}

/** Returns false for errors caused by invalid content; throws others. */
function falseIfInvalid(error: unknown): false {
  if (error instanceof StoreUnavailable || !isFileError(error)) throw error
  return false
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code !== 'ENOENT') throw error
  return null
}
