import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { removeTree } from '../../src/platform/files/remove-tree.ts'

const run = promisify(execFile)

let directory: string
let tree: string
let canary: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-remove-'))
  await chmod(directory, 0o755)
  tree = join(directory, 'tree')
  canary = join(directory, 'outside')
  await mkdir(tree)
  await mkdir(canary)
  await writeFile(join(canary, 'canary'), 'alive')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const alive = async () => {
  expect(await readdir(canary)).toEqual(['canary'])
  expect(await readFile(join(canary, 'canary'), 'utf8')).toBe('alive')
}

test('a tree goes with all that is in it; what is not there is no error', async () => {
  await mkdir(join(tree, 'a/b'), { recursive: true })
  await writeFile(join(tree, 'a/b/c'), '')
  await run('mkfifo', [join(tree, 'pipe')])
  await writeFile(Buffer.from(`${tree}/not-utf8-\xff`, 'latin1'), '')
  await writeFile(join(tree, '-rf'), '')
  await removeTree(tree)
  expect(existsSync(tree)).toBe(false)
  await removeTree(tree)
})

test('links are removed, never followed', async () => {
  await symlink(canary, join(tree, 'absolute'))
  await symlink('../outside', join(tree, 'relative'))
  await symlink('../outside/canary', join(tree, 'file'))
  await removeTree(tree)
  await alive()
  await symlink(canary, tree)
  await removeTree(tree)
  expect(existsSync(tree)).toBe(false)
  await alive()
})

test('a tree of 5,000 levels goes', async () => {
  const make = 'for (let i = 0; i < 5000; i++) { fs.mkdirSync("d"); process.chdir("d") }'
  await run(process.execPath, ['-e', make], { cwd: tree })
  await removeTree(tree)
  expect(existsSync(tree)).toBe(false)
})

test('directories that are closed to their owner go, also without root, and links in them are not opened', async () => {
  const inner = join(tree, 'a/closed/inner')
  await mkdir(inner, { recursive: true })
  await writeFile(join(inner, 'file'), '')
  await symlink(canary, join(tree, 'a/closed/link'))
  await chmod(canary, 0o755)
  const nobody = 65_534
  if (process.getuid?.() === 0) {
    for (const path of [directory, canary, tree, 'a', 'a/closed', 'a/closed/inner']) {
      await chown(path.startsWith('/') ? path : join(tree, path), nobody, nobody)
    }
  }
  for (const path of ['a/closed/inner', 'a/closed', 'a']) await chmod(join(tree, path), 0o000)
  await chmod(canary, 0o500)
  const script = `
    const { removeTree } = await import(${JSON.stringify(new URL('../../src/platform/files/remove-tree.ts', import.meta.url).href)})
    if (process.getuid() === 0) process.setuid(${nobody})
    await removeTree(${JSON.stringify(tree)})`
  await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script])
  expect(existsSync(tree)).toBe(false)
  await alive()
  expect((await import('node:fs')).statSync(canary).mode & 0o777).toBe(0o500)
})

test('a directory that becomes a link while it is removed leads nowhere', async () => {
  // Makes folders, and swaps each for a link and back, as fast as it can.
  const swap = `
    const [tree, outside] = process.argv.slice(1)
    const attempt = (what) => { try { what() } catch {} }
    console.log('ready')
    for (;;) for (const name of ['a', 'b', 'c']) {
      const [here, aside] = [tree + '/' + name, tree + '/' + name + '-aside']
      attempt(() => fs.mkdirSync(here + '/x/y', { recursive: true }))
      attempt(() => fs.writeFileSync(here + '/x/canary', ''))
      attempt(() => fs.renameSync(here, aside))
      attempt(() => fs.symlinkSync(outside, here))
      attempt(() => fs.unlinkSync(here))
      attempt(() => fs.renameSync(aside, here))
    }`
  const swapper = spawn(process.execPath, ['-e', swap, tree, canary], { stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    await once(swapper.stdout, 'data')
    for (let round = 0; round < 30; round++) {
      // What is made anew meanwhile may stay; that is told as an error.
      await removeTree(tree).catch(() => {})
      await mkdir(tree).catch(() => {})
      await alive()
    }
  } finally {
    swapper.kill('SIGKILL')
    await once(swapper, 'exit')
  }
  await removeTree(tree)
  expect(existsSync(tree)).toBe(false)
  await alive()
})
