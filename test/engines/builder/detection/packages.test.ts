import { describe, expect, test } from 'vitest'
import { lockfileWarnings } from '../../../../src/engines/builder/project/lockfile.ts'
import { findManager } from '../../../../src/engines/builder/project/manager.ts'
import { readManifest } from '../../../../src/engines/builder/project/manifest.ts'
import { readNodeRequirements } from '../../../../src/engines/builder/project/node-requirements.ts'
import { chooseNode } from '../../../../src/engines/builder/project/node-version.ts'
import { isAmong, packagesOf } from '../../../../src/engines/builder/project/workspaces.ts'
import { treeOf } from './tree.ts'

const managed = async (files: Record<string, string | object>, root = '') => {
  const own = files[`${root}package.json`] ?? {}
  return findManager(treeOf(files), root, await readManifest(JSON.stringify(own)))
}

describe('the package manager', () => {
  test.each([
    ['package-lock.json', 'npm'],
    ['npm-shrinkwrap.json', 'npm'],
    ['pnpm-lock.yaml', 'pnpm'],
    ['yarn.lock', 'yarn'],
    ['bun.lock', 'bun'],
    ['bun.lockb', 'bun'],
  ])('of %s is %s', async (lockfile, name) => {
    const { manager, warnings } = await managed({ 'package.json': {}, [lockfile]: '' })
    expect(manager).toEqual({ name, version: null, lockfile, directory: '' })
    expect(warnings).toEqual([])
  })

  test.each([
    ['pnpm@10.1.0', 'pnpm', '10.1.0'],
    ['yarn@4.9.1+sha512.abc', 'yarn', '4.9.1'],
    ['bun@1.3.0-beta.1', 'bun', '1.3.0-beta.1'],
  ])('%s is named by package.json', async (packageManager, name, version) => {
    const files = { 'package.json': { packageManager, dependencies: { a: '1' } } }
    expect((await managed(files)).manager).toMatchObject({ name, version, lockfile: null })
  })

  test.each(['pnpm', 'pnpm@latest', 'pnpm@^10', 'rm -rf@1.0.0', 'pnpm@1.0.0; id', `pnpm@${'9'.repeat(999)}`, 7, null])(
    '%s is no name of one',
    async (packageManager) => {
      const files = { 'package.json': { packageManager, dependencies: { a: '1' } } }
      expect((await managed(files)).manager).toEqual({ name: 'npm', version: null, lockfile: null, directory: '' })
    },
  )

  test('that package.json names goes before lockfiles of others, and there is a warning', async () => {
    const files = { 'package.json': { packageManager: 'yarn@1.22.22' }, 'pnpm-lock.yaml': '', 'yarn.lock': '' }
    const { manager, warnings } = await managed(files)
    expect(manager).toMatchObject({ name: 'yarn', lockfile: 'yarn.lock' })
    expect(warnings).toEqual([expect.objectContaining({ code: 'several_lockfiles' })])
  })

  test('is not needed without dependencies', async () => {
    expect((await managed({ 'package.json': { scripts: { build: 'make' } } })).manager).toBeNull()
  })

  test('of a member of a workspace is that of the workspace', async () => {
    const above = { 'package.json': { workspaces: ['apps/*'], packageManager: 'npm@11.0.0' }, 'package-lock.json': '' }
    const { manager } = await managed({ ...above, 'apps/web/package.json': {} }, 'apps/web/')
    expect(manager).toEqual({ name: 'npm', version: '11.0.0', lockfile: 'package-lock.json', directory: '' })
    const pnpm = {
      'package.json': {},
      'pnpm-workspace.yaml': 'packages: [a/*]',
      'pnpm-lock.yaml': '',
      'a/b/package.json': {},
    }
    expect((await managed(pnpm, 'a/b/')).manager).toMatchObject({ name: 'pnpm', directory: '' })
    const apart = { 'package.json': {}, 'yarn.lock': '', 'web/package.json': { dependencies: { a: '1' } } }
    expect((await managed(apart, 'web/')).manager).toMatchObject({ name: 'npm', lockfile: null, directory: 'web/' })
    const own = { ...above, 'web/package.json': {}, 'web/yarn.lock': '' }
    expect((await managed(own, 'web/')).manager).toMatchObject({
      name: 'yarn',
      lockfile: 'web/yarn.lock',
      directory: 'web/',
    })
  })
})

describe('the version of Node.js', () => {
  const chosen = (text: string | null, host: '20' | '22' | '24' = '24') => chooseNode([{ file: '.nvmrc', text }], host)
  test.each([
    ['22', '22'],
    ['v20.11.1\n', '20'],
    ['# ours\n\n22 # why', '22'],
    ['lts/*', '24'],
    ['lts/jod', '22'],
    ['node', '24'],
    ['>=18', '24'],
    ['^20 || ^22', '22'],
    ['>=20 <22', '20'],
    ['>= 20.9.0', '24'],
    ['20.x', '20'],
    ['20 - 22', '22'],
    ['>20', '24'],
    ['<24', '22'],
    ['*', '24'],
    [null, '24'],
    ['', '24'],
    ['$(id)', '24'],
    ['constructor', '24'],
    ['lts/__proto__', '24'],
    ['9'.repeat(5000), '24'],
  ])('of %j is %s', (text, node) => {
    expect(chosen(text)).toMatchObject({ node, warnings: [] })
  })

  test('is that of the machine wherever it may be', () => {
    expect(chosen('>=18', '20').node).toBe('20')
    expect(chosen('>=22', '20').node).toBe('24')
  })

  test.each([
    ['18', '20'],
    ['lts/hydrogen', '20'],
    ['21', '20'],
    ['23', '22'],
    ['26', '24'],
  ])('%s is not to be had: %s is used, with a warning', (text, node) => {
    const found = chosen(text)
    expect(found.node).toBe(node)
    expect(found.warnings).toEqual([expect.objectContaining({ code: 'node_version_unsupported', file: '.nvmrc' })])
  })
})

describe('the Node.js that packages need', () => {
  const needs = async (dependencies: object, lock?: object) => {
    const files = { 'package.json': { dependencies }, ...(lock && { 'package-lock.json': lock }) }
    const manager = { name: 'npm', version: null, lockfile: lock ? 'package-lock.json' : null, directory: '' } as const
    return readNodeRequirements(treeOf(files), manager, await readManifest(JSON.stringify({ dependencies })))
  }
  const locked = (engines: unknown) => ({ packages: { 'node_modules/a': { engines } } })

  test('is known of frameworks, by the version that is asked for', async () => {
    expect(await needs({ astro: '^7.0.0' })).toEqual([{ name: 'astro', range: '>=22' }])
    expect(await needs({ astro: 'latest' })).toHaveLength(1)
    expect(await needs({ astro: '^5.1.0', express: '^5', nuxt: 'file:../x' })).toEqual([])
  })

  test('is what the lockfile of npm has of them', async () => {
    expect(await needs({ a: '^1' }, locked({ node: '>=22.12.0' }))).toEqual([{ name: 'a', range: '>=22.12.0' }])
    expect(await needs({ b: '^1' }, locked({ node: '>=22' }))).toEqual([])
    for (const engines of [null, 7, [], 'x', { node: {} }, { node: '$(id)' }, { node: '>'.repeat(999) }])
      expect(await needs({ a: '^1' }, locked(engines))).toEqual([])
  })

  test('is taken instead of the one of the machine, never an older one, and within what the project asks for', () => {
    const chosen = (text: string | null, host: '20' | '24', ...ranges: string[]) =>
      chooseNode(
        [{ file: 'engines', text }],
        host,
        ranges.map((range) => ({ name: 'a', range })),
      )
    expect(chosen(null, '20', '>=22')).toEqual({ node: '24', because: ['a needs Node.js >=22.'], warnings: [] })
    expect(chosen(null, '20', '>=18')).toEqual({ node: '20', because: [], warnings: [] })
    expect(chosen('>=18', '20', '^20.19.0 || ^22.1')).toMatchObject({ node: '20' })
    expect(chosen('>=18', '20', '>=18', '^22')).toMatchObject({ node: '22' })
    expect(chosen('20', '20', '>=22')).toMatchObject({ node: '20' })
    expect(chosen(null, '24', '^20')).toMatchObject({ node: '24' })
    expect(chosen(null, '20', 'nonsense')).toMatchObject({ node: '20' })
  })
})

describe('the folders of a workspace', () => {
  test.each([
    [['apps/*'], 'apps/web', true],
    [['./apps/*/'], 'apps/web', true],
    [['apps/*'], 'website', false],
    [['apps/*'], 'apps/web/deep', false],
    [['packages/**'], 'packages/a/b', true],
    [['**'], 'a/b/c', true],
    [['**/web', '!old/**'], 'old/web', false],
    [['@scope/*', 'lib-*-js'], 'lib-a-b-js', true],
    [['{a,b}/*'], 'anything', true],
    [[], 'a', false],
  ])('%j have %s: %s', (patterns, path, among) => {
    expect(isAmong(patterns, path)).toBe(among)
  })

  test('are found in bounded time, whatever the patterns', () => {
    expect(isAmong(['*'.repeat(200)], 'a'.repeat(5000))).toBe(true)
    expect(isAmong(Array(1000).fill(`${'**/a/'.repeat(39)}b`), 'a/'.repeat(500))).toBe(false)
  })

  test.each([
    ['packages:\n  - \'apps/*\' # ours\n\n  - "b"\nother:\n  - c\n', ['apps/*', 'b']],
    ["packages: ['apps/*', b]\n", ['apps/*', 'b']],
    ['onlyBuiltDependencies:\n  - esbuild\n', null],
    ['packages: *all\n', null],
  ])('of pnpm in %j', (yaml, packages) => {
    expect(packagesOf(yaml)).toEqual(packages)
  })

  test('are installed with it; another folder by itself', async () => {
    const above = { 'package.json': { workspaces: { packages: ['apps/*'] } }, 'yarn.lock': '' }
    const files = { ...above, 'apps/web/package.json': {}, 'site/package.json': { dependencies: { a: '1' } } }
    expect((await managed(files, 'apps/web/')).manager).toMatchObject({ name: 'yarn', directory: '' })
    expect((await managed(files, 'site/')).manager).toMatchObject({ name: 'npm', directory: 'site/' })
  })
})

describe('a lockfile', () => {
  const warned = async (dependencies: object, packages: unknown) => {
    const files = { 'package.json': { dependencies }, 'package-lock.json': { lockfileVersion: 3, packages } }
    const manager = { name: 'npm', version: null, lockfile: 'package-lock.json', directory: '' } as const
    return lockfileWarnings(treeOf(files), manager, '', await readManifest(JSON.stringify({ dependencies })))
  }
  test('that fits gives no warning, one that does not names what changed', async () => {
    expect(await warned({ a: '^1' }, { '': { dependencies: { a: '^1' } } })).toEqual([])
    const [warning] = await warned({ a: '^1', b: '^2' }, { '': { dependencies: { a: '^1' } } })
    expect(warning).toMatchObject({ code: 'lockfile_outdated', message: expect.stringContaining('(b)') })
  })

  test.each([null, [], 'x', { '': [] }, { '': { dependencies: 'x' } }])(
    'of the form %j breaks nothing',
    async (packages) => {
      await warned({ a: '^1' }, packages)
    },
  )
})
