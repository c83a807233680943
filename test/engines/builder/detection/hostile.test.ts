import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { detect } from '../../../../src/engines/builder/detection/detect.ts'
import { withoutComments } from '../../../../src/engines/builder/project/config-text.ts'
import { counted, takesLinearSteps } from '../../../helpers/steps/steps.ts'
import { treeOf } from './tree.ts'

type Adapters = typeof import('../../../../src/engines/builder/detection/adapters/index.ts')
type ConfigText = typeof import('../../../../src/engines/builder/project/config-text.ts')
const counting = {
  ...(await counted<Adapters>('src/engines/builder/detection/adapters/index.ts')),
  ...(await counted<ConfigText>('src/engines/builder/project/config-text.ts')),
}

const settings = { framework: 'auto', buildCommand: null, outputDirectory: null } as const
const detected = async (files: Record<string, string | object>) => (await detect(treeOf(files), '', settings)).detected

describe('a hostile package.json', () => {
  test.each([
    ['no JSON', '{'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a number', '7'],
    [
      'fields of wrong types',
      '{"scripts":7,"dependencies":["next"],"engines":"x","main":{},"packageManager":[],"workspaces":0}',
    ],
    ['scripts of wrong types', '{"scripts":{"build":{"a":1},"start":["node"]},"dependencies":{"next":{}}}'],
    ['names of the prototype', '{"__proto__":{"scripts":{"build":"x"}},"constructor":{"dependencies":{"next":"1"}}}'],
    ['a deep one', `{"dependencies":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`],
    ['one of many objects', `{"a":[${'{"b":{}},'.repeat(80_000)}0]}`],
    ['one that is too large', `{"scripts":{"build":"x"},"a":"${'x'.repeat(2 << 20)}"}`],
  ])('%s has no framework, and breaks nothing', async (_what, text) => {
    expect(await detected({ 'package.json': text, 'index.html': '' })).toMatchObject({
      framework: 'static',
      kind: 'files',
      buildCommand: null,
    })
  })

  test.each([
    ['no JSON', '{', 'is not a JSON object'],
    ['one of nested lists', `{"a":${'['.repeat(400_000)}${']'.repeat(400_000)}}`, 'is not a JSON object'],
    ['one of many keys', `{${Array.from({ length: 80_000 }, (_, n) => `"${n}":0`)}}`, 'is not a JSON object'],
    ['one that is too large', `"${'x'.repeat(50 << 20)}"`, 'is larger than'],
  ])('%s is told of', async (_what, text, why) => {
    const { warnings, hint } = await detect(treeOf({ 'package.json': text }), '', settings)
    expect(warnings).toEqual([{ code: 'file_ignored', message: expect.stringContaining(why), file: 'package.json' }])
    expect(hint).toContain('package.json was not read')
  })

  test('that is a link is not followed, and it is told', async () => {
    const source = treeOf({ 'web/package.json': '/etc/passwd', 'web/.nvmrc': '9'.repeat(10 << 20) })
    Object.assign(source.entries.get('web/package.json')!, { kind: 'link' })
    const { warnings } = await detect({ ...source, text: async () => null }, 'web/', settings)
    expect(warnings.map(({ file, message }) => [file, message])).toEqual([
      ['web/package.json', expect.stringContaining('symbolic link')],
      ['web/.nvmrc', expect.stringContaining('larger than')],
    ])
  })

  test.each(['npm@../../x', 'npm@1.0.0; id', 'pnpm@latest', 'evil@1.0.0'])(
    'with packageManager %s gets npm, and it is told',
    async (packageManager) => {
      const files = { 'package.json': { packageManager, dependencies: { a: '1' } } }
      const { detected, warnings } = await detect(treeOf(files), '', settings)
      expect(detected.packageManager).toMatchObject({ name: 'npm', version: null })
      expect(warnings).toEqual([expect.objectContaining({ code: 'package_manager_unknown', file: 'package.json' })])
      expect(JSON.stringify(warnings)).not.toContain(packageManager)
    },
  )

  test('with very many dependencies is read in bounds', async () => {
    const dependencies = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`a${at}`, '1']))
    expect((await detected({ 'package.json': { dependencies } })).packageManager).toMatchObject({ name: 'npm' })
  })

  test('never makes anything but commands that are known, with names in quotes', async () => {
    const main = "x'; curl evil; '.js"
    const files = { 'package.json': { main, dependencies: { express: '1' } }, [main]: '' }
    expect((await detected(files)).startCommand).toBeNull()
    const output = { projects: { "a'$(id)": { architect: { build: { options: { ssr: true } } } } } }
    const angular = { 'package.json': { dependencies: { '@angular/core': '1' } }, 'angular.json': output }
    expect((await detected(angular)).startCommand).toMatch(
      /^NG_ALLOWED_HOSTS="[^"]*" node 'dist\/server\/server\.mjs'$/,
    )
  })

  test('never has an output outside the root directory', async () => {
    for (const folder of ['../..', '/etc', 'a/../../b', '.git', '..']) {
      const config = `export default { outDir: '${folder}', build: { outDir: '${folder}' }, distDir: '${folder}', output: 'export' }`
      for (const [name, file] of [
        ['vite', 'vite.config.js'],
        ['astro', 'astro.config.mjs'],
        ['next', 'next.config.js'],
      ] as const) {
        const { output } = await detected({ 'package.json': { dependencies: { [name]: '1' } }, [file]: config })
        expect(output).toMatch(/^(dist|out)$/)
      }
    }
  })

  test('of any JSON is read', async () => {
    const names = fc.constantFrom(
      'scripts',
      'dependencies',
      'main',
      'build',
      'start',
      'next',
      'vite',
      'engines',
      'node',
      '__proto__',
    )
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(null, 7, true, 'node x', '>=18', '\0'),
        fc.dictionary(names, tie('value')),
        fc.array(tie('value')),
      ),
    })).value
    await fc.assert(
      fc.asyncProperty(json, async (value) => {
        expect(['files', 'server']).toContain(
          (await detected({ 'package.json': JSON.stringify(value), 'angular.json': JSON.stringify(value) })).kind,
        )
      }),
      { numRuns: 200 },
    )
  })
})

describe('a hostile configuration file', () => {
  test.each([
    'output:',
    'output: "',
    '/*',
    '//',
    '"',
    '`${',
    "outDir: '",
    'ssr :',
    'setOutputDirectory(',
    'mode =',
    '@',
  ])('of many %j takes linear steps', async (part) => {
    await takesLinearSteps(1 << 10, async (size) => {
      const config = counting.withoutComments(part.repeat(size / part.length))
      const manifest = {
        unreadable: false,
        scripts: new Map(),
        dependencies: new Map([['@sveltejs/kit', '1']]),
        main: null,
        packageManager: null,
        node: null,
        workspaces: false,
        members: null,
      }
      const facts = {
        manifest,
        hasManifest: true,
        manager: null,
        buildText: config,
        listener: null,
        has: () => true,
        hasFolder: () => true,
      }
      for (const adapter of counting.adapters) await adapter.plan(facts, config)
    })
  })

  test('keeps its strings when comments go', () => {
    expect(withoutComments("a = 'http://x' // c\nb /* d */ = `//` // e")).toBe("a = 'http://x' \nb   = `//` ")
    expect(withoutComments('"a\\"//b" //c')).toBe('"a\\"//b" ')
    expect(withoutComments("it's\n// gone\nx")).toBe("it's\n\nx")
  })
})
