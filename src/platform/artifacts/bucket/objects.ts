// The blobs of a bucket: how they are named, stored once, fetched once, and held to their hashes.
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
import { blobPath, type Encoding, isContentOf, isOfTheFile, isStreamOf, maxBufferedBytes } from '../blobs.ts'
import type { Folders } from '../local-inventory.ts'
import type { Bucket, Content, Found } from './client.ts'
import type { DiskCache } from './disk-cache.ts'

export type ObjectOptions = {
  bucket: Bucket
  cache: DiskCache
  folders: Folders
  log?: Logger | undefined
  /** Hears of an object that is missing or not what its name says. */
  onDamaged(name: string): Promise<void>
}

export const blobKey = (hash: string, encoding?: Encoding) => `files/${blobPath(hash, encoding)}`
export const nameOf = (hash: string, encoding?: Encoding) => (encoding ? `${hash}.${encoding}` : hash)

// Who asks for an object that is damaged does not make us fetch it each time.
const refusedMs = 5_000

export type Objects = ReturnType<typeof createObjects>

export function createObjects({ bucket, cache, folders, log, onDamaged }: ObjectOptions) {
  const fetching = new Map<string, Promise<Buffer | null>>()
  const refused = new LRUCache<string, MissingObject>({ max: 1_000, ttl: refusedMs })
  /** Files of the cache that this process has read and found whole, by their inode. */
  const verified = new LRUCache<string, number>({ max: 20_000 })
  const pathOf = (hash: string, encoding?: Encoding) => join(folders.files, blobPath(hash, encoding))

  /** Into the cache, once for all who ask at the same time. The content, if it fits into memory. */
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
    const before = refused.get(name)
    if (before) throw before
    // A second look, before an object is called damaged that came damaged over the network.
    for (let tries = 0; tries < 2; tries++) {
      const found = await bucket.get(blobKey(hash, encoding))
      if (!found) break
      const content = await (found.size > maxBufferedBytes
        ? stream(found, hash, encoding)
        : take(found, hash, encoding))
      if (content !== false) return content
    }
    const error = new MissingObject(`${name} is missing in the artifact store, or damaged.`)
    refused.set(name, error)
    await onDamaged(name)
    throw error
  }

  /** False if it is damaged. */
  async function take(found: Found & { body: Readable }, hash: string, encoding?: Encoding): Promise<Buffer | false> {
    const chunks: Buffer[] = []
    for await (const chunk of found.body) chunks.push(chunk)
    const content = Buffer.concat(chunks)
    if (!(await isContentOf(content, hash, encoding).catch(isNot))) return false
    const put = () => cache.put(pathOf(hash, encoding), content.length, (aside) => writeFile(aside, content))
    await put().catch(async (err) => {
      // An edge whose disk is full serves what it can hold in memory.
      log?.warn({ err }, 'an object of the artifact store could not be kept on the disk')
      if (isDiskFull(err)) await cache.makeRoom()
    })
    return content
  }

  async function stream(found: Found & { body: Readable }, hash: string, encoding?: Encoding): Promise<null | false> {
    // Only what fits into memory has compressed copies.
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
    // Beforehand: a body is read only once.
    await mkdir(dirname(pathOf(hash)), { recursive: true })
    try {
      await cache.put(pathOf(hash), found.size, async (aside) => {
        await pipeline(hashed, createWriteStream(aside, { flags: 'wx' }))
        if (digest.digest('hex') !== hash) throw damaged
      })
      verified.set(hash, (await stat(pathOf(hash))).ino)
    } catch (error) {
      if (error === damaged) return false
      if (!isDiskFull(error)) throw error
      // For the next one who asks.
      await cache.makeRoom()
      throw new StoreUnavailable('The disk of this machine has no room for a file of the artifact store.', {
        cause: error,
      })
    }
    return null
  }

  /** Whether a file of the cache is what it was when it was fetched; read once by each process. */
  async function isVerified(
    name: string,
    hash: string,
    encoding: Encoding | undefined,
    inode: number,
  ): Promise<boolean> {
    if (verified.get(name) === inode) return true
    const source = createReadStream(pathOf(hash, encoding), { highWaterMark: 1 << 20 })
    const isWhole = await isStreamOf(source, hash, encoding).catch(isNot)
    if (isWhole) verified.set(name, inode)
    return isWhole
  }

  return {
    pathOf,
    /** The verified content; rejects with MissingObject if the bucket does not have it. */
    async load(hash: string, encoding?: Encoding): Promise<Buffer> {
      const path = pathOf(hash, encoding)
      const content = await readFile(path).catch(() => null)
      if (content && (await isContentOf(content, hash, encoding).catch(isNot))) {
        cache.used(path)
        return content
      }
      return (await fetch(hash, encoding)) ?? (await readFile(path))
    },
    /** As a file of this machine that was verified by this process. */
    async open(hash: string, encoding?: Encoding) {
      const path = pathOf(hash, encoding)
      for (let tries = 0; ; tries++) {
        const file = await open(path).catch(absent)
        if (file && (await isVerified(nameOf(hash, encoding), hash, encoding, (await file.stat()).ino))) {
          cache.used(path)
          return file
        }
        await file?.close()
        // Removed by the cache as soon as it was there: it is far too small, or the disk is full.
        if (tries === 3) throw new StoreUnavailable('The cache of artifacts has no room for a file.')
        if (file) await rm(path, { force: true })
        await fetch(hash, encoding)
      }
    },
    drop: (hash: string, encoding?: Encoding) => rm(pathOf(hash, encoding), { force: true }),
    /** Whether the bucket has it whole; asks for all of it. */
    async isWhole(hash: string, encoding?: Encoding): Promise<boolean> {
      const found = await bucket.get(blobKey(hash, encoding))
      if (!found) return false
      return isStreamOf(found.body, hash, encoding).catch(isNot)
    },
    /** The content of the bucket, if it is whole; null if not. */
    async ask(hash: string, encoding?: Encoding): Promise<Buffer | null> {
      const found = await bucket.get(blobKey(hash, encoding))
      if (!found || found.size > maxBufferedBytes) {
        found?.body.destroy()
        return null
      }
      const chunks: Buffer[] = []
      for await (const chunk of found.body) chunks.push(chunk)
      const content = Buffer.concat(chunks)
      return (await isContentOf(content, hash, encoding).catch(isNot)) ? content : null
    },
    async put(hash: string, encoding: Encoding | undefined, content: Content): Promise<void> {
      await bucket.put(blobKey(hash, encoding), content)
      refused.delete(nameOf(hash, encoding))
    },
    /** Writes to a file of its own that is removed afterwards; the last argument is what was written. */
    async aside<T>(write: (path: string) => Promise<T>, use: (path: string, written: T) => Promise<void>): Promise<T> {
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

/** For errors of content that is not what it should be: false. */
function isNot(error: unknown): false {
  if (error instanceof StoreUnavailable || !isOfTheFile(error)) throw error
  return false
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code !== 'ENOENT') throw error
  return null
}
