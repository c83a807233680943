import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  type Artifacts,
  type Manifest,
  MissingObject,
  type StoredFile,
  StoreUnavailable,
} from '../../../src/platform/artifacts/artifacts.ts'
import { createBucketArtifacts } from '../../../src/platform/artifacts/bucket/artifacts.ts'
import { createBucket } from '../../../src/platform/artifacts/bucket/client.ts'
import { type S3Server, startS3 } from '../../helpers/s3.ts'
import { until } from '../../helpers/until.ts'

let server: S3Server
let directory: string
const opened: Artifacts[] = []
/** The stores of two machines. */
let one: Artifacts
let two: Artifacts

beforeEach(async () => {
  server = await startS3()
  directory = await mkdtemp(join(tmpdir(), 'berth-bucket-'))
  one = machine('one')
  two = machine('two')
})
afterEach(async () => {
  for (const store of opened.splice(0)) store.close()
  await server.close()
  await rm(directory, { recursive: true })
})

function machine(name: string, cacheBytes = 1 << 30): Artifacts {
  const root = join(directory, name)
  const store = createBucketArtifacts({ bucket: createBucket(server.options), root, cacheBytes })
  opened.push(store)
  return store
}

const store = (artifacts: Artifacts, name: string, text: string | Buffer) => {
  const content = Buffer.from(text)
  return artifacts.store(name, content.length, [content])
}
const manifestOf = (files: Record<string, StoredFile>): Manifest => ({
  ...{ version: 1, kind: 'static', files, spaFallback: false, cleanUrls: true },
})
const page = '<p>some text</p>\n'.repeat(200)
const keyOf = (hash: string, ending = '') => `files/${hash.slice(0, 2)}/${hash}${ending}`
const dayMs = 24 * 3600_000
const age = (key: string, days: number) => {
  server.objects.get(key)!.modifiedMs = Date.now() - days * dayMs
}

test('what one machine publishes, another one has, and a third time nothing is sent', async () => {
  const files = { 'index.html': await store(one, 'index.html', page), 'a.png': await store(one, 'a.png', 'picture') }
  await one.publish('dpl_a', manifestOf(files))
  expect(await two.read('dpl_a')).toEqual(manifestOf(files))
  expect((await two.load(files['index.html'].hash)).toString()).toBe(page)
  expect(gunzipSync(await two.load(files['index.html'].hash, 'gzip')).toString()).toBe(page)
  const before = server.count('PUT', 'files/')
  expect(before).toBe(4)
  expect(await store(two, 'other.html', page)).toEqual(files['index.html'])
  expect(server.count('PUT', 'files/')).toBe(before)
})

test('a large file is stored and fetched as a stream', async () => {
  const chunk = Buffer.alloc(1 << 20, 7)
  async function* large() {
    for (let i = 0; i < 12; i++) yield chunk
  }
  const stored = await one.store('video.mp4', 12 << 20, large())
  const file = await two.open(stored.hash)
  try {
    expect((await file.stat()).size).toBe(12 << 20)
    expect((await file.readFile()).equals(Buffer.alloc(12 << 20, 7))).toBe(true)
  } finally {
    await file.close()
  }
  expect(await readdir(join(directory, 'one/files'))).toEqual([])
})

describe('a machine that serves', () => {
  test('asks for a cold object once, however many want it, and never again, not even after a restart', async () => {
    const { hash } = await store(one, 'a.png', page)
    const contents = await Promise.all(Array.from({ length: 50 }, () => two.load(hash)))
    expect(contents.every((content) => content.toString() === page)).toBe(true)
    await Promise.all(Array.from({ length: 20 }, async () => (await two.open(hash)).close()))
    await machine('two').load(hash)
    expect(server.count('GET', 'files/')).toBe(1)
  })

  test('has what it fetched while the bucket is away, and says of the rest that it is not known', async () => {
    const [kept, other] = [await store(one, 'a.png', 'kept'), await store(one, 'b.png', 'other')]
    await one.publish('dpl_a', manifestOf({ 'a.png': kept }))
    await one.publish('dpl_b', manifestOf({ 'b.png': other }))
    await two.read('dpl_a')
    await two.load(kept.hash)
    server.trouble = () => 'close'
    const again = machine('two')
    expect(await again.read('dpl_a')).toEqual(manifestOf({ 'a.png': kept }))
    expect((await again.load(kept.hash)).toString()).toBe('kept')
    for (const ask of [() => again.load(other.hash), () => again.open(other.hash), () => again.read('dpl_b')]) {
      await expect(ask()).rejects.toThrow(StoreUnavailable)
    }
    server.trouble = null
    expect(await one.damaged()).toEqual([])
  })

  test('takes nothing that is not what its name says, from the bucket or from its own disk', async () => {
    const stored = await store(one, 'a.html', page)
    server.trouble = (method) => (method === 'GET' ? 'lie' : null)
    await expect(two.load(stored.hash)).rejects.toThrow(MissingObject)
    await expect(two.load(stored.hash, 'br')).rejects.toThrow(MissingObject)
    await expect(two.open(stored.hash)).rejects.toThrow(MissingObject)
    server.trouble = null
    expect((await one.damaged()).sort()).toEqual([stored.hash, `${stored.hash}.br`].sort())
    const third = machine('three')
    await third.load(stored.hash)
    const copy = join(directory, 'three', keyOf(stored.hash))
    await writeFile(copy, page.replace('some', 'same'))
    expect((await third.load(stored.hash)).toString()).toBe(page)
    await writeFile(copy, page.replace('some', 'same'))
    const file = await third.open(stored.hash)
    expect((await file.readFile()).toString()).toBe(page)
    await file.close()
  })

  test('does not take half an object for a damaged one', async () => {
    const { hash } = await store(one, 'a.png', page)
    server.trouble = (method) => (method === 'GET' ? 'cut' : null)
    const error = await two.load(hash).catch((error) => error)
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(error).not.toBeInstanceOf(MissingObject)
    await expect(one.isWhole(hash)).rejects.toThrow(StoreUnavailable)
    server.trouble = null
    expect(await one.damaged()).toEqual([])
    expect((await two.load(hash)).toString()).toBe(page)
  })

  test('keeps no more than it may, and what was used last', async () => {
    const small = machine('small', 2 << 20)
    const stored: StoredFile[] = []
    for (let i = 0; i < 8; i++) stored.push(await store(one, 'a.png', Buffer.alloc(400 << 10, i)))
    const fileOf = (index: number) => join(directory, 'small', keyOf(stored[index]!.hash))
    for (const [index, { hash }] of stored.entries()) {
      await small.load(hash)
      // The first one is used all the time.
      const second = new Date(Date.now() - (100 - index) * 1000)
      if (index > 0) await utimes(fileOf(index), second, second)
      await until(async () => (await bytesIn(join(directory, 'small'))) <= 2 << 20)
    }
    const kept = await Promise.all(
      stored.map((_, index) =>
        stat(fileOf(index)).then(
          () => index,
          () => -1,
        ),
      ),
    )
    expect(kept).toContain(0)
    expect(kept).toContain(7)
    expect(kept).not.toContain(1)
  })
})

test('a machine whose disk is full serves what fits into memory, and makes room for the rest', async ({ skip }) => {
  const root = join(directory, 'full')
  await mkdir(root)
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'berth', root]).status !== 0) return skip()
  try {
    const full = machine('full')
    const stored: StoredFile[] = []
    for (let i = 0; i < 12; i++) stored.push(await store(one, 'a.png', Buffer.alloc(400 << 10, i)))
    for (const [index, { hash }] of stored.entries()) {
      expect((await full.load(hash)).equals(Buffer.alloc(400 << 10, index))).toBe(true)
    }
    // Files that are opened need the disk.
    for (const { hash } of stored) {
      const file = await until(() => full.open(hash).catch(() => null))
      expect((await file.stat()).size).toBe(400 << 10)
      await file.close()
    }
    const names = await readdir(root, { recursive: true })
    expect(names.filter((name) => name.endsWith('.new'))).toEqual([])
  } finally {
    spawnSync('umount', ['-l', root])
  }
})

async function bytesIn(root: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0
  }
  return bytes
}

describe('a deployment', () => {
  test.each([
    ['refuses an object', (key: string) => key.endsWith('.br')],
    ['refuses the manifest', (key: string) => key.startsWith('manifests/')],
  ])('is not published where the bucket %s', async (_how, refuses) => {
    server.trouble = (method, key) => (method === 'PUT' && refuses(key) ? { status: 403, code: 'QuotaExceeded' } : null)
    const publish = async () => {
      const files = { 'index.html': await store(one, 'index.html', page) }
      await one.publish('dpl_a', manifestOf(files))
    }
    await expect(publish()).rejects.toThrow(/has no room/)
    expect([...server.objects.keys()].filter((key) => key.startsWith('manifests/'))).toEqual([])
    server.trouble = null
    await publish()
    expect(await two.read('dpl_a')).not.toBeNull()
  })

  test('is not published where the bucket says that it has stored what it has not', async () => {
    server.trouble = (method, key) => (method === 'PUT' && key.endsWith('.gzip') ? 'forget' : null)
    const files = { 'index.html': await store(one, 'index.html', page) }
    await expect(one.publish('dpl_a', manifestOf(files))).rejects.toThrow(StoreUnavailable)
    expect(await two.read('dpl_a')).toBeNull()
  })

  test('that one machine removes is gone for all', async () => {
    const files = { 'a.png': await store(one, 'a.png', 'x') }
    await one.publish('dpl_a', manifestOf(files))
    await two.read('dpl_a')
    await two.remove('dpl_a')
    expect(await one.read('dpl_a', { fresh: true })).toBeNull()
    expect(await two.read('dpl_a')).toBeNull()
    expect([...server.objects.keys()].filter((key) => key.startsWith('manifests/'))).toEqual([])
  })
})

describe('the tree of a server', () => {
  async function publishTree(largeBytes = 0): Promise<void> {
    const tree = one.serverDirectory('dpl_s')
    const deep = join(tree, ...Array(12).fill('a-rather-long-name-of-a-package'))
    await mkdir(deep, { recursive: true })
    await mkdir(join(tree, 'empty'))
    await writeFile(join(tree, 'start.sh'), '#!/bin/sh\n', { mode: 0o755 })
    await writeFile(join(tree, 'server.js'), 'run()\n')
    await writeFile(join(deep, 'ünïcode.bin'), Buffer.alloc(largeBytes, 9))
    await symlink('../../../../etc/passwd', join(tree, 'outside'))
    await symlink('server.js', join(tree, 'inside'))
    await one.publish('dpl_s', { ...manifestOf({}), kind: 'node', root: 'app' })
  }

  test('is on the machine that runs it as the build has made it', async () => {
    await publishTree(5 << 20)
    const own = await one.openTree('dpl_s')
    const tree = await two.openTree('dpl_s')
    expect(tree.root).toBe('app')
    const list = async (root: string) => (await readdir(root, { recursive: true })).sort()
    expect(await list(tree.directory)).toEqual(await list(own.directory))
    expect((await stat(join(tree.directory, 'start.sh'))).mode & 0o777).toBe(0o755)
    expect((await stat(join(tree.directory, 'server.js'))).mode & 0o777).toBe(0o644)
    expect(await readlink(join(tree.directory, 'outside'))).toBe('../../../../etc/passwd')
    expect(await readFile(join(tree.directory, 'inside'), 'utf8')).toBe('run()\n')
    // Laid out once, fetched once: also by many at once, and without the bucket.
    expect(server.count('GET', 'files/')).toBe(1)
    server.trouble = () => 'close'
    const again = await Promise.all([machine('two').openTree('dpl_s'), two.openTree('dpl_s')])
    expect(again.map(({ directory }) => directory)).toEqual([tree.directory, tree.directory])
    for (const one of [own, tree, ...again]) one.release()
  })

  test('stays while it is used, and goes when the room is needed', async () => {
    await publishTree(300 << 10)
    const small = machine('small', 1 << 20)
    const tree = await small.openTree('dpl_s')
    const fill = async (from: number) => {
      for (let i = from; i < from + 4; i++)
        await small.load((await store(one, 'a.png', Buffer.alloc(400 << 10, i))).hash)
    }
    const old = new Date(Date.now() - 3600_000)
    await utimes(tree.directory, old, old)
    await fill(0)
    await until(async () => (await bytesIn(join(directory, 'small/files'))) <= 1 << 20)
    expect(await readdir(tree.directory)).toContain('server.js')
    tree.release()
    await utimes(tree.directory, old, old)
    await fill(4)
    await until(async () => (await readdir(join(directory, 'small/servers'))).length === 0)
    const again = await small.openTree('dpl_s')
    expect(await readdir(again.directory)).toContain('server.js')
    again.release()
  })

  test('goes with its deployment', async () => {
    await publishTree()
    await one.remove('dpl_s')
    expect(await readdir(join(directory, 'one/servers'))).toEqual([])
    await expect(two.openTree('dpl_s')).rejects.toThrow(MissingObject)
  })
})

describe('a sweep', () => {
  const usedBefore = () => Date.now() - dayMs
  const unusedOf = async (artifacts: Artifacts, hash: string, isNeeded = false) => {
    const names: string[] = []
    const folder = Number.parseInt(hash.slice(0, 2), 16)
    for await (const some of artifacts.inventory.unused(folder, () => isNeeded, usedBefore())) names.push(...some)
    return names
  }

  test('removes what is old and not needed', async () => {
    const { hash } = await store(one, 'a.png', 'old')
    expect(await unusedOf(two, hash)).toEqual([])
    age(keyOf(hash), 9)
    expect(await unusedOf(two, hash, true)).toEqual([])
    expect(await unusedOf(two, hash)).toEqual([hash])
    expect(await two.inventory.removeUnused([hash], usedBefore())).toEqual({ files: 1, bytes: 3 })
    expect([...server.objects.keys()]).toEqual([])
  })

  test('leaves what a build has stored anew since it was listed', async () => {
    const { hash } = await store(one, 'a.png', 'old')
    age(keyOf(hash), 9)
    const unused = await unusedOf(two, hash)
    await store(one, 'a.png', 'old')
    expect(await two.inventory.removeUnused(unused, usedBefore())).toEqual({ files: 0, bytes: 0 })
    expect(server.objects.has(keyOf(hash))).toBe(true)
  })

  test('that has looked already makes a build wait, and the build notices what is gone', async () => {
    const { hash } = await store(one, 'a.png', 'old')
    age(keyOf(hash), 9)
    let goOn = () => {}
    const deleting = new Promise<void>((resolve) => {
      server.trouble = async (method, key) => {
        if (method !== 'DELETE' || key !== keyOf(hash)) return null
        resolve()
        await new Promise<void>((next) => {
          goOn = next
        })
        return null
      }
    })
    const removed = two.inventory.removeUnused([hash], usedBefore())
    await deleting
    // The worst moment: it is about to be removed, and a build stores the same content.
    const files = { 'a.png': await store(one, 'a.png', 'old') }
    let published: boolean | null = null
    const publishing = one.publish('dpl_a', manifestOf(files)).then(
      () => {
        published = true
      },
      (error) => {
        expect(error).toBeInstanceOf(StoreUnavailable)
        published = false
      },
    )
    await until(() => server.count('GET', 'removing/') > 0)
    expect(published).toBeNull()
    goOn()
    expect((await removed).files).toBe(1)
    await publishing
    expect(published).toBe(false)
    expect(await two.read('dpl_a')).toBeNull()
    await one.publish('dpl_a', manifestOf({ 'a.png': await store(one, 'a.png', 'old') }))
    expect((await two.load(hash)).toString()).toBe('old')
  })

  test('that died holds no build up for long, and is tidied up', async () => {
    const { hash } = await store(one, 'a.png', 'old')
    server.objects.set('removing/1-dead', {
      ...{ body: Buffer.from(JSON.stringify([hash])), sha256: undefined, modifiedMs: Date.now() - 7 * 60_000 },
    })
    await one.publish('dpl_a', manifestOf({ 'a.png': { hash, size: 3 } }))
    await one.inventory.tidy(0)
    expect([...server.objects.keys()].filter((key) => key.startsWith('removing/'))).toEqual([])
  })
})

test('a damaged object is mended from its copies, or removed so that a build brings it back', async () => {
  const stored = await store(one, 'a.html', page)
  server.objects.get(keyOf(stored.hash))!.body = Buffer.alloc(stored.size)
  server.objects.get(keyOf(stored.hash, '.br'))!.body = Buffer.alloc(3)
  expect(await one.isWhole(stored.hash)).toBe(false)
  expect(await one.repair(stored.hash)).toBe(true)
  expect(await one.repair(stored.hash, 'br')).toBe(true)
  expect((await two.load(stored.hash)).toString()).toBe(page)
  await two.load(stored.hash, 'br')
  for (const ending of ['', '.br', '.gzip'])
    server.objects.get(keyOf(stored.hash, ending))!.body = Buffer.from('damaged')
  expect(await one.repair(stored.hash)).toBe(false)
  expect(server.objects.has(keyOf(stored.hash))).toBe(false)
})
