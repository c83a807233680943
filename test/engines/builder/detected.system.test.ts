import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  // No program of the machine but those that builds always have.
  platform = await startPlatform({ BUILD_CONCURRENCY: '4', QUOTA_SERVER_INSTANCES: '1' })
})
afterAll(() => platform.stop())

const deployed = async (name: string, files: Record<string, string>, body: object = {}) => {
  await platform.project(name, files, body)
  const id = await platform.deploy(name, { production: true })
  return { id, deployment: await platform.settled(id) }
}

const program = `require('node:http').createServer((_, answer) => answer.end(process.env.HOST + ' ' + process.argv[2])).listen(process.env.PORT, process.env.HOST)`

describe('a project without settings', () => {
  test('is auto, and is told of as nothing until it is cloned', async () => {
    await platform.project('fresh', { 'index.html': 'x' })
    const { body: project } = await platform.api.call('GET', '/projects/fresh')
    expect(project.framework).toBe('auto')
    const { body } = await platform.api.call('POST', '/deployments', { body: { project: 'fresh' } })
    expect(body.detected).toBeNull()
    expect((await platform.settled(body.id)).detected).toMatchObject({
      framework: 'static',
      kind: 'files',
      output: '.',
    })
  })

  test('that has a build like that of Vite is built, and shows what was detected and why', async () => {
    const build = 'mkdir -p www && echo built > www/index.html'
    const config = "export default { build: { outDir: 'www' } }"
    const { id, deployment } = await deployed('like-vite', {
      'package.json': scripts({ build }),
      'vite.config.js': config,
    })
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(deployment.detected).toEqual({
      framework: 'vite',
      packageManager: null,
      node: expect.stringMatching(/^(20|22|24)$/),
      buildCommand: 'npm run build',
      output: 'www',
      kind: 'files',
      startCommand: null,
      spaFallback: false,
      because: ['There is vite.config.js.', 'Vite writes to www.'],
    })
    expect(await platform.file(id, 'index.html')).toBe('built\n')
    expect(await platform.log(id)).toContain(
      'clone: Detected Vite (files): There is vite.config.js. Vite writes to www.',
    )
  })

  test('that is a single-page app says so, unless it brings a page for what is not there', async () => {
    const build = 'mkdir -p dist && echo page > dist/index.html'
    const files = { 'package.json': scripts({ build }) }
    const { id, deployment } = await deployed('vue-site', files, { framework: 'vue' })
    expect(deployment).toMatchObject({ state: 'READY', detected: { spaFallback: true } })
    expect((await platform.artifacts.read(id))?.spaFallback).toBe(true)
    const withPage = { 'package.json': scripts({ build: `${build} && echo no > dist/404.html` }) }
    const other = await deployed('vue-pages', withPage, { framework: 'vue' })
    expect(other.deployment).toMatchObject({ state: 'READY', detected: { spaFallback: false } })
    expect(other.deployment.detected.because.at(-1)).toContain('its own page for unknown paths')
    expect((await platform.artifacts.read(other.id))?.spaFallback).toBe(false)
  })

  test('that is a server is started by the command that was detected, and counts as one', async () => {
    const files = { 'package.json': scripts({ start: 'node server.js by-npm' }), 'server.js': program }
    const { id, deployment } = await deployed('server', files)
    expect(deployment).toMatchObject({ state: 'READY', error: null, files: null })
    expect(deployment.detected).toMatchObject({
      framework: 'node',
      kind: 'server',
      output: '.',
      startCommand: 'npm start',
    })
    expect(await platform.log(id)).toContain('run: $ npm start')
    const { body: account } = await platform.api.call('GET', '/account')
    expect(account.usage.serverInstances).toBe(1)

    const second = await deployed('second', { 'package.json': scripts({}), 'server.js': program })
    expect(second.deployment).toMatchObject({ state: 'ERROR', error: { code: 'quota_exceeded' } })

    await platform.api.call('PATCH', '/projects/server', {
      body: { framework: 'static', settings: { outputDirectory: '.' } },
    })
    const next = await platform.settled(await platform.deploy('server', { production: true }))
    expect(next).toMatchObject({ state: 'READY', detected: { kind: 'files', startCommand: null } })
    expect((await platform.settled(await platform.deploy('second', { production: true }))).state).toBe('READY')
    expect((await platform.api.db.project.findFirstOrThrow({ where: { name: 'second' } })).server).toBe(true)
  })

  test('that needs a program which is not installed fails at once', async () => {
    const { id, deployment } = await deployed('needs', { 'hugo.toml': '', 'content/a.md': '' }, {})
    // Where it is installed the build is its own affair.
    if (deployment.error?.code !== 'build_tool_missing') return expect(await platform.log(id)).toContain('$ hugo')
    expect(deployment.error.message).toContain('hugo is not installed')
    expect(deployment.detected).toMatchObject({ framework: 'hugo', buildCommand: 'hugo', output: 'public' })
  })

  test('that names a version of Node.js which is not to be had is told so', async () => {
    const { id, deployment } = await deployed('old', { 'index.html': '', '.nvmrc': '14' })
    expect(deployment.warnings).toEqual([expect.objectContaining({ code: 'node_version_unsupported', file: '.nvmrc' })])
    expect(await platform.log(id)).toContain('asks for Node.js 14')
  })
})

test('other accounts see nothing of what was detected', async () => {
  const id = await platform.deploy('fresh')
  const { token } = await platform.api.newAccount()
  expect((await platform.api.call('GET', `/deployments/${id}`, { token })).status).toBe(404)
})
