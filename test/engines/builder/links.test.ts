import { mkdirSync, realpathSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BuildFailure } from '../../../src/engines/builder/explain/failure.ts'
import { buildTree, createResolver } from '../../../src/engines/builder/tree/link-tree.ts'
import { followLinks } from '../../../src/engines/builder/tree/links.ts'
import { createPauses } from '../../../src/platform/pauses.ts'
import { counted, stepsOf } from '../../helpers/steps/steps.ts'

const limits = { entries: 1000, pathBytes: 1024, depth: 64, allPathBytes: 4 << 20 }

/** What is published: path → path of the file that it is. */
async function follow(
  files: string[],
  links: Record<string, string>,
  more: { folders?: string[]; root?: string } = {},
) {
  const tree = {
    files: new Map(files.map((path) => [path, path])),
    links: new Map(Object.entries(links)),
    folders: more.folders ?? [],
    root: more.root ?? '/build/dist',
  }
  return Object.fromEntries([...(await followLinks(tree, limits))].sort())
}

const refusedAs = (code: string) => expect.objectContaining({ code })

describe('a link', () => {
  test.each<[string, string, string]>([
    ['a name beside it', 'b/link', 'file'],
    ['a relative path', 'b/link', '../a/file'],
    ['a path that goes up within the output', 'b/link', '../b/../a/file'],
    ['an absolute path within the output', 'b/link', '/build/dist/a/file'],
    ['a path with empty and dot parts', 'b/link', './/.././/a/./file'],
  ])('to %s is published as the file it leads to', async (_what, path, target) => {
    const files = ['a/file', 'b/file']
    const expected = target === 'file' ? 'b/file' : 'a/file'
    expect(await follow(files, { [path]: target })).toEqual({
      'a/file': 'a/file',
      'b/file': 'b/file',
      [path]: expected,
    })
  })

  test('to a link is followed to its end, and through links to folders', async () => {
    const links = { one: 'two', two: 'three', three: 'short/file', short: 'a/b', long: 'short/../b/file' }
    expect(await follow(['a/b/file'], links)).toEqual({
      'a/b/file': 'a/b/file',
      one: 'a/b/file',
      two: 'a/b/file',
      three: 'a/b/file',
      'short/file': 'a/b/file',
      long: 'a/b/file',
    })
  })

  test('goes up from where a link to a folder leads, as the kernel does, not from its own name', async () => {
    const found = await follow(['x/y/z/file', 'x/y/right', 'wrong'], { go: 'x/y/z', up: 'go/../right' })
    expect(found.up).toBe('x/y/right')
    await expect(follow(['x/y/z/file', 'wrong'], { go: 'x/y/z', up: 'go/../wrong' })).rejects.toThrow(
      refusedAs('output_unsafe'),
    )
  })

  test.each<[string, Record<string, string>]>([
    ['itself', { a: 'a' }],
    ['a loop', { a: 'b', b: 'c', c: 'a' }],
    ['a loop of folders', { a: 'b/x', b: 'a/x' }],
    ['nothing', { a: 'nowhere' }],
    ['a name within a file', { a: 'file/below' }],
    ['a file as a folder', { a: 'file/' }],
    ['the parent of a file', { a: 'file/..' }],
    ['the parent of nothing', { a: 'nowhere/../file' }],
  ])('to %s is refused as not there', async (_what, links) => {
    await expect(follow(['file'], links)).rejects.toThrow(refusedAs('output_unsafe'))
    await expect(follow(['file'], links)).rejects.toThrow(/which does not exist/)
  })

  test.each([
    ['an absolute path', '/etc/passwd'],
    ['the root', '/'],
    ['the parent of the output', '..'],
    ['a file above the output', '../secret'],
    ['a file above by way of a folder', 'a/../../secret'],
    ['the parent by an absolute path', '/build/dist/..'],
    ['the output out of itself and back', '../dist/file'],
    ['a sibling whose name begins alike', '/build/dist-secret/file'],
    ['a parent within the link of another', 'out/x'],
  ])('to %s is refused as leaving the output', async (_what, target) => {
    await expect(follow(['file', 'a/file'], { link: target, out: '..' })).rejects.toThrow(
      /points outside the output directory/,
    )
  })

  test('is told of by its name and target, without control characters and at a bearable length', async () => {
    const target = `x\0\n\x1b[2J${'y'.repeat(3000)}`
    const attempt = () => follow(['file'], { link: target })
    await expect(attempt()).rejects.toThrow(/^link is a link to x\\x00\\x0a\\x1b/)
    try {
      await attempt()
    } catch (error) {
      expect((error as Error).message.length).toBeLessThan(1000)
    }
  })

  test('to a folder brings its files, and an empty folder none', async () => {
    expect(await follow(['a/x', 'a/b/y'], { c: 'a', e: 'empty' }, { folders: ['empty', 'a', 'a/b'] })).toEqual({
      'a/x': 'a/x',
      'a/b/y': 'a/b/y',
      'c/x': 'a/x',
      'c/b/y': 'a/b/y',
    })
  })

  test('to a folder that holds it ends after one round', async () => {
    expect(await follow(['a/x'], { 'a/self': '.', all: '.' })).toMatchObject({
      'a/x': 'a/x',
      'a/self/x': 'a/x',
      'all/a/x': 'a/x',
      'all/a/self/x': 'a/x',
    })
    expect(Object.keys(await follow(['a/x'], { 'a/self': '.' }))).toEqual(['a/self/x', 'a/x'])
  })

  test('is counted where 40 in a row are, as the kernel counts, and refused beyond', async () => {
    const chain = (length: number) =>
      Object.fromEntries(Array.from({ length }, (_, at) => [`l${at}`, at + 1 < length ? `l${at + 1}` : 'file']))
    expect((await follow(['file'], chain(40))).l0).toBe('file')
    await expect(follow(['file'], chain(41))).rejects.toThrow(/which does not exist/)
  })
})

describe('links that multiply', () => {
  test('folders that link to each other end in output_too_large', async () => {
    const names = Array.from({ length: 12 }, (_, at) => `d${at}`)
    const links = Object.fromEntries(names.flatMap((from) => names.map((to) => [`${from}/${to}`, `../${to}`])))
    for (const files of [[], names.map((name) => `${name}/file`)]) {
      await expect(follow(files, links)).rejects.toThrow(refusedAs('output_too_large'))
    }
  })

  test('folders that double at each step end in output_too_large', async () => {
    const steps = Array.from({ length: 30 }, (_, at) => at)
    const links = Object.fromEntries(
      steps.flatMap((at) => ['a', 'b'].map((side) => [`d${at}/${side}`, `../d${at + 1}`])),
    )
    await expect(follow(['d30/file'], links)).rejects.toThrow(BuildFailure)
  })

  test('a chain of folders, each linked from the one before, is refused and neither fills the stack nor the memory', async () => {
    const length = 20_000
    const tree = {
      files: new Map([[`d${length}/file`, 'file']]),
      links: new Map(Array.from({ length }, (_, at) => [`d${at}/next`, `../d${at + 1}`])),
      root: '/build/dist',
    }
    await expect(followLinks(tree, { ...limits, entries: 50_000 })).rejects.toThrow(BuildFailure)
  })

  test('never make a longer or deeper path than a file may have', async () => {
    const deep = Array(40).fill('d').join('/')
    await expect(follow([`${deep}/file`], { [`${deep}/again`]: '/build/dist' })).rejects.toThrow(
      /more than 64 folders deep/,
    )
    const long = Array(3).fill('n'.repeat(200)).join('/')
    await expect(follow([`${long}/file`], { [`${long}/again`]: '/build/dist' })).rejects.toThrow(
      /longer than 1024 bytes/,
    )
  })
})

describe('compared with the kernel', () => {
  let directory: string
  beforeAll(async () => {
    directory = realpathSync(await mkdtemp(join(tmpdir(), 'berth-links-')))
  })
  afterAll(() => rm(directory, { recursive: true, force: true }))

  const name = fc.constantFrom('a', 'b', 'c', 'd')
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'))
  const part = fc.oneof({ weight: 4, arbitrary: name }, fc.constantFrom('..', '.', ''))
  const target = fc
    .tuple(fc.boolean(), fc.array(part, { minLength: 1, maxLength: 5 }))
    .map(([absolute, parts]) => ({ absolute, text: parts.join('/') }))
    // A relative one must not begin with a slash, nor be empty.
    .map(({ absolute, text }) => ({ absolute, text: absolute ? text : `./${text}` }))

  let runs = 0

  /** Makes what can be made; returns what was. */
  function makeTree(root: string, wanted: { path: string; target: { absolute: boolean; text: string } | null }[]) {
    const files = new Map<string, string>()
    const links = new Map<string, string>()
    const folders = new Set<string>()
    const taken = (at: string) => files.has(at) || links.has(at)
    for (const { path, target } of wanted) {
      const parts = path.split('/')
      const above = parts.slice(1).map((_, depth) => parts.slice(0, depth + 1).join('/'))
      if (taken(path) || folders.has(path) || above.some(taken)) continue
      mkdirSync(join(root, dirname(path)), { recursive: true })
      for (const folder of above) folders.add(folder)
      if (target === null) {
        writeFileSync(join(root, path), path)
        files.set(path, path)
      } else {
        const text = target.absolute ? `${root}/${target.text}` : target.text
        symlinkSync(text, join(root, path))
        links.set(path, text)
      }
    }
    return { files, links, folders, root }
  }

  function kernel(root: string, link: string): { file: string } | 'folder' | 'outside' | 'absent' {
    try {
      const real = realpathSync.native(join(root, link))
      if (real !== root && !real.startsWith(`${root}/`)) return 'outside'
      return statSync(real).isFile() ? { file: real.slice(root.length + 1) } : 'folder'
    } catch {
      return 'absent'
    }
  }

  /** Where each of the links leads. */
  async function ours(tree: ReturnType<typeof makeTree>): Promise<Map<string, ReturnType<typeof kernel>>> {
    const { root, linkNodes } = await buildTree({ ...tree, folders: [...tree.folders] }, () => {}, createPauses())
    const placeOf = createResolver(root, tree.root, () => {}, createPauses())
    const found = new Map<string, ReturnType<typeof kernel>>()
    for (const [link, node] of linkNodes) {
      const place = await placeOf(node)
      if (typeof place === 'string') found.set(link, place)
      else found.set(link, place.file === null ? 'folder' : { file: place.file })
    }
    return found
  }

  test('every link leads where the kernel says, and never out of the output', async () => {
    const one = fc.record({ path, target: fc.option(target, { nil: null }) })
    await fc.assert(
      fc.asyncProperty(fc.array(one, { minLength: 1, maxLength: 14 }), async (wanted) => {
        const root = join(directory, String(++runs))
        mkdirSync(root)
        const tree = makeTree(root, wanted)
        for (const [link, said] of await ours(tree)) {
          const real = kernel(root, link)
          // Above the output nothing has the names that are generated, so the kernel finds nothing there.
          if (said === 'outside') expect(['outside', 'absent'], link).toContain(real)
          else expect(said, `${link} -> ${tree.links.get(link)}`).toEqual(real)
        }
      }),
      { numRuns: 300 },
    )
  })
})

describe('links that lead through each other by long ways', () => {
  /** A chain of links that ends at a file, and many that lead into it. */
  function into(chain: number, many: number, folder = '') {
    const names = Array.from({ length: chain }, (_, at) => `c${at}`)
    return {
      files: new Map([[`${folder}file`, 'file']]),
      links: new Map([
        ...Array.from({ length: many }, (_, at) => [`${folder}g${at}`, names[0]!] as const),
        ...names.map((name, at) => [`${folder}${name}`, names[at + 1] ?? 'file'] as const),
      ]),
      root: '/build/dist',
    }
  }

  const most = { ...limits, entries: 50_000 }

  test('take the steps of their own, not those of the chain for each', async () => {
    const { followLinks } = await counted<typeof import('../../../src/engines/builder/tree/links.ts')>(
      'src/engines/builder/tree/links.ts',
    )
    const [near, far] = [into(1, 2_000), into(38, 2_000)]
    const steps = await stepsOf(() => followLinks(near, most, () => null))
    expect(await stepsOf(() => followLinks(far, most, () => null))).toBeLessThan(steps * 1.2)
  })

  test('of long paths are refused before any of them is followed', async () => {
    const folder = `${Array(62).fill('abcdefghijklmno').join('/')}/`
    const tree = into(38, 9_700, folder)
    let looks = 0
    const pauses = () => {
      looks++
      return null
    }
    await expect(followLinks(tree, most, pauses)).rejects.toThrow(refusedAs('output_too_large'))
    expect(looks).toBe(0)
  })

  test('let others have their turn in between', async () => {
    let turns = 0
    let isOver = false
    const turn = () => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    const folder = `${Array(40).fill('d').join('/')}/`
    const pauses = () => new Promise<void>((resolve) => setImmediate(resolve))
    const found = await followLinks(into(38, 2_000, folder), most, pauses)
    isOver = true
    expect(found.size).toBe(2_039)
    // Before each path of the tree, and each link.
    expect(turns).toBeGreaterThan(4_000)
  })

  test('that all lead back to their own folder are counted, though nothing is published of them', async () => {
    const links = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`d/${at}`, '.']))
    await expect(follow(['file'], links)).rejects.toThrow(refusedAs('output_too_large'))
  })

  test('are refused before they hold up the others of this process', async () => {
    const deep = Array.from({ length: 50 }, (_, index) => `d${index}`).join('/')
    const way = 'a/../'.repeat(800)
    const links: Record<string, string> = { l0: `${way}${deep}` }
    for (let index = 1; index < 39; index++) links[`l${index}`] = `${way}l${index - 1}`
    for (let index = 0; index < 1000; index++) links[`x${index}`] = `${way}l38`
    await expect(follow(['a/file', `${deep}/file`], links)).rejects.toThrow(refusedAs('output_too_large'))
  })
})
