import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Artifacts, createArtifacts } from '../../src/platform/artifacts.ts'

let directory: string
let artifacts: Artifacts
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
