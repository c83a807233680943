import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { commitTo } from '../../helpers/repository.ts'
import { type Platform, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ BUILD_CONCURRENCY: '2' })
})
afterAll(() => platform.stop())

const json = (value: object) => JSON.stringify(value)

// What npm writes for these packages, which need nothing of a registry.
const lockfile = json({
  name: 'mono',
  lockfileVersion: 3,
  requires: true,
  packages: {
    '': { name: 'mono', workspaces: ['packages/*'] },
    'node_modules/@m/app': { resolved: 'packages/app', link: true },
    'node_modules/@m/lib': { resolved: 'packages/lib', link: true },
    'packages/app': { name: '@m/app', version: '1.0.0', dependencies: { '@m/lib': '1.0.0' } },
    'packages/lib': { name: '@m/lib', version: '1.0.0' },
  },
})

const files = {
  'package.json': json({ name: 'mono', private: true, workspaces: ['packages/*'] }),
  'package-lock.json': lockfile,
  'packages/lib/package.json': json({
    name: '@m/lib',
    version: '1.0.0',
    main: 'dist/index.js',
    scripts: { build: 'mkdir -p dist && cp index.js dist/index.js' },
  }),
  'packages/lib/index.js': 'exports.word = "hoisted"',
  'packages/app/package.json': json({
    name: '@m/app',
    version: '1.0.0',
    scripts: { start: 'node server.js' },
    dependencies: { '@m/lib': '1.0.0' },
  }),
  'packages/app/server.js': `
    const { word } = require('@m/lib')
    require('node:http').createServer((_, answer) => answer.end(word)).listen(process.env.PORT)`,
}

test('a server of a workspace has its libraries, built before it, and its dependencies are installed once', async () => {
  await platform.project('mono', files, { framework: 'node', settings: { rootDirectory: 'packages/app' } })
  const first = await platform.deploy('mono', { production: true })
  expect(await platform.settled(first)).toMatchObject({ state: 'READY', error: null })
  const log = await platform.log(first)
  expect(log).toContain('install: / $ npm install')
  expect(log).toContain('build: packages/lib $ npm run build')
  expect(log).toContain('The server answers')

  await commitTo(platform.repositories, 'acme/mono', 'main', { 'packages/app/readme.md': 'changed' })
  const second = await platform.deploy('mono', { production: true })
  expect(await platform.settled(second)).toMatchObject({ state: 'READY', error: null })
  const again = await platform.log(second)
  expect(again).toContain('The lockfile is unchanged')
  expect(again).not.toContain('npm install')
  expect(again).toContain('The server answers')
})
