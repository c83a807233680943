import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CacheInfo, type Caches, openCaches } from '../../../src/engines/builder/run/cache.ts'
import type { Build } from '../../../src/services/deployments/builds.ts'

describe('caches', () => {
  let directory: string
  let root: string
  let caches: Caches
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-caches-'))
    root = join(directory, 'cache')
    caches = openCaches(root, 1)
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  const production = (projectId = 'prj_1') => ({ projectId, production: true, ref: 'main' }) as Build
  const preview = (ref: string, projectId = 'prj_1') => ({ projectId, production: false, ref }) as Build
  const note = (more: Partial<CacheInfo> = {}): CacheInfo => ({
    key: 'k',
    kb: 1,
    usedAt: new Date().toISOString(),
    ...more,
  })

  let made = 0
  const place = () => join(directory, `build-${++made}`)

  async function give(build: Build, content: string, more: Partial<CacheInfo> = {}): Promise<void> {
    const from = place()
    await mkdir(from)
    await writeFile(join(from, 'content'), content)
    await caches.store(build, from, note(more))
  }

  /** Takes it and tells what is in it. */
  async function take(build: Build): Promise<{ content: string; own: boolean; at: string } | null> {
    const at = place()
    const taken = await caches.acquire(build, at)
    if (taken === null) expect(existsSync(at)).toBe(false)
    return taken && { content: await readFile(join(at, 'content'), 'utf8'), own: taken.own, at }
  }

  test('a build waits for a cache that is being saved, and does without if that fails', async () => {
    const copied = Promise.withResolvers<void>()
    const saved = caches.whileSaving(production(), () => copied.promise.then(() => give(production(), 'copied')))
    const [own, borrowed] = [take(production()), take(preview('topic', 'prj_2'))]
    expect(await borrowed).toBeNull()
    copied.resolve()
    expect(await own).toMatchObject({ content: 'copied', own: true })
    await saved
    const failing = caches.whileSaving(production(), () => Promise.reject(new Error('no room')))
    const without = take(production())
    await expect(failing).rejects.toThrow('no room')
    expect(await without).toBeNull()
  })

  test('a production build finds what the one before gave, and its note', async () => {
    expect(await take(production())).toBeNull()
    const given = note({ key: 'abc', kb: 7 })
    await mkdir(join(directory, 'given'))
    await caches.store(production(), join(directory, 'given'), given)
    expect(await caches.acquire(production(), place())).toEqual({ note: given, own: true })
  })

  test('a preview borrows of production, and production gets it back as it was', async () => {
    await give(production(), 'production')
    const borrowed = (await take(preview('feature')))!
    expect(borrowed).toMatchObject({ content: 'production', own: false })
    await caches.returnBorrowed(preview('feature'), borrowed.at)
    expect(await take(production())).toMatchObject({ content: 'production', own: true })
  })

  test('a branch has its own afterwards, which neither production nor another branch or project finds', async () => {
    await give(preview('feature'), 'feature')
    expect(await take(production())).toBeNull()
    expect(await take(preview('other'))).toBeNull()
    expect(await take(preview('feature', 'prj_2'))).toBeNull()
    expect(await take(preview('feature'))).toMatchObject({ content: 'feature', own: true })
  })

  test.each(['production', '../production', 'branch-', 'x/../../../etc', 'main'])(
    'a branch called %s is a branch like any other',
    async (ref) => {
      await give(production(), 'production')
      await give(preview(ref), 'preview')
      expect(await take(production())).toMatchObject({ content: 'production' })
      expect(await readdir(root)).toEqual(['prj_1'])
    },
  )

  test('two builds at once never share one: the second finds none', async () => {
    await give(production(), 'production')
    const both = await Promise.all([take(production()), take(production())])
    expect(both.filter(Boolean)).toHaveLength(1)
    await give(production(), 'again')
    const previews = await Promise.all([take(preview('a')), take(preview('b'))])
    expect(previews.filter(Boolean)).toHaveLength(1)
  })

  test('a fork borrows nothing of production, and shares nothing with a branch of the same name', async () => {
    const fork = { ...preview('refs/pull/7/head'), untrusted: true }
    await give(production(), 'production')
    await give(preview('refs/pull/7/head'), 'branch')
    expect(await take(fork)).toBeNull()
    await give(fork, 'fork')
    expect(await take(fork)).toMatchObject({ content: 'fork', own: true })
    expect(await take(preview('refs/pull/7/head'))).toMatchObject({ content: 'branch', own: true })
    expect(await take(production())).toMatchObject({ content: 'production' })
  })

  test('what was borrowed does not replace what production gave meanwhile', async () => {
    await give(production(), 'old')
    const borrowed = (await take(preview('feature')))!
    await give(production(), 'new')
    await caches.returnBorrowed(preview('feature'), borrowed.at)
    expect(await take(production())).toMatchObject({ content: 'new' })
  })

  test('the later of two that are given stays', async () => {
    await give(production(), 'first')
    await give(production(), 'second')
    expect(await take(production())).toMatchObject({ content: 'second' })
  })

  test.each([
    ['without a note', null],
    ['with an empty note', ''],
    ['with half a note', '{"key":"k","fol'],
    ['with another note', '[]'],
    ['with no note but a word', 'null'],
  ])('one that a crash left %s is never taken for whole, and holds no build up', async (_what, text) => {
    await give(production(), 'torn')
    const [slot] = await readdir(join(root, 'prj_1'))
    const path = join(root, 'prj_1', slot!, 'note.json')
    await (text === null ? rm(path) : writeFile(path, text))
    expect(await take(preview('feature'))).toBeNull()
    await give(production(), 'whole')
    expect(await take(production())).toMatchObject({ content: 'whole' })
  })

  test('one that a crash left is cleared away when another is given, and breaks nothing', async () => {
    await mkdir(join(root, 'prj_gone/production'), { recursive: true })
    await mkdir(join(root, 'prj_torn/production'), { recursive: true })
    await writeFile(join(root, 'prj_torn/production/note.json'), '{')
    await give(production(), 'production')
    expect(existsSync(join(root, 'prj_gone/production'))).toBe(false)
    expect(existsSync(join(root, 'prj_torn/production'))).toBe(false)
    expect(await take(production())).toMatchObject({ content: 'production' })
  })

  test('the least recently used go first when all are larger than the bound', async () => {
    const usedAt = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString()
    await give(production('prj_b'), 'b', { kb: 400, usedAt: usedAt(2) })
    await give(production('prj_a'), 'a', { kb: 400, usedAt: usedAt(1) })
    await give(preview('x', 'prj_a'), 'x', { kb: 200, usedAt: usedAt(4) })
    expect(await take(preview('y', 'prj_none'))).toBeNull()
    await give(production('prj_c'), 'c', { kb: 400, usedAt: usedAt(3) })
    expect(await take(production('prj_a'))).toBeNull()
    expect(await take(production('prj_b'))).toMatchObject({ content: 'b' })
    expect(await take(preview('x', 'prj_a'))).toMatchObject({ content: 'x' })
    expect(await take(production('prj_c'))).toMatchObject({ content: 'c' })
  })

  test('one that is removed is never seen with half of its content', async () => {
    const from = place()
    await mkdir(join(from, 'folders'), { recursive: true })
    const files = 2000
    for (let at = 0; at < files; at++) writeFileSync(join(from, 'folders', String(at)), '')
    await caches.store(production('prj_old'), from, note({ kb: 900, usedAt: '2026-01-01T00:00:00.000Z' }))
    const slot = join(root, 'prj_old/production/folders')
    const counts = new Set<number>([readdirSync(slot).length])
    let isDone = false
    const giving = give(production(), 'new', { kb: 900 }).finally(() => {
      isDone = true
    })
    while (!isDone) {
      if (existsSync(slot)) {
        try {
          counts.add(readdirSync(slot).length)
        } catch {
          // It went in between.
        }
      }
      await setImmediate()
    }
    await giving
    expect([...counts]).toEqual([files])
    expect(await readdir(join(root, 'prj_old'))).toEqual([])
  })

  test('one that a crash left half removed is cleared away', async () => {
    await mkdir(join(root, 'prj_old/production.removed-0123456789ab/folders'), { recursive: true })
    await give(production(), 'new')
    expect(await readdir(join(root, 'prj_old'))).toEqual([])
  })

  test('one that is larger than the bound is not kept', async () => {
    await give(production(), 'huge', { kb: 2000 })
    expect(await take(production())).toBeNull()
  })

  test('a project is removed with all of its branches, and no other', async () => {
    await give(production(), 'production')
    await give(preview('a'), 'a')
    await give(production('prj_2'), 'other')
    await caches.removeProject('prj_1')
    expect(await readdir(root)).toEqual(['prj_2'])
    await caches.removeProject('prj_1')
  })
})
