import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createArtifacts, type LocalArtifacts } from '../../src/platform/artifacts/local-artifacts.ts'

let directory: string
let artifacts: LocalArtifacts
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-artifacts-'))
  artifacts = createArtifacts(join(directory, 'store'))
})
afterAll(() => rm(directory, { recursive: true }))

const store = (name: string, text: string | Buffer) => {
  const content = Buffer.from(text)
  return artifacts.store(name, content.length, [content])
}

test('a file is kept once under the hash of its content, and not written again', async () => {
  const first = await store('a.html', '<h1>one</h1>')
  const { ino } = await stat(artifacts.pathOf(first.hash))
  const second = await store('b.html', '<h1>one</h1>')
  expect(second.hash).toBe(first.hash)
  expect((await stat(artifacts.pathOf(first.hash))).ino).toBe(ino)
  expect(await readFile(artifacts.pathOf(first.hash), 'utf8')).toBe('<h1>one</h1>')
})

test('text is compressed when it is stored, what would not shrink is not', async () => {
  const text = 'body { color: red }\n'.repeat(500)
  const stored = await store('a.css', text)
  expect(stored.br).toBeLessThan(stored.size)
  expect(brotliDecompressSync(await readFile(artifacts.pathOf(stored.hash, 'br'))).toString()).toBe(text)
  expect(gunzipSync(await readFile(artifacts.pathOf(stored.hash, 'gzip'))).toString()).toBe(text)
  const small = await store('small.css', 'a{}')
  const picture = await store('a.png', Buffer.alloc(5000))
  expect([small.br, picture.br]).toEqual([undefined, undefined])
})

test('a manifest is there whole or not at all, and goes without its files', async () => {
  expect(await artifacts.read('dpl_x')).toBeNull()
  const index = await store('index.html', 'hi')
  const manifest = {
    version: 1,
    kind: 'static',
    files: { 'index.html': index },
    spaFallback: false,
    cleanUrls: true,
  } as const
  await artifacts.publish('dpl_x', manifest)
  expect(await artifacts.read('dpl_x')).toEqual(manifest)
  expect(await readdir(join(directory, 'store/manifests'))).toEqual(['dpl_x.json'])
  await artifacts.remove('dpl_x')
  expect(await artifacts.read('dpl_x')).toBeNull()
  expect(await readFile(artifacts.pathOf(index.hash), 'utf8')).toBe('hi')
})

test('what a dead worker had written of a manifest goes when it is published again, or removed', async () => {
  const manifests = join(directory, 'store/manifests')
  const leave = async (id: string) => {
    await mkdir(join(manifests, `${id}.new`), { recursive: true })
    await writeFile(join(manifests, `${id}.new`, 'half'), '{"vers')
  }
  await leave('dpl_y')
  await leave('dpl_z')
  await artifacts.publish('dpl_y', { version: 1, kind: 'static', files: {}, spaFallback: false, cleanUrls: true })
  expect((await readdir(manifests)).sort()).toEqual(['dpl_y.json', 'dpl_z.new'])
  await artifacts.remove('dpl_z')
  expect(await readdir(manifests)).toEqual(['dpl_y.json'])
})

test('a large file is written as it comes, under the hash of its content', async () => {
  const chunk = Buffer.alloc(1 << 20, 7)
  async function* large() {
    for (let i = 0; i < 12; i++) yield chunk
  }
  const stored = await artifacts.store('video.mp4', 12 << 20, large())
  const content = await readFile(artifacts.pathOf(stored.hash))
  expect(stored).toEqual({ hash: createHash('sha256').update(content).digest('hex'), size: 12 << 20 })
  expect(content.length).toBe(12 << 20)
  async function* torn() {
    yield chunk
    throw new Error('torn')
  }
  await expect(artifacts.store('torn.mp4', 12 << 20, torn())).rejects.toThrow('torn')
  const left = await readdir(join(directory, 'store/files'))
  expect(left.filter((name) => name.endsWith('.new'))).toEqual([])
})

const page = '<p>some text</p>\n'.repeat(200)

describe('a damaged file', () => {
  test.each([
    ['emptied', async (path: string) => writeFile(path, '')],
    ['changed in one bit', flip],
    ['cut off', async (path: string) => truncate(path, 20)],
  ])('that was %s is written anew by the next build that has its content', async (_how, damage) => {
    const stored = await store('page.html', page)
    const paths = [undefined, 'br', 'gzip'] as const
    for (const encoding of paths) await damage(artifacts.pathOf(stored.hash, encoding))
    for (const encoding of paths) expect(await artifacts.isWhole(stored.hash, encoding)).toBe(false)
    expect(await store('page.html', page)).toEqual(stored)
    for (const encoding of paths) expect(await artifacts.isWhole(stored.hash, encoding)).toBe(true)
  })

  test('is repaired from its other copies, and from nothing if there is none', async () => {
    const stored = await store('page.html', page)
    await flip(artifacts.pathOf(stored.hash))
    await flip(artifacts.pathOf(stored.hash, 'br'))
    expect(await artifacts.repair(stored.hash)).toBe(true)
    expect(await readFile(artifacts.pathOf(stored.hash), 'utf8')).toBe(page)
    expect(await artifacts.repair(stored.hash, 'br')).toBe(true)
    expect(brotliDecompressSync(await readFile(artifacts.pathOf(stored.hash, 'br'))).toString()).toBe(page)
    const alone = await store('alone.bin', 'nothing else has this')
    await flip(artifacts.pathOf(alone.hash))
    expect(await artifacts.repair(alone.hash)).toBe(false)
  })

  test('is not loaded but reported, once', async () => {
    const stored = await store('a.bin', 'read by the edge')
    await flip(artifacts.pathOf(stored.hash))
    await expect(artifacts.load(stored.hash)).rejects.toThrow('damaged')
    await expect(artifacts.load(stored.hash)).rejects.toThrow('damaged')
    expect(await artifacts.damaged()).toEqual([stored.hash])
  })

  test('of any size is replaced, as a large one is', async () => {
    const large = Buffer.alloc(artifacts.maxBufferedBytes + 1, 3)
    const stored = await artifacts.store('a.mp4', large.length, [large])
    await truncate(artifacts.pathOf(stored.hash), 5)
    await artifacts.store('a.mp4', large.length, [large])
    expect(await artifacts.isWhole(stored.hash)).toBe(true)
  })
})

describe('a stored file that this process has read', () => {
  const text = 'a line of the file\n'.repeat(100)

  test('is used again without reading it, but not once it was changed, replaced or removed', async () => {
    const again = (hash: string) => artifacts.findStored!('a.txt', hash, text.length)
    const first = await store('a.txt', text)
    // Written only, and not read: unknown.
    expect(await again(first.hash)).toBeNull()
    expect(await store('a.txt', text)).toEqual(first)
    expect(await again(first.hash)).toEqual(first)
    expect(await artifacts.findStored!('a.txt', first.hash, text.length + 1)).toBeNull()
    expect(await artifacts.findStored!('a.txt', 'f'.repeat(64), text.length)).toBeNull()
    const damages = [
      async (path: string) => flip(path),
      // A write may be stamped with the very time that the file had.
      async (path: string) => {
        const { mtime } = await stat(path)
        await flip(path)
        await utimes(path, mtime, mtime)
      },
      async (path: string) => {
        const content = await readFile(path)
        await rm(path)
        await writeFile(path, content)
      },
      async (path: string) => rm(path),
    ]
    for (const damage of damages) {
      for (const encoding of [undefined, 'br', 'gzip'] as const) {
        await damage(artifacts.pathOf(first.hash, encoding))
        expect(await again(first.hash)).toBeNull()
        expect(await store('a.txt', text)).toEqual(first)
        expect(await artifacts.isWhole(first.hash, encoding)).toBe(true)
        await store('a.txt', text)
        expect(await again(first.hash)).toEqual(first)
      }
    }
  })
})

test('nothing is published that has a file missing', async () => {
  const files = { 'index.html': await store('index.html', page) }
  const manifest = { version: 1, kind: 'static', files, spaFallback: false, cleanUrls: true } as const
  await artifacts.publish('dpl_whole', manifest)
  await rm(artifacts.pathOf(files['index.html'].hash, 'gzip'))
  await expect(artifacts.publish('dpl_torn', manifest)).rejects.toThrow()
})

async function flip(path: string): Promise<void> {
  const content = await readFile(path)
  content[content.length >> 1]! ^= 1
  await writeFile(path, content)
}
