import { readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entriesOfSource, outputInSource, siteLimits, storeSite } from '../../../src/engines/builder/output/site.ts'
import { createGuard } from '../../../src/engines/builder/output/withheld.ts'
import type { Entry } from '../../../src/engines/builder/tree/entries.ts'
import type { Source, TreeEntry } from '../../../src/engines/builder/tree/source-tree.ts'
import { createArtifacts, type LocalArtifacts } from '../../../src/platform/artifacts/local-artifacts.ts'
import { entriesOf, file, folder, link, see } from './packed.ts'

let directory: string
let artifacts: LocalArtifacts
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-site-'))
  artifacts = createArtifacts(directory)
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const store = (...entries: Buffer[]) => storeSite(artifacts, entriesOf(...entries), '/build/dist')
const contentOf = (stored: { hash: string } | undefined) => readFile(artifacts.pathOf(stored!.hash), 'utf8')

describe('a static site', () => {
  test('is stored by content, and named in the order of its paths', async () => {
    const files = await store(folder('a'), file('b.txt', 'same'), file('a/c.txt', 'same'), file('index.html', '<h1>'))
    expect(Object.keys(files)).toEqual(['a/c.txt', 'b.txt', 'index.html'])
    expect(files['b.txt']).toEqual(files['a/c.txt'])
    expect(files['b.txt']).toMatchObject({ size: 4 })
    expect(await contentOf(files['index.html'])).toBe('<h1>')
  })

  test('has what links lead to, also below folders, and no link', async () => {
    const files = await store(
      file('a/page.html', 'page'),
      link('index.html', 'a/page.html'),
      link('b', '/build/dist/a'),
      folder('empty'),
      link('nothing', 'empty'),
    )
    expect(Object.keys(files)).toEqual(['a/page.html', 'b/page.html', 'index.html'])
    expect(await contentOf(files['index.html'])).toBe('page')
  })

  test('with many files, and one that is not held in memory, is stored whole', async () => {
    const large = Buffer.alloc(artifacts.maxBufferedBytes + 1, 'v')
    const many = Array.from({ length: 60 }, (_, at) => file(`f${at}.txt`, `content ${at}`))
    const files = await store(...many.slice(0, 30), file('video.mp4', large), ...many.slice(30))
    expect(Object.keys(files)).toHaveLength(61)
    for (let at = 0; at < 60; at++) expect(await contentOf(files[`f${at}.txt`])).toBe(`content ${at}`)
    expect(files['video.mp4']).toMatchObject({ size: large.length })
    expect((await readFile(artifacts.pathOf(files['video.mp4']!.hash))).equals(large)).toBe(true)
  })

  test('may name files as properties of objects are named', async () => {
    const files = await store(file('__proto__', 'p'), file('constructor', 'c'))
    expect(Object.keys(JSON.parse(JSON.stringify(files)))).toEqual(['__proto__', 'constructor'])
  })

  test.each<[string, Buffer[]]>([
    ['two files', [file('caf\u00e9.html', '1'), file('cafe\u0301.html', '2')]],
    ['a file and a link', [file('caf\u00e9.html', '1'), link('cafe\u0301.html', 'caf\u00e9.html')]],
    ['a folder', [file('caf\u00e9/a.html', '1'), file('cafe\u0301/a.html', '2')]],
    ['exactly the same name', [file('a', '1'), file('a', '2')]],
  ])('with twins in Unicode is refused: %s', async (_what, entries) => {
    await expect(store(...entries)).rejects.toMatchObject({ code: 'output_unsafe' })
  })

  test('without any file is output_missing, also where it has folders', async () => {
    await expect(store()).rejects.toMatchObject({ code: 'output_missing' })
    await expect(store(folder('a'), link('b', 'a'))).rejects.toMatchObject({ code: 'output_missing' })
  })

  test('with a link out of it is refused by name', async () => {
    await expect(store(file('index.html'), link('x', '../secret'))).rejects.toMatchObject({
      code: 'output_unsafe',
      message: expect.stringMatching(/^x is a link that points outside/),
    })
  })

  test('has names of 4 MiB at most, also where links make them', async () => {
    const long = Array.from({ length: 3 }, () => 'd'.repeat(200)).join('/')
    const page = (n: number) => file(`a/${long}/${n}.html`, 'the same page')
    const pages = Array.from({ length: 1_500 }, (_, n) => page(n))
    expect(Object.keys(await store(...pages, link('b', 'a')))).toHaveLength(3_000)
    const links = ['b', 'c', 'd', 'e'].map((name) => link(name, 'a'))
    await expect(store(...pages, ...links)).rejects.toMatchObject({ code: 'output_too_large' })
  })

  test('has nothing that the guard withholds, by whichever links it is reached', async () => {
    const entries = entriesOf(
      file('index.html', 'page'),
      file('config.php', '<?php'),
      file('.env.d/notes', 'x'),
      link('.well-known/c2', '../config.php'),
      link('through', 'conf.txt'),
      link('conf.txt', 'config.php'),
      link('envd', '.env.d'),
    )
    expect(Object.keys(await storeSite(artifacts, entries, '/build/dist', createGuard()))).toEqual(['index.html'])
  })

  test('whose stream breaks ends with that error, and leaves no half of a file', async () => {
    async function* broken(): AsyncGenerator<Entry> {
      yield* entriesOf(file('a', 'broken-a'))
      throw new Error('the stream broke')
    }
    await expect(storeSite(artifacts, broken(), '/build/dist')).rejects.toThrow('the stream broke')
    await expect.poll(() => readdirSync(join(directory, 'files'), { recursive: true }).join(' ')).not.toContain('.new')
  })
})

/** A commit in memory; every name has its bytes as characters. */
function commit(files: Record<string, string | { link: string } | { size: number }>): Source {
  const contents = new Map<string, Buffer>()
  const entries = new Map<string, TreeEntry>()
  for (const [path, what] of Object.entries(files)) {
    const name = Buffer.from(path)
    const content = Buffer.from(typeof what === 'string' ? what : 'link' in what ? what.link : '')
    const hash = String(contents.size)
    contents.set(hash, content)
    const size = typeof what === 'object' && 'size' in what ? what.size : content.length
    const kind = typeof what === 'object' && 'link' in what ? 'link' : 'file'
    entries.set(name.toString('latin1'), { name, kind, hash, size })
  }
  return {
    directory: '',
    commit: '',
    message: '',
    entries,
    submodules: [],
    usesLfs: false,
    text: async () => null,
    async *read(wanted) {
      for (const { hash } of wanted) {
        const content = contents.get(hash)!
        yield {
          whole: async () => content,
          async *stream() {
            yield content
          },
        }
      }
    },
    close() {},
  }
}

describe('the output of a commit that needs no build', () => {
  const found = (source: Source, root: string, ...candidates: { path: string; needsIndex: boolean }[]) =>
    outputInSource(source, root, candidates)

  test('is the first candidate that is there, and has an index.html where it needs one', () => {
    const source = commit({ 'public/robots.txt': '', 'out/page.html': '', 'outside/index.html': '' })
    const wanted = [
      { path: 'dist', needsIndex: false },
      { path: 'public', needsIndex: true },
      { path: 'out', needsIndex: false },
    ]
    expect(found(source, '', ...wanted)).toMatchObject({ path: 'out/', entries: [{ size: 0 }] })
  })

  test('is looked for below the root directory, and names at it are told once where there is none', () => {
    const source = commit({ 'site/a/1': '', 'site/a/2': '', 'site/b': '', 'index.html': '' })
    expect(found(source, 'site/', { path: '.', needsIndex: true })).toEqual({ missing: ['a', 'b'] })
    expect(found(source, 'site/', { path: 'a', needsIndex: false })).toMatchObject({ path: 'site/a/' })
  })

  test('tells of names as they are written', () => {
    expect(found(commit({ größe: '' }), '', { path: '.', needsIndex: true })).toEqual({ missing: ['größe'] })
  })

  const entriesIn = async (source: Source, path: string) => {
    const output = found(source, '', { path, needsIndex: false })
    if ('missing' in output) throw new Error('nothing there')
    const seen: unknown[] = []
    for await (const entry of entriesOfSource(source, output)) seen.push(await see(entry))
    return seen
  }

  test('comes as entries with paths below it, without what is never published', async () => {
    const source = commit({
      'dist/größe.html': 'größe',
      'dist/link': { link: 'größe.html' },
      'dist/node_modules/x': '',
      'dist/a/.git/config': '',
    })
    expect(await entriesIn(source, 'dist')).toEqual([
      { kind: 'file', path: 'größe.html', executable: false, content: Buffer.from('größe').toString('latin1') },
      { kind: 'link', path: 'link', target: 'größe.html' },
    ])
  })

  test.each<[string, Parameters<typeof commit>[0], string]>([
    ['a file larger than a site', { a: { size: siteLimits.bytes + 1 } }, 'output_too_large'],
    ['a name with a newline', { 'a\nb': '' }, 'output_unsafe'],
    ['a path that is too deep', { [Array(70).fill('d').join('/')]: '' }, 'output_unsafe'],
    ['a link whose target has a NUL', { a: { link: 'b\0c' } }, 'output_unsafe'],
    ['a link without a target', { a: { link: '' } }, 'output_unsafe'],
    ['a link whose target is longer than a path', { a: { link: 'x'.repeat(5000) } }, 'output_unsafe'],
  ])('is held to the limits of every site: %s', async (_what, files, code) => {
    await expect(entriesIn(commit(files), '.')).rejects.toMatchObject({ code })
  })

  test('is held to the count of files of every site', async () => {
    const many = Object.fromEntries(Array.from({ length: siteLimits.entries + 1 }, (_, at) => [`f${at}`, '']))
    await expect(entriesIn(commit(many), '.')).rejects.toMatchObject({ code: 'output_too_large' })
  })
})
