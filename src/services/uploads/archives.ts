// Archives of a whole source tree: spooled to a file, read once to check and hash it, and once more to store it.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import { Fault } from '../../platform/errors.ts'
import { ByteReader } from '../../platform/files/byte-reader.ts'
import { pathFaults, staysInside } from '../../platform/files/source-paths.ts'
import { tarPadding } from '../../platform/files/tar.ts'
import { type ArchiveEntry, readArchive } from '../../platform/files/tar-reader.ts'
import { badArchive, refusalOf } from './batch.ts'
import type { Reservation } from './disk-space.ts'

/** `mode`: the git file mode. */
export type ArchivedFile = { path: string; sha256: string; size: number; mode: number }

/** Maximum number of files, total bytes, and bytes of one file. */
export type ArchiveLimits = { files: number; bytes: number; fileBytes: number }

const link = 0o120000

// For headers; the quota limits the files.
const overheadBytes = 64 << 20

async function* limited(chunks: AsyncIterable<Buffer>, maxBytes: number, refusal: () => Fault) {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) throw refusal()
    yield chunk
  }
}

/** The maximum size of an archive whose files have `fileBytes` in total. */
const maxPackedBytes = (fileBytes: number) => fileBytes + overheadBytes

const tooLarge = (fileBytes: number) =>
  new Fault('body_too_large', `The archive is larger than ${maxPackedBytes(fileBytes)} bytes.`)

/** Refuses an archive by its length, before reading it. `length` is 0 if unknown. */
export function refuseLarge(length: number, fileBytes: number): void {
  if (length > maxPackedBytes(fileBytes)) throw tooLarge(fileBytes)
}

/** Writes the body to a file. Refuses more bytes than the files can need or the disk has space for. */
export async function spool(
  body: AsyncIterable<Buffer>,
  path: string,
  fileBytes: number,
  reservation: Pick<Reservation, 'use'>,
): Promise<void> {
  async function* reserved() {
    for await (const chunk of limited(body, maxPackedBytes(fileBytes), () => tooLarge(fileBytes))) {
      await reservation.use(chunk.length)
      yield chunk
    }
  }
  await pipeline(Readable.from(reserved()), createWriteStream(path, { flags: 'wx', mode: 0o600 }))
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b
  } finally {
    await file.close()
  }
}

/** Calls `each` for every file and link. `each` must read the content before it returns. */
async function walk(
  path: string,
  maxBytes: number,
  each: (entry: ArchiveEntry, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const packed = createReadStream(path, { highWaterMark: 1 << 18 })
  const bytes = (await isGzip(path)) ? packed.pipe(createGunzip()) : packed
  // Limits the unpacked size: names, folders and headers cost time even without files.
  const tooMany = () => badArchive(`The archive is larger than ${maxBytes} bytes.`)
  const reader = new ByteReader(limited(bytes, maxBytes, tooMany))
  try {
    for await (const entry of readArchive(reader)) {
      if (entry.kind === 'directory') continue
      if (entry.kind === 'link') await each(entry, single(Buffer.from(entry.target)))
      else {
        await each(entry, reader.stream(entry.size))
        await reader.take(tarPadding(entry.size).length)
      }
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw code?.startsWith('Z_') ? badArchive('The archive cannot be decompressed.') : refusalOf(error)
  } finally {
    packed.destroy()
    bytes.destroy()
  }
}

async function* single(content: Buffer): AsyncGenerator<Buffer> {
  yield content
}

/** Lists the files and links of the archive without storing anything. Throws if the archive is invalid. */
export async function listArchive(path: string, limits: ArchiveLimits): Promise<ArchivedFile[]> {
  const files: ArchivedFile[] = []
  let bytes = 0
  await walk(path, limits.bytes + overheadBytes, async (entry, content) => {
    const shown = JSON.stringify(entry.path.slice(0, 200))
    const size = entry.kind === 'link' ? Buffer.byteLength(entry.target) : entry.size
    bytes += size
    if (files.length >= limits.files) throw badArchive(`The archive has more than ${limits.files} files.`)
    if (size > limits.fileBytes) throw badArchive(`${shown} is larger than ${limits.fileBytes} bytes.`)
    if (bytes > limits.bytes) throw badArchive(`The files in the archive exceed ${limits.bytes} bytes.`)
    if (entry.kind === 'link' && !staysInside(entry.path, entry.target)) {
      throw badArchive(`${shown} is a link that points outside the archive.`)
    }
    const digest = createHash('sha256')
    for await (const chunk of content) digest.update(chunk)
    const mode = entry.kind === 'link' ? link : (entry.mode & 0o111) === 0 ? 0o100644 : 0o100755
    files.push({ path: entry.path, sha256: digest.digest('hex'), size, mode })
  })
  if (files.length === 0) throw badArchive('The archive has no files.')
  const [fault] = await pathFaults(
    files.map((file) => file.path),
    1,
  )
  if (fault) throw badArchive(`${JSON.stringify(files[fault.index]!.path.slice(0, 200))} ${fault.why}.`)
  return files
}

/** Stores the content of all files durably. Call `listArchive` first to check the archive. */
export async function storeArchive(artifacts: Artifacts, path: string): Promise<void> {
  const hashes = new Set<string>()
  const running = new Set<Promise<void>>()
  let failure: unknown
  await walk(path, Number.POSITIVE_INFINITY, async (entry, content) => {
    if (failure) throw failure
    if (entry.size > artifacts.maxBufferedBytes) {
      hashes.add((await artifacts.store('', entry.size, content)).hash)
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of content) chunks.push(chunk)
    const whole = Buffer.concat(chunks)
    const storing: Promise<void> = artifacts
      .store('', whole.length, [whole])
      .then(({ hash }) => void hashes.add(hash))
      .catch((error) => {
        failure ??= error
      })
      .finally(() => running.delete(storing))
    running.add(storing)
    if (running.size >= artifacts.storesAtOnce) await Promise.race(running)
  })
  await Promise.all(running)
  if (failure) throw failure
  await artifacts.persist([...hashes])
}
