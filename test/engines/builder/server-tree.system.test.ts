import { existsSync } from 'node:fs'
import { appendFile, lstat, mkdir, mkdtemp, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { BuildLog } from '../../../src/engines/builder/explain/log.ts'
import { moveTree, readList } from '../../../src/engines/builder/output/server-tree.ts'
import { foldersOf, openCaches } from '../../../src/engines/builder/run/cache.ts'
import { openWorkspace, type Workspace } from '../../../src/engines/builder/run/workspace.ts'
import { removeTree } from '../../../src/platform/files/remove-tree.ts'
import { createSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { Build } from '../../../src/services/deployments/builds.ts'

vi.setConfig({ testTimeout: 60_000 })

const limits = { memoryMb: 512, processes: 64, diskMb: 1024, timeoutMs: 50_000 }
const build = { projectId: 'prj_1', production: true, ref: 'main' } as Build
const log = { output() {}, endCommand() {} } as unknown as BuildLog

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await createSandbox('auto', { searchPath: process.env.PATH! })
})
afterAll(() => sandbox.close())

let parent: string
let directory: string
let workspace: Workspace
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'berth-server-tree-'))
  directory = join(parent, 'servers/dpl_1')
  await mkdir(join(parent, 'build'))
  workspace = await openWorkspace({
    ...{ sandbox, build, limits, log },
    caches: openCaches(join(parent, 'cache'), 1024),
    directory: join(parent, 'build'),
    folders: foldersOf('', []),
    signal: new AbortController().signal,
  })
})
afterEach(() => removeTree(parent))

/** What the customer's commands leave. */
async function leave(script: string): Promise<void> {
  const { exited } = sandbox.run({
    argv: ['/bin/sh', '-ec', script],
    workTree: workspace.tree,
    environment: {},
    limits,
    onOutput() {},
  })
  expect(await exited).toMatchObject({ code: 0 })
}

async function publish(selfContained = false): Promise<{ bytes: number }> {
  const found = await workspace.prepareServerTree(selfContained, (list) => readList(list))
  await moveTree(workspace.tree, directory)
  return found
}

const text = (path: string) => readFile(join(directory, path), 'utf8')
const saved = (id: number, path: string) => join(parent, 'cache/prj_1/production/folders', String(id), path)
const modules = { id: 0, cacheOfNext: 1, cacheOfModules: 7 }

test('the tree of a server has its folders, files, executable bits and links, and belongs to the platform', async () => {
  await leave(`
    mkdir -p a/b empty bin .git/objects
    printf ccc > a/b/c.js
    printf '#!/bin/sh' > bin/run; chmod 755 bin/run
    ln -s ../bin/run a/link; ln -s /etc/passwd outside; touch 'größe ☃'`)
  expect(await publish()).toEqual({ bytes: 12 })
  expect((await readdir(directory)).sort()).toEqual(['a', 'bin', 'empty', 'größe ☃', 'outside'])
  expect(await text('a/b/c.js')).toBe('ccc')
  expect(await readlink(join(directory, 'a/link'))).toBe('../bin/run')
  expect(await readlink(join(directory, 'outside'))).toBe('/etc/passwd')
  for (const path of ['', 'a/b/c.js', 'bin/run', 'a/link']) {
    expect((await lstat(join(directory, path))).uid, path).toBe(process.getuid!())
  }
  expect(existsSync(workspace.tree)).toBe(false)
})

test('modes are plain, whatever the build has set', async () => {
  await leave(`
    mkdir -p open closed/in sticky
    touch open/all open/set open/none closed/in/f; printf x > open/run
    chmod 666 open/all; chmod 6755 open/set; chmod 0 open/none; chmod 100 open/run
    chmod 1777 sticky; chmod 777 open; chmod 0 closed/in .`)
  await publish()
  const mode = async (path: string) => ((await stat(join(directory, path))).mode & 0o7777).toString(8)
  const files = await Promise.all(['open/all', 'open/set', 'open/none', 'open/run', 'closed/in/f'].map(mode))
  expect(files).toEqual(['644', '755', '644', '755', '644'])
  expect(await Promise.all(['', 'open', 'sticky', 'closed/in'].map(mode))).toEqual(['755', '755', '755', '755'])
})

test.each([
  ['that nobody may read', 'mkdir -p .git/a; touch .git/a/b; chmod 0 .git/a .git'],
  ['that is a link', 'ln -s /nowhere .git'],
  ['that is a link to a folder', 'mkdir a; ln -s a .git'],
  ['that is a file', 'touch .git; chmod 0 .git'],
  ['that is a pipe', 'mkfifo .git'],
])('a .git %s is not published', async (_what, script) => {
  await leave(`touch page; ${script}`)
  await publish()
  expect((await readdir(directory)).filter((name) => name !== 'a')).toEqual(['page'])
})

test('what only builds need is not published, and is there for the next one', async () => {
  await leave(`
    mkdir -p .next/cache .next/server node_modules/m node_modules/.cache .turbo .nuxt
    for f in .next/cache/a .next/server/b node_modules/m/c node_modules/.cache/d .turbo/e .nuxt/f; do printf $f > $f; done`)
  await publish()
  expect((await readdir(directory)).sort()).toEqual(['.next', '.nuxt', 'node_modules'])
  expect(await readdir(join(directory, '.next'))).toEqual(['server'])
  expect(await readdir(join(directory, 'node_modules'))).toEqual(['m'])
  await workspace.saveCache('key', directory)
  const paths = [saved(modules.id, 'm/c'), saved(modules.cacheOfNext, 'a'), saved(modules.cacheOfModules, 'd')]
  for (const path of paths) expect(await readFile(path, 'utf8')).toContain('/')
  const note = JSON.parse(await readFile(join(parent, 'cache/prj_1/production/note.json'), 'utf8'))
  expect(note).toMatchObject({ key: 'key', dependencies: ['0'] })
  // The server runs from its own.
  await writeFile(saved(modules.id, 'm/c'), 'changed by the next build')
  expect(await text('node_modules/m/c')).toBe('node_modules/m/c')
})

test('of a server that has copied its modules, no others are published', async () => {
  await leave(`
    mkdir -p node_modules/big .nuxt .output/server/node_modules/m
    touch node_modules/big/a .nuxt/b .output/server/node_modules/m/c`)
  await publish(true)
  expect(await readdir(directory)).toEqual(['.output'])
  expect(existsSync(join(directory, '.output/server/node_modules/m/c'))).toBe(true)
  await workspace.saveCache('key', directory)
  expect(existsSync(saved(modules.id, 'big/a'))).toBe(true)
})

test('a file shares its content with no other, also if the build gave it several names', async () => {
  await leave(`
    mkdir -p .next/cache 'a b'
    printf served > 'a b/one'; ln 'a b/one' two; ln 'a b/one' .next/cache/three; chmod 755 two`)
  await publish()
  await workspace.saveCache(null, directory)
  await appendFile(saved(modules.cacheOfNext, 'three'), ' changed')
  await appendFile(join(directory, 'two'), ' anew')
  expect([await text('a b/one'), await text('two')]).toEqual(['served', 'served anew'])
  expect((await stat(join(directory, 'a b/one'))).mode & 0o777).toBe(0o755)
})

test.each([
  ['in a folder that nobody may write to', 'mkdir d; printf x > d/a; ln d/a d/b; chmod 555 d', ['d/a', 'd/b']],
  ['that nobody may read', 'printf x > a; ln a b; chmod 0 a', ['a', 'b']],
  ['beside a link of any name', 'printf x > a; ln a b; printf v > v; ln -s v .berth-copy', ['a', 'b']],
])('a file of several names %s becomes several files', async (_what, script, paths) => {
  await leave(script)
  await publish()
  for (const path of paths) {
    const found = await lstat(join(directory, path))
    expect([found.isFile(), found.nlink, found.mode & 0o777, await text(path)], path).toEqual([true, 1, 0o644, 'x'])
  }
  if (existsSync(join(directory, 'v'))) expect(await text('v')).toBe('v')
})

test('the tree that was there before is replaced as a whole', async () => {
  await mkdir(join(directory, 'old'), { recursive: true })
  await leave('touch new')
  await publish()
  expect(await readdir(directory)).toEqual(['new'])
})

describe('a tree is refused, and nothing is published, if it has', () => {
  const deep = `i=0; while [ $i -lt 201 ]; do mkdir d; cd d; i=$((i+1)); done`
  test.each([
    ['a FIFO', 'mkfifo pipe', 'pipe is neither a file nor a folder'],
    ['a name that is not UTF-8', `mkdir a; touch "a/$(printf '\\377')"`, 'has a name that is not UTF-8'],
    ['a control character in a name', `touch "$(printf 'a\\nf 1 1 b')"`, 'control character'],
    ['a link whose target is not UTF-8', `ln -s "$(printf '\\377')" l`, 'l is a link whose target is not UTF-8'],
    ['a folder that is too deep', deep, 'is more than 200 folders deep'],
  ])('%s', async (_what, script, message) => {
    await leave(script)
    const refused = { code: 'output_unsafe', message: expect.stringContaining(message) }
    await expect(publish()).rejects.toMatchObject(refused)
    expect(existsSync(directory)).toBe(false)
  })
})

describe('the list of a tree is read as hostile input:', () => {
  const few = { entries: 3, bytes: 10, pathBytes: 20, depth: 3 }
  const read = (...parts: string[]) => readList(Readable.from(parts.map((part) => Buffer.from(part))), few)

  test('it may come in any pieces', async () => {
    expect(await read('d 2 4', '096 a\0\0f 1 3 a/b', '\0', '\0l 1 1 c\0ta', 'rget\0')).toEqual({ bytes: 3 })
    expect(await read()).toEqual({ bytes: 0 })
  })

  test.each([
    ['too many entries', ['f 1 1 a\0\0', 'f 1 1 b\0\0', 'd 1 1 c\0\0', 'l 1 1 d\0x\0'], 'output_too_large'],
    ['too many bytes', ['f 1 6 a\0\0', 'f 1 6 b\0\0'], 'output_too_large'],
    ['a path that never ends', ['f 1 1 ', 'x'.repeat(20_000)], 'output_too_large'],
    ['a path out of the tree', ['f 1 1 ../a\0\0'], 'output_unsafe'],
    ['an absolute path', ['f 1 1 /a\0\0'], 'output_unsafe'],
    ['no head', ['what\0\0'], 'output_unsafe'],
    ['a file of several names', ['f 2 1 a\0\0'], 'output_unsafe'],
  ])('%s', async (_what, parts, code) => {
    await expect(read(...parts)).rejects.toMatchObject({ code })
  })
})
