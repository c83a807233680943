// The bytes of uploads on their way into the artifact store: written aside, checked against their hash, then stored.
import { createHash, hash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { type Artifacts, StoreUnavailable } from '../../platform/artifacts/artifacts.ts'
import { Fault } from '../../platform/errors.ts'
import { isDiskFull } from '../../platform/files/disk.ts'
import { createRoom, type Hold, type Room, roomOf, unavailable } from './room.ts'
import { waitMs } from './uploads.ts'

/** A piece of content: `from` is its first byte, `end` the one after its last, `size` that of the whole. */
export type Piece = { accountId: string; sha256: string; from: number; end: number; size: number }

export type Receiver = {
  /** Takes a piece; returns how much of the content is here. All of it means that it is stored, durably. */
  receive(piece: Piece, body: AsyncIterable<Buffer>): Promise<number>
  /** How many bytes of content that is not complete this machine has. */
  offsetOf(accountId: string, sha256: string): Promise<number>
  /** Whether this machine has some of content that is not complete, or a request is writing it. */
  isHere(accountId: string, sha256: string): Promise<boolean>
  /** Removes what is kept of contents for their next pieces. */
  drop(accountId: string, hashes: readonly string[]): Promise<void>
  /** Stores contents that are in memory, durably. */
  storeAll(contents: readonly Buffer[]): Promise<void>
  /**
   * Runs `work` with the path of a file that is removed afterwards, and the room on the disk that it takes: `bytes` at
   * once, as far as it is known. Refuses what would leave less than the platform needs itself.
   */
  aside<T>(bytes: number, work: (path: string, room: Hold) => Promise<T>): Promise<T>
  /** Refuses to store contents that the disk has no room for. */
  announceStored(room: Hold, bytes: number): Promise<void>
  /** Removes pieces that nobody has gone on with in time, and what dead processes left. */
  sweep(): Promise<void>
}

/** `storesLocally`: what is stored takes room on this disk, too. */
export type ReceiverOptions = {
  directory: string
  artifacts: Artifacts
  reserveBytes: number
  room?: Room
  storesLocally?: boolean
}

// Whoever writes to a file does so within a request, and none takes longer than 30 s.
const maxRequestMs = 45_000
// Of requests that bring the same content at once.
const maxFound = 4

// Smaller content never touches the disk before it is known to be right.
const maxInMemory = 256 << 10

/** A store or a disk that cannot be used is no fault of the caller, and passes. */
async function storing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StoreUnavailable || isDiskFull(error)) throw unavailable(error)
    throw error
  }
}

function wrong(pointer: string, detail: string): Fault {
  const part = pointer === '#' ? 'body' : 'header'
  return new Fault('validation_failed', detail, { errors: [{ in: part, pointer, code: 'wrong', detail }] })
}

const otherHash = (found: string) => wrong('#', `The SHA-256 of the content is ${found}, which differs from the path.`)
const otherLength = (got: number, end: number) =>
  wrong('#/content-length', `The body ends at byte ${got} of the content instead of ${end}.`)

type ReceiverConfig = { dataDir: string; diskReserveMb: number; artifacts: object | null }

/** `diskReserveMb`: what is left free for the platform itself. */
export function openReceiver({ dataDir, diskReserveMb, artifacts: bucket }: ReceiverConfig, artifacts: Artifacts) {
  const directory = join(dataDir, 'uploads')
  const reserveBytes = diskReserveMb * 1024 ** 2
  const room = roomOf({ directory, reserveBytes })
  return createReceiver({ directory, artifacts, reserveBytes, room, storesLocally: bucket === null })
}

export function createReceiver({
  directory,
  artifacts,
  reserveBytes,
  room = createRoom({ directory, reserveBytes }),
  storesLocally = true,
}: ReceiverOptions): Receiver {
  const partOf = (accountId: string, sha256: string) => join(directory, `${accountId}.${sha256}.part`)
  const asidePath = () => join(directory, `${randomBytes(12).toString('hex')}.new`)
  const ownPath = (accountId: string, sha256: string, n: number) => join(directory, `${accountId}.${sha256}.${n}.new`)
  const sizeOf = async (path: string) => (await stat(path).catch(() => null))?.size ?? 0

  /** Runs `work` with room for so many bytes. */
  async function holding<T>(bytes: number, work: (room: Hold) => Promise<T>): Promise<T> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const hold = room.hold()
    try {
      await hold.announce(bytes)
      return await storing(() => work(hold))
    } finally {
      hold.release()
    }
  }

  const announceStored = async (hold: Hold, bytes: number) => {
    if (storesLocally) await hold.announce(bytes)
  }

  async function aside<T>(bytes: number, work: (path: string, room: Hold) => Promise<T>): Promise<T> {
    const path = asidePath()
    return holding(bytes, (hold) => removing(path, () => work(path, hold)))
  }

  async function removing<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      await rm(path, { force: true })
    }
  }

  /** What came is kept for the next piece, unless another request brought more. */
  async function keepPart(path: string, part: string): Promise<void> {
    if ((await sizeOf(path)) > (await sizeOf(part))) await rename(path, part)
  }

  /** A file for what comes, by whose name it is found if this process is killed; the last ones of many have none. */
  async function pathFor({ accountId, sha256 }: Piece): Promise<string> {
    for (let n = 0; n < maxFound; n++) {
      const path = ownPath(accountId, sha256, n)
      const file = await open(path, 'wx', 0o600).catch(() => null)
      await file?.close()
      if (file) return path
    }
    return asidePath()
  }

  /** What a process had written that was killed becomes the part, if it is longer. */
  async function adopt(accountId: string, sha256: string): Promise<string> {
    const part = partOf(accountId, sha256)
    for (let n = 0; n < maxFound; n++) {
      const path = ownPath(accountId, sha256, n)
      const found = await stat(path).catch(() => null)
      if (!found || Date.now() - found.mtimeMs <= maxRequestMs) continue
      await keepPart(path, part).catch(() => {})
      await rm(path, { force: true })
    }
    return part
  }

  /** Takes the part that is there, so that nobody else writes to it. */
  async function takePart({ accountId, sha256, from }: Piece, path: string): Promise<void> {
    const part = await adopt(accountId, sha256)
    const now = new Date()
    // So that nobody takes it for one of a dead process.
    await utimes(part, now, now).catch(() => {})
    const taken = await rename(part, path).then(
      () => true,
      () => false,
    )
    const size = taken ? await sizeOf(path) : 0
    if (size === from) return
    if (taken) await rename(path, part)
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
      if (length > end) throw otherLength(length, end)
      chunks.push(chunk)
    }
    if (length !== end) throw otherLength(length, end)
    const content = Buffer.concat(chunks)
    const found = hash('sha256', content)
    if (found !== sha256) throw otherHash(found)
    await storeAll([content])
  }

  async function storeAll(contents: readonly Buffer[]): Promise<void> {
    const bytes = contents.reduce((sum, { length }) => sum + length, 0)
    const work = async () => {
      const left = [...contents]
      const hashes: string[] = []
      const next = async () => {
        for (let one = left.pop(); one; one = left.pop()) {
          hashes.push((await artifacts.store('', one.length, [one])).hash)
        }
      }
      await Promise.all(Array.from({ length: artifacts.storesAtOnce }, next))
      await artifacts.persist(hashes)
    }
    await (storesLocally ? holding(bytes, work) : storing(work))
  }

  /** Appends the piece to the file; returns how much is in it then. */
  async function append(path: string, { from, end }: Piece, body: AsyncIterable<Buffer>, room: Hold): Promise<number> {
    const file = await open(path, 'a', 0o600)
    let at = from
    try {
      for await (const chunk of body) {
        if (at + chunk.length > end) throw otherLength(at + chunk.length, end)
        await room.take(chunk.length)
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

  async function receiveLarge(piece: Piece, body: AsyncIterable<Buffer>, path: string, room: Hold): Promise<number> {
    const { accountId, sha256, from, end, size } = piece
    const part = partOf(accountId, sha256)
    if (from > 0) await takePart(piece, path)
    let at: number
    try {
      at = await append(path, piece, body, room)
    } catch (error) {
      // A client that went away, or that the disk had no room for, can go on later; one that lies cannot.
      if (!(error instanceof Fault) || error.code === 'overloaded') await keepPart(path, part)
      throw error
    }
    if (at !== end) throw otherLength(at, end)
    if (end < size) {
      await keepPart(path, part)
      return end
    }
    const found = await hashOf(path)
    if (found !== sha256) throw otherHash(found)
    await announceStored(room, size)
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
      return holding(end - from, async (room) => {
        const path = await pathFor(piece)
        return removing(path, () => receiveLarge(piece, body, path, room))
      })
    },
    offsetOf: async (accountId, sha256) => sizeOf(await adopt(accountId, sha256)),
    async isHere(accountId, sha256) {
      const part = await adopt(accountId, sha256)
      const paths = [part, ...Array.from({ length: maxFound }, (_, n) => ownPath(accountId, sha256, n))]
      const found = await Promise.all(paths.map((path) => stat(path).catch(() => null)))
      return found.some((file) => file !== null)
    },
    async drop(accountId, hashes) {
      const parts = new Set(hashes.map((sha256) => partOf(accountId, sha256)))
      for (const name of await readdir(directory).catch(() => [])) {
        const path = join(directory, name)
        if (parts.has(path)) await rm(path, { force: true })
      }
    },
    storeAll,
    aside,
    announceStored,
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
