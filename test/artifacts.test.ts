import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Artifacts, createArtifacts } from '../src/artifacts.ts'

let directory: string
let artifacts: Artifacts
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-artifacts-'))
  artifacts = createArtifacts(join(directory, 'store'))
})
afterAll(() => rm(directory, { recursive: true }))

async function file(name: string, content: string | Buffer): Promise<string> {
  await writeFile(join(directory, name), content)
  return join(directory, name)
}

test('a file is kept once under the hash of its content, and not written again', async () => {
  const first = await artifacts.store(await file('a.html', '<h1>one</h1>'))
  const { mtimeMs } = await stat(artifacts.pathOf(first.hash))
  const second = await artifacts.store(await file('b.html', '<h1>one</h1>'))
  expect(second.hash).toBe(first.hash)
  expect((await stat(artifacts.pathOf(first.hash))).mtimeMs).toBe(mtimeMs)
  expect(await readFile(artifacts.pathOf(first.hash), 'utf8')).toBe('<h1>one</h1>')
})

test('text is compressed when it is stored, what would not shrink is not', async () => {
  const text = 'body { color: red }\n'.repeat(500)
  const stored = await artifacts.store(await file('a.css', text))
  expect(stored.br).toBeLessThan(stored.size)
  expect(brotliDecompressSync(await readFile(artifacts.pathOf(stored.hash, 'br'))).toString()).toBe(text)
  expect(gunzipSync(await readFile(artifacts.pathOf(stored.hash, 'gzip'))).toString()).toBe(text)
  const small = await artifacts.store(await file('small.css', 'a{}'))
  const picture = await artifacts.store(await file('a.png', Buffer.alloc(5000)))
  expect([small.br, picture.br]).toEqual([undefined, undefined])
})

test('a manifest is there whole or not at all, and goes without its files', async () => {
  expect(await artifacts.read('dpl_x')).toBeNull()
  const index = await artifacts.store(await file('index.html', 'hi'))
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
