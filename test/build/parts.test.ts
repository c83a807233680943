// A build is current exactly as long as the content of its sources: nothing else counts, and a half one never does.
import { cpSync, existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type BuildOptions, buildParts, partNames } from '../../build/parts.ts'

let root: string
let built: string[]

const write = async (path: string, text: string) => {
  await mkdir(join(root, path, '..'), { recursive: true })
  await writeFile(join(root, path), text)
}

/** Each build is a copy of the sources. */
const builders: NonNullable<BuildOptions['builders']> = {
  async server(from, to) {
    built.push('server')
    cpSync(join(from, 'src'), join(to, 'src'), { recursive: true })
  },
  async console(from, to) {
    built.push('console')
    cpSync(join(from, 'dashboard'), to, { recursive: true })
  },
  async cli(from, to) {
    built.push('cli')
    cpSync(join(from, 'cli/src'), to, { recursive: true })
  },
}

const build = (options: BuildOptions = {}) => buildParts(partNames, { root, builders, ...options })

async function rebuilt(options?: BuildOptions): Promise<string[]> {
  built = []
  await build(options)
  return built.sort()
}

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-build-'))
  built = []
  const sources = [
    ...['src/cli.ts', 'src/one.ts', 'prisma/migrate.ts', 'package.json', 'tsconfig.json', 'package-lock.json'],
    ...['dashboard/src/main.tsx', 'sdk/src/client.ts', 'cli/src/main.ts', 'cli/build.ts', 'cli/package.json'],
    ...['build/parts.ts', 'node_modules/.package-lock.json'],
  ]
  for (const path of sources) await write(path, `// ${path}`)
  await build()
})
afterEach(() => rm(root, { recursive: true, force: true }))

test('nothing is built twice', async () => {
  expect(built.sort()).toEqual(['cli', 'console', 'server'])
  expect(await rebuilt()).toEqual([])
  expect(await readlink(join(root, 'dist/src'))).toMatch(/^builds\/server-[0-9a-f]{16}\/src$/)
})

test('a file that was touched or written again is the same', async () => {
  await utimes(join(root, 'src/one.ts'), new Date(), new Date(0))
  await write('src/one.ts', '// src/one.ts')
  expect(await rebuilt()).toEqual([])
})

test('changed content is built, whatever the size and the time of the file', async () => {
  const time = new Date(2026, 0, 1)
  await utimes(join(root, 'src/one.ts'), time, time)
  await write('src/one.ts', '// src/two.ts')
  await utimes(join(root, 'src/one.ts'), time, time)
  expect(await rebuilt()).toEqual(['server'])
  expect(await readFile(join(root, 'dist/src/one.ts'), 'utf8')).toBe('// src/two.ts')
})

test('each part has sources of its own, and all depend on the packages and on the builder', async () => {
  const changes: [path: string, parts: string[]][] = [
    ['prisma/migrate.ts', ['server']],
    ['package.json', ['server']],
    ['dashboard/src/main.tsx', ['console']],
    ['cli/src/main.ts', ['cli']],
    ['sdk/src/client.ts', ['cli', 'console']],
    ['node_modules/.package-lock.json', ['cli', 'console', 'server']],
    ['build/parts.ts', ['cli', 'console', 'server']],
  ]
  for (const [path, parts] of changes) {
    await write(path, 'changed')
    expect([path, await rebuilt()]).toEqual([path, parts])
  }
})

test('a deleted, added or renamed source leaves nothing behind', async () => {
  await rm(join(root, 'src/one.ts'))
  expect(await rebuilt()).toEqual(['server'])
  expect(await readdir(join(root, 'dist/src'))).toEqual(['cli.ts'])
  await write('src/three.ts', '// src/one.ts')
  expect(await rebuilt()).toEqual(['server'])
  expect(await readdir(join(root, 'dist/src'))).toEqual(['cli.ts', 'three.ts'])
})

test('what was built before is found again', async () => {
  await write('src/one.ts', 'changed')
  await build()
  await write('src/one.ts', '// src/one.ts')
  expect(await rebuilt()).toEqual([])
  expect(await readFile(join(root, 'dist/src/one.ts'), 'utf8')).toBe('// src/one.ts')
})

test('a build that fails is none, and the next one starts afresh', async () => {
  await write('src/one.ts', 'wrong')
  const failing: BuildOptions['builders'] = {
    ...builders,
    async server(_root, to) {
      await writeFile(join(to, 'half'), '')
      throw new Error('one.ts is wrong')
    },
  }
  await expect(build({ builders: failing })).rejects.toThrow('one.ts is wrong')
  await expect(build({ builders: failing })).rejects.toThrow('one.ts is wrong')
  expect((await readdir(join(root, 'dist/builds'))).filter((name) => name.startsWith('draft-'))).toEqual([])
  expect(await rebuilt()).toEqual(['server'])
  expect(existsSync(join(root, 'dist/src/half'))).toBe(false)
})

test('a source that changes during a build is built again', async () => {
  await write('src/one.ts', 'first')
  let builds = 0
  const slow: BuildOptions['builders'] = {
    ...builders,
    async server(from, to) {
      await builders.server!(from, to)
      if (++builds === 1) await write('src/one.ts', 'second')
    },
  }
  await build({ builders: slow })
  expect(builds).toBe(2)
  expect(await readFile(join(root, 'dist/src/one.ts'), 'utf8')).toBe('second')
  await write('src/one.ts', 'first')
  expect(await rebuilt()).toEqual(['server'])
})

test('two builds at once both succeed', async () => {
  await write('src/one.ts', 'changed')
  const [one, other] = await Promise.all([build(), build()])
  expect(one).toEqual(other)
  expect(await readFile(join(root, 'dist/src/one.ts'), 'utf8')).toBe('changed')
})

test('takes the place of what older versions compiled', async () => {
  await rm(join(root, 'dist'), { recursive: true })
  await write('dist/src/deleted.js', '')
  await write('dist/package.json', '{}')
  await build()
  expect(await readdir(join(root, 'dist/src'))).toEqual(['cli.ts', 'one.ts'])
  expect(existsSync(join(root, 'dist/package.json'))).toBe(false)
})

test('the last five builds besides the current one are kept', async () => {
  for (let count = 0; count < 9; count++) {
    await write('src/one.ts', `${count}`)
    await build()
  }
  const left = (await readdir(join(root, 'dist/builds'))).filter((name) => name.startsWith('server-'))
  expect(left).toHaveLength(6)
  expect(await readFile(join(root, 'dist/src/one.ts'), 'utf8')).toBe('8')
})

test('old builds are deleted after a day, and never the current ones', async () => {
  const old = new Date(Date.now() - 2 * 86_400_000)
  const before = await readdir(join(root, 'dist/builds'))
  await write('src/one.ts', 'changed')
  const { server, console, cli } = await build()
  for (const name of [...before.map((name) => join(root, 'dist/builds', name)), server, console, cli]) {
    await utimes(name, old, old)
  }
  await write('sdk/src/client.ts', 'changed')
  await build()
  const left = (await readdir(join(root, 'dist/builds'))).map((name) => name.replace(/-.*/, '')).sort()
  expect(left).toEqual(['cli', 'console', 'server'])
  expect(existsSync(server)).toBe(true)
})
