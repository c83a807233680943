// Installed dependencies go from one build to the next, and never from a preview to production.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commitTo } from '../../helpers/repository.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

describe('dependencies from one build to the next', () => {
  let platform: Platform
  let projectId: string
  beforeAll(async () => {
    platform = await startPlatform({ BUILD_TIMEOUT_MS: '120000' })
    const files = { 'package.json': scripts({ build: clean }), 'package-lock.json': '{}' }
    const settings = { installCommand: install }
    await platform.project('cached', files, { framework: 'vite', settings })
    await commitTo(platform.repositories, 'acme/cached', 'evil', { 'package.json': scripts({ build: evil }) })
    await commitTo(platform.repositories, 'acme/cached', 'other', { 'README.md': 'another branch' })
    projectId = (await platform.api.call('GET', '/projects/cached')).body.id
  })
  afterAll(() => platform.stop())

  const install = 'mkdir -p node_modules/x && echo original > node_modules/x/index.js'
  const clean = 'mkdir -p dist && cp node_modules/x/index.js dist/index.html'
  const evil = `echo evil >> node_modules/x/index.js && ${clean}`

  /** What a build of the branch publishes, and whether its dependencies were taken from the cache. */
  async function built(body: object): Promise<{ page: string; cached: boolean }> {
    const id = await platform.deploy('cached', body)
    expect(await platform.settled(id)).toMatchObject({ state: 'READY', error: null })
    // The cache is kept after the deployment is ready; then the directory of the build goes.
    await until(() => !existsSync(join(platform.api.config.dataDir, 'builds', id)))
    const cached = (await platform.log(id)).includes('using cached dependencies')
    return { page: (await platform.file(id, 'index.html'))!, cached }
  }

  test('a preview starts from production, changes only its own, and production never sees it', async () => {
    expect(await built({ production: true })).toEqual({ page: 'original\n', cached: false })
    expect(await built({ ref: 'evil' })).toEqual({ page: 'original\nevil\n', cached: true })
    expect(await built({ production: true })).toEqual({ page: 'original\n', cached: true })
    expect(await built({ ref: 'other' })).toEqual({ page: 'original\n', cached: true })
    expect(await built({ ref: 'evil' })).toEqual({ page: 'original\nevil\nevil\n', cached: true })
  })

  test('a changed lockfile installs anew', async () => {
    await commitTo(platform.repositories, 'acme/cached', 'other', { 'package-lock.json': '{ "changed": true }' })
    expect(await built({ ref: 'other' })).toEqual({ page: 'original\n', cached: false })
  })

  test('are gone with the project, after its reap job', async () => {
    const cache = join(platform.api.config.dataDir, 'cache', projectId)
    expect((await readdir(cache)).length).toBe(3)
    const { status } = await platform.api.call('DELETE', '/projects/cached')
    expect(status).toBeLessThan(300)
    await until(() => !existsSync(cache))
  })
})
