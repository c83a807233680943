// Uploads leave the disk what the platform needs, however many there are and whether or not they say how long they are.
import { createHash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { spool } from '../../../src/services/uploads/archives.ts'
import { createDiskSpace } from '../../../src/services/uploads/disk-space.ts'
import { createReceiver, type Receiver } from '../../../src/services/uploads/receiver.ts'

const mib = 1 << 20
const capacity = 48 * mib
const reserveBytes = 16 * mib

let root: string
let directory: string
let receiver: Receiver
/** Written by others. */
let others: number
let most: number

const used = () =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-room-'))
  directory = join(root, 'uploads')
  others = most = 0
  const diskSpace = createDiskSpace({ directory, reserveBytes, freeBytes: async () => capacity - others - used() })
  const artifacts = createArtifacts(join(root, 'artifacts'))
  receiver = createReceiver({ directory, artifacts, reserveBytes, diskSpace })
})
afterEach(() => rm(root, { recursive: true }))

/** A body of so many MiB, which notes how much is on the disk. */
async function* body(length: number, each: (sent: number) => unknown = () => {}) {
  for (let sent = 0; sent < length; sent++) {
    await each(sent)
    for (let piece = 0; piece < 16; piece++) yield Buffer.alloc(mib / 16, 1)
    most = Math.max(most, used())
  }
}

const archive = (sent: AsyncIterable<Buffer>, length = 0) =>
  receiver.withTempFile(length, (path, reservation) => spool(sent, path, 1 << 30, reservation))
const full = { code: 'overloaded' }

function put(length: number, sent: AsyncIterable<Buffer>) {
  const content = Buffer.alloc(length * mib, 1)
  const sha256 = createHash('sha256').update(content).digest('hex')
  return receiver.receive({ accountId: 'acc_x', sha256, from: 0, end: content.length, size: content.length }, sent)
}

it('an archive of unknown length is refused once what is left is the reserve', async () => {
  await expect(archive(body(1_000))).rejects.toMatchObject(full)
  expect(most).toBeGreaterThan(20 * mib)
  expect(most).toBeLessThanOrEqual(capacity - reserveBytes)
  expect(await readdir(directory)).toEqual([])
  await archive(body(20))
})

it('four at once do not take the reserve, either', async () => {
  const results = await Promise.allSettled(Array.from({ length: 4 }, () => archive(body(1_000))))
  expect(results.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(capacity - reserveBytes)
})

it('what an upload has announced is not there for others, until it ends', async () => {
  const asked = Promise.withResolvers<void>()
  const refused = Promise.withResolvers<void>()
  const first = archive(
    body(20, () => {
      asked.resolve()
      return refused.promise
    }),
    20 * mib,
  )
  await asked.promise
  await expect(put(15, body(15))).rejects.toMatchObject(full)
  await expect(archive(body(15), 15 * mib)).rejects.toMatchObject(full)
  refused.resolve()
  await first
  expect(await put(15, body(15))).toBe(15 * mib)
})

it('stops when others fill the disk, and keeps what came of content that is sent in pieces', async () => {
  const fill = (sent: number) => {
    if (sent === 5) others = capacity
  }
  await expect(put(15, body(15, fill))).rejects.toMatchObject(full)
  expect(most).toBeLessThan(10 * mib)
  const [part] = await readdir(directory)
  expect(part).toMatch(/^acc_x\..*\.part$/)
})

it('refuses to store what the disk has no space for', async () => {
  // It is there twice until it is stored.
  await expect(put(20, body(20))).rejects.toMatchObject(full)
  others = capacity - reserveBytes
  await expect(receiver.storeAll([Buffer.alloc(1_000)])).rejects.toMatchObject(full)
})
