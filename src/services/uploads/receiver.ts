// Receives uploads: writes them to temporary files, checks their hashes, then stores them in the artifact store.
import { createHash, hash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { type Artifacts, StoreUnavailable } from '../../platform/artifacts/artifacts.ts'
import { Fault } from '../../platform/errors.ts'
import { isDiskFull } from '../../platform/files/disk.ts'
import { createDiskSpace, type DiskSpace, diskSpaceOf, type Reservation, unavailable } from './disk-space.ts'
import { waitMs } from './uploads.ts'

/** A part of content: the bytes from `from` up to, but excluding, `end`. `size` is the size of the whole content. */
export type Piece = { accountId: string; sha256: string; from: number; end: number; size: number }

export type Receiver = {
  /** Receives a piece and returns how many bytes we have. If that is the whole content, it is stored durably. */
  receive(piece: Piece, body: AsyncIterable<Buffer>): Promise<number>
  /** How many bytes of incomplete content this machine has. */
  offsetOf(accountId: string, sha256: string): Promise<number>
  /** Whether this machine has part of incomplete content, or a request is writing it. */
  hasPart(accountId: string, sha256: string): Promise<boolean>
  /** Deletes the parts of incomplete contents. */
  deleteParts(accountId: string, hashes: readonly string[]): Promise<void>
  /** Stores contents from memory durably. */
  storeAll(contents: readonly Buffer[]): Promise<void>
  /**
   * Runs `work` with the path of a temporary file and a reservation of `bytes` (0 if unknown) of disk space. Throws if
   * the disk would have less free space than the platform needs itself.
   */
  withTempFile<T>(bytes: number, work: (path: string, reservation: Reservation) => Promise<T>): Promise<T>
  /** Reserves space for storing contents, if the store is on this disk. */
  reserveStored(reservation: Reservation, bytes: number): Promise<void>
  /** Deletes abandoned parts and files of dead processes. */
  sweep(): Promise<void>
}

/** `storesLocally`: the artifact store is on this disk. */
export type ReceiverOptions = {
  directory: string
  artifacts: Artifacts
  reserveBytes: number
  diskSpace?: DiskSpace
  storesLocally?: boolean
}

// Files are written within a request, and none takes longer than 30 s.
const maxRequestMs = 45_000
// Concurrent requests with the same content whose files can be recovered.
const maxConcurrent = 4

// Content up to this size is checked in memory before it touches the disk.
const maxInMemory = 256 << 10

/** Reports an unavailable store or full disk as a temporary problem on our side. */
async function storing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable || isDiskFull(error)) throw unavailable(error)
    throw error
  }
}

function mismatch(pointer: string, detail: string): Fault {
  const part = pointer === '#' ? 'body' : 'header'
  return new Fault('validation_failed', detail, { errors: [{ in: part, pointer, code: 'wrong', detail }] })
}

const wrongHash = (sha256: string) =>
  mismatch('#', `The SHA-256 of the content is ${sha256}, which differs from the path.`)
const wrongLength = (got: number, end: number) =>
  mismatch('#/content-length', `The body ends at byte ${got} of the content instead of ${end}.`)

type ReceiverConfig = { dataDir: string; diskReserveMb: number; artifacts: object | null }

/** `diskReserveMb`: disk space that stays free for the platform itself. */
export function openReceiver({ dataDir, diskReserveMb, artifacts: bucket }: ReceiverConfig, artifacts: Artifacts) {
  const directory = join(dataDir, 'uploads')
  const reserveBytes = diskReserveMb * 1024 ** 2
  const diskSpace = diskSpaceOf({ directory, reserveBytes })
  return createReceiver({ directory, artifacts, reserveBytes, diskSpace, storesLocally: bucket === null })
}

export function createReceiver({
  directory,
  artifacts,
  reserveBytes,
  diskSpace = createDiskSpace({ directory, reserveBytes }),
  storesLocally = true,
}: ReceiverOptions): Receiver {
  const partOf = (accountId: string, sha256: string) => join(directory, `${accountId}.${sha256}.part`)
  const tempPath = () => join(directory, `${randomBytes(12).toString('hex')}.new`)
  const ownPath = (accountId: string, sha256: string, n: number) => join(directory, `${accountId}.${sha256}.${n}.new`)
  const sizeOf = async (path: string) => (await stat(path).catch(() => null))?.size ?? 0

  /** Runs `work` with a reservation of `bytes`. */
  async function reserving<T>(bytes: number, work: (reservation: Reservation) => Promise<T>): Promise<T> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const reservation = diskSpace.open()
    try {
      await reservation.reserve(bytes)
      return await storing(() => work(reservation))
    } finally {
      reservation.release()
    }
  }

  const reserveStored = async (reservation: Reservation, bytes: number) => {
    if (storesLocally) await reservation.reserve(bytes)
  }

  const withTempFile: Receiver['withTempFile'] = (bytes, work) => {
    const path = tempPath()
    return reserving(bytes, (reservation) => removing(path, () => work(path, reservation)))
  }

  async function removing<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      await rm(path, { force: true })
    }
  }

  /** Keeps what was received for the next piece, unless another request has received more. */
  async function keepPart(path: string, part: string): Promise<void> {
    if ((await sizeOf(path)) > (await sizeOf(part))) await rename(path, part)
  }

  /** Creates a file whose name lets us recover it if this process is killed; beyond a few concurrent ones, any name. */
  async function pathFor({ accountId, sha256 }: Piece): Promise<string> {
    for (let n = 0; n < maxConcurrent; n++) {
      const path = ownPath(accountId, sha256, n)
      const file = await open(path, 'wx', 0o600).catch(() => null)
      await file?.close()
      if (file) return path
    }
    return tempPath()
  }

  /** Makes the file of a killed process the part, if it is longer. */
  async function recoverPart(accountId: string, sha256: string): Promise<string> {
    const part = partOf(accountId, sha256)
    for (let n = 0; n < maxConcurrent; n++) {
      const path = ownPath(accountId, sha256, n)
      const found = await stat(path).catch(() => null)
      if (!found || Date.now() - found.mtimeMs <= maxRequestMs) continue
      await keepPart(path, part).catch(() => {})
      await rm(path, { force: true })
    }
    return part
  }

  /** Claims the existing part by renaming it, so nobody else writes to it. */
  async function claimPart({ accountId, sha256, from }: Piece, path: string): Promise<void> {
    const part = await recoverPart(accountId, sha256)
    const now = new Date()
    // A fresh time, so nobody mistakes it for the file of a dead process.
    await utimes(part, now, now).catch(() => {})
    const claimed = await rename(part, path).then(
      () => true,
      () => false,
    )
    const size = claimed ? await sizeOf(path) : 0
    if (size === from) return
    if (claimed) await rename(path, part)
    throw new Fault('upload_offset_wrong', `The chunk starts at byte ${from}, but the server has ${size} bytes.`)
  }

  async function storeFile(path: string, size: number): Promise<void> {
    await artifacts.store('', size, createReadStream(path, { highWaterMark: 1 << 20 }))
  }

  async function receiveSmall({ sha256, end }: Piece, body: AsyncIterable<Buffer>): Promise<void> {
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of body) {
      length += chunk.length
      if (length > end) throw wrongLength(length, end)
      chunks.push(chunk)
    }
    if (length !== end) throw wrongLength(length, end)
    const content = Buffer.concat(chunks)
    const actual = hash('sha256', content)
    if (actual !== sha256) throw wrongHash(actual)
    await storeAll([content])
  }

  async function storeAll(contents: readonly Buffer[]): Promise<void> {
    const bytes = contents.reduce((sum, { length }) => sum + length, 0)
    const work = async () => {
      const left = [...contents]
      const hashes: string[] = []
      const next = async () => {
        for (let content = left.pop(); content; content = left.pop()) {
          hashes.push((await artifacts.store('', content.length, [content])).hash)
        }
      }
      await Promise.all(Array.from({ length: artifacts.storesAtOnce }, next))
      await artifacts.persist(hashes)
    }
    await (storesLocally ? reserving(bytes, work) : storing(work))
  }

  /** Appends the piece to the file and returns the file's new size. */
  async function append(
    path: string,
    { from, end }: Piece,
    body: AsyncIterable<Buffer>,
    reservation: Reservation,
  ): Promise<number> {
    const file = await open(path, 'a', 0o600)
    let at = from
    try {
      for await (const chunk of body) {
        if (at + chunk.length > end) throw wrongLength(at + chunk.length, end)
        await reservation.use(chunk.length)
        await file.write(chunk)
        at += chunk.length
      }
    } finally {
      await file.close()
    }
    return at
  }

  async function hashOf(path: string): Promise<string> {
    const digest = createHash('sha256')
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) digest.update(chunk)
    return digest.digest('hex')
  }

  async function receiveLarge(
    piece: Piece,
    body: AsyncIterable<Buffer>,
    path: string,
    reservation: Reservation,
  ): Promise<number> {
    const { accountId, sha256, from, end, size } = piece
    const part = partOf(accountId, sha256)
    if (from > 0) await claimPart(piece, path)
    let at: number
    try {
      at = await append(path, piece, body, reservation)
    } catch (error) {
      // A client that disconnected or met a full disk can resume; one that sent a wrong length cannot.
      if (!(error instanceof Fault) || error.code === 'overloaded') await keepPart(path, part)
      throw error
    }
    if (at !== end) throw wrongLength(at, end)
    if (end < size) {
      await keepPart(path, part)
      return end
    }
    const actual = await hashOf(path)
    if (actual !== sha256) throw wrongHash(actual)
    await reserveStored(reservation, size)
    await storeFile(path, size)
    await artifacts.persist([sha256])
    await rm(part, { force: true })
    return size
  }

  return {
    async receive(piece, body) {
      const { from, end, size } = piece
      if (from === 0 && end === size && size <= maxInMemory) {
        await receiveSmall(piece, body)
        return size
      }
      return reserving(end - from, async (reservation) => {
        const path = await pathFor(piece)
        return removing(path, () => receiveLarge(piece, body, path, reservation))
      })
    },
    offsetOf: async (accountId, sha256) => sizeOf(await recoverPart(accountId, sha256)),
    async hasPart(accountId, sha256) {
      const part = await recoverPart(accountId, sha256)
      const paths = [part, ...Array.from({ length: maxConcurrent }, (_, n) => ownPath(accountId, sha256, n))]
      const found = await Promise.all(paths.map((path) => stat(path).catch(() => null)))
      return found.some((file) => file !== null)
    },
    async deleteParts(accountId, hashes) {
      const parts = new Set(hashes.map((sha256) => partOf(accountId, sha256)))
      for (const name of await readdir(directory).catch(() => [])) {
        const path = join(directory, name)
        if (parts.has(path)) await rm(path, { force: true })
      }
    },
    storeAll,
    withTempFile,
    reserveStored,
    async sweep() {
      const before = Date.now() - waitMs
      for (const name of await readdir(directory).catch(() => [])) {
        const path = join(directory, name)
        const found = await stat(path).catch(() => null)
        if (found && found.mtimeMs < before) await rm(path, { force: true })
      }
    },
  }
}
