import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { entryKinds } from '../../../src/engines/builder/packer.ts'
import { layOut } from '../../../src/engines/builder/server-tree.ts'
import { entriesOf, file, folder, link, packed } from './packed.ts'

let parent: string
let directory: string
let canary: string
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'berth-server-tree-'))
  directory = join(parent, 'servers/dpl_1')
  canary = join(parent, 'outside')
  await mkdir(canary)
  await writeFile(join(canary, 'canary'), 'alive')
})
afterEach(() => rm(parent, { recursive: true, force: true }))

const text = (path: string) => readFile(join(directory, path), 'utf8')
const refused = { code: 'output_unsafe' }

test('a tree is laid out with its folders, files, executable bits and links', async () => {
  const program = packed(entryKinds.executable, 'bin/run', '#!/bin/sh\n')
  const entries = [folder('empty'), file('a/b/c.js', 'c'), program, link('a/link', '../bin/run'), file('d', '')]
  await layOut(entriesOf(...entries), directory)
  expect(await text('a/b/c.js')).toBe('c')
  expect(await readlink(join(directory, 'a/link'))).toBe('../bin/run')
  expect(await readdir(join(directory, 'empty'))).toEqual([])
  const mode = async (path: string) => (await stat(join(directory, path))).mode & 0o777
  expect([await mode('bin/run'), await mode('d'), await mode('empty')]).toEqual([0o755, 0o644, 0o755])
})

test('many small files and large ones are laid out whole', async () => {
  const many = Array.from({ length: 300 }, (_, at) => file(`d${at % 7}/f${at}`, `content ${at}`))
  const large = Buffer.alloc(9 << 20, 'x')
  await layOut(entriesOf(...many.slice(0, 150), file('large', large), ...many.slice(150)), directory)
  for (let at = 0; at < 300; at++) expect(await text(`d${at % 7}/f${at}`)).toBe(`content ${at}`)
  expect((await readFile(join(directory, 'large'))).equals(large)).toBe(true)
})

test('nothing is visible before all of it is there, and what was there before stays until then', async () => {
  await layOut(entriesOf(file('version', '1'), file('old', '')), directory)
  const seen: string[] = []
  async function* watched() {
    for await (const entry of entriesOf(file('version', '2'), file('large', Buffer.alloc(5 << 20)), link('l', 'x'))) {
      yield entry
      seen.push(await text('version'))
    }
  }
  await layOut(watched(), directory)
  expect(seen).toEqual(['1', '1', '1'])
  expect(await text('version')).toBe('2')
  expect((await readdir(directory)).sort()).toEqual(['l', 'large', 'version'])
})

describe('a tree that would be written to where it must not', () => {
  const links = {
    'a link to outside and a file below it': [() => link('a', canary), () => file('a/canary', 'dead')],
    'a file below a link that comes later': [() => file('a/canary', 'dead'), () => link('a', canary)],
    'a link to outside and a folder of its name': [() => link('a', canary), () => folder('a'), () => file('a/new')],
    'a link to outside and a large file below it': [
      () => link('a', canary),
      () => file('a/canary', Buffer.alloc(5 << 20)),
    ],
    'a link to outside and a link below it': [() => link('a', canary), () => link('a/new', '/etc/passwd')],
    'a link below a link that comes later': [() => link('a/new', '/etc/passwd'), () => link('a', canary)],
    'a link to a file and a file of its name': [
      () => link('a', join(canary, 'canary')),
      () => file('a', 'dead'),
      () => file('a', 'dead'),
    ],
    'links through links': [() => link('b', 'a'), () => link('a', canary), () => file('b/canary', 'dead')],
  }
  test.each(Object.entries(links))('by %s is refused, and nothing outside is touched', async (_what, entries) => {
    const laid = layOut(entriesOf(...entries.map((make) => make())), directory)
    await expect(laid).rejects.toMatchObject(refused)
    expect(await readdir(canary)).toEqual(['canary'])
    expect(await readFile(join(canary, 'canary'), 'utf8')).toBe('alive')
    expect(existsSync(directory)).toBe(false)
  })
})

describe('a name that is there twice is refused', () => {
  test.each<[string, Buffer[]]>([
    ['two files', [file('a', '1'), file('a', '2')]],
    ['two large files', [file('a', Buffer.alloc(5 << 20)), file('a', Buffer.alloc(5 << 20))]],
    ['a file and a folder', [file('a', '1'), folder('a')]],
    ['a folder and a file', [folder('a'), file('a', '1')]],
    ['a file and one below it', [file('a', '1'), file('a/b', '2')]],
    ['a file and one below it, the other way round', [file('a/b', '2'), file('a', '1')]],
    ['a file and a link', [file('a', '1'), link('a', 'b')]],
    ['two links', [link('a', 'b'), link('a', 'c')]],
  ])('%s', async (_what, entries) => {
    await expect(layOut(entriesOf(...entries), directory)).rejects.toMatchObject(refused)
    expect(existsSync(directory)).toBe(false)
  })
})

test('a tree that is refused, or whose stream breaks, leaves nothing on the disk', async () => {
  const some = Array.from({ length: 40 }, (_, at) => file(`f${at}`, 'x'))
  await expect(layOut(entriesOf(...some, file('f1', 'again')), directory)).rejects.toMatchObject(refused)
  async function* broken() {
    yield* entriesOf(...some)
    throw new Error('the stream broke')
  }
  await expect(layOut(broken(), directory)).rejects.toThrow('the stream broke')
  expect(await readdir(join(parent, 'servers'))).toEqual([])
})
