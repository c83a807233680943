import { spawnSync } from 'node:child_process'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform({ BUILD_CONCURRENCY: '8' })
})
afterAll(() => platform.stop())

const deployed = async (name: string, files: Record<string, string>, body: object = {}) => {
  await platform.project(name, files, body)
  const id = await platform.deploy(name)
  return { id, deployment: await platform.settled(id) }
}

describe('a repository', () => {
  test('without package.json is published as it is, cloned over HTTP at exactly its commit', async () => {
    const { id, deployment } = await deployed('plain', { 'index.html': '<h1>hi</h1>', 'a/b.txt': 'b' })
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(await platform.file(id, 'index.html')).toBe('<h1>hi</h1>')
    expect(await platform.file(id, 'a/b.txt')).toBe('b')
    expect(Object.keys((await platform.artifacts.read(id))!.files)).toEqual(['a/b.txt', 'index.html'])
    expect(platform.host.hits.some((path) => path.includes('git-upload-pack'))).toBe(true)
  })

  test('with rules that cannot be followed is published with warnings that name them', async () => {
    const { id, deployment } = await deployed('rules', {
      'index.html': 'x',
      _redirects: '/ok /fine\n/a /b 301 Country=de\n/c /d 302 Role=admin',
      _headers: '/*\n  X-Fine: 1\n  Set-Cookie: a=b\n  Basic-Auth: me:hidden-word',
    })
    expect(deployment.state).toBe('READY')
    expect(deployment.warnings).toMatchObject([
      { code: 'rule_ignored', file: '_redirects', line: 2, message: expect.stringContaining('Country=de') },
      { code: 'rule_ignored', file: '_redirects', line: 3, message: expect.stringContaining('Role=admin') },
      { code: 'rule_ignored', file: '_headers', line: 3, message: 'Set-Cookie cannot be set by a site.' },
    ])
    const log = await platform.log(id)
    expect(log).toContain('Warning: _redirects, line 2: ')
    expect(log).not.toContain('hidden-word')
  })

  test('whose rules were to protect something, and cannot, is not published', async () => {
    const { deployment } = await deployed('unprotected', {
      'index.html': 'x',
      _headers: '/a*b\n  Basic-Auth: me:hidden-word',
    })
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'output_unsafe' } })
    expect(deployment.error.message).toContain('_headers, line 2')
    expect(JSON.stringify(deployment)).not.toContain('hidden-word')
    const large = await deployed('large-rules', { 'index.html': 'x', _headers: `/a\n  X-A: 1\n${'#'.repeat(300_000)}` })
    expect(large.deployment).toMatchObject({ state: 'ERROR', error: { code: 'output_unsafe' } })
  })

  test('with a build script is built with the variables of its target and the facts of the build, and nothing of the server', async () => {
    const build = 'mkdir -p dist && env | sort > dist/env.txt && echo "key is $API_KEY"'
    await platform.project('env', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    const put = (key: string, value: string, target: string) =>
      platform.api.call('PUT', `/projects/env/env/${key}`, { body: { value, target } })
    await put('API_KEY', 'hunter2hunter2', 'all')
    await put('ONLY_PROD', 'x1234', 'production')
    process.env.SERVER_SECRET = 'leak-me'
    const id = await platform.deploy('env')
    const deployment = await platform.settled(id)
    delete process.env.SERVER_SECRET
    expect(deployment.state).toBe('READY')
    const text = (await platform.file(id, 'env.txt'))!
    expect(text).toContain('API_KEY=hunter2hunter2')
    expect(text).not.toContain('ONLY_PROD')
    expect(text).toMatch(/^CI=true$/m)
    expect(text).toContain(`BERTH_URL=${deployment.url}`)
    expect(text).toMatch(new RegExp(`^BERTH_COMMIT=${deployment.commit}[0-9a-f]{33}$`, 'm'))
    expect(text).toMatch(/^BERTH_REF=main$/m)
    expect(text).toMatch(/^BERTH_ENV=preview$/m)
    expect(text).not.toMatch(/leak-me|DATABASE_URL|SECRETS_KEY/)
    const log = await platform.log(id)
    expect(log).toContain('build: key is ***')
    expect(log).not.toContain('hunter2')
  })

  test('is told of by its message, and by what its build made and how long each step took', async () => {
    const build = 'mkdir dist && printf abc > dist/index.html && printf de > dist/b.txt'
    const { deployment } = await deployed('told', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    expect(deployment).toMatchObject({ state: 'READY', files: 2, bytes: 5, commitMessage: expect.stringMatching(/./) })
    expect(deployment.steps.map(({ name }: { name: string }) => name)).toEqual(['clone', 'build', 'publish'])
    const failed = await deployed('untold', { 'package.json': scripts({ build: 'exit 1' }) }, { framework: 'vite' })
    expect(failed.deployment).toMatchObject({ state: 'ERROR', files: null, bytes: null })
    expect(failed.deployment.steps.at(-1)).toMatchObject({ name: 'build' })
  })

  test('is built in its root directory with its own commands and output directory', async () => {
    const settings = {
      rootDirectory: 'packages/site',
      buildCommand: 'mkdir out && cp page.html out/index.html',
      outputDirectory: 'out',
    }
    const { id, deployment } = await deployed(
      'mono',
      { 'packages/site/page.html': 'mono', 'other/x': '' },
      { settings },
    )
    expect(deployment.state).toBe('READY')
    expect(await platform.file(id, 'index.html')).toBe('mono')
  })

  test('takes directories of the settings however they are written', async () => {
    const settings = { rootDirectory: './', outputDirectory: './public//' }
    const { id, deployment } = await deployed('written', { 'public/a.html': 'a', 'secret.txt': '' }, { settings })
    expect(deployment).toMatchObject({ state: 'READY', error: null })
    expect(Object.keys((await platform.artifacts.read(id))!.files)).toEqual(['a.html'])
  })

  test('deployed twice stores the same files once', async () => {
    const first = await platform.deploy('plain')
    await platform.settled(first)
    const again = await platform.deploy('plain')
    await platform.settled(again)
    const hash = async (id: string) => (await platform.artifacts.read(id))!.files['index.html']!.hash
    expect(await hash(again)).toBe(await hash(first))
  })
})

// Side by side from here on: each has a project of its own, and most of them wait.
describe.concurrent('every failure ends in ERROR with its reason', () => {
  test('a command that fails: build_failed, with its output in the log', async () => {
    const { id, deployment } = await deployed('fails', { 'package.json': scripts({ build: 'echo oh no >&2; exit 3' }) })
    const message = 'npm run build exited with 3. It last printed: oh no'
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'build_failed', message } })
    const log = await platform.log(id)
    expect(log).toContain('build: oh no')
    expect(log.split('\n')[deployment.error.logLine - 1]).toBe('build: oh no')
  })

  test('a command whose tool is known: the line that matters, masked, with its place in the log', async () => {
    const printed = "src/x.ts(3,5): error TS2322: Type 'hunter2hunter2' is wrong."
    const build = `echo Building; echo "${printed}"; echo Found 1 error; exit 2`
    await platform.project('types', { 'package.json': scripts({ build }) })
    await platform.api.call('PUT', '/projects/types/env/KEY', { body: { value: 'hunter2hunter2', target: 'all' } })
    const id = await platform.deploy('types')
    const { error } = await platform.settled(id)
    const line = "src/x.ts(3,5): error TS2322: Type '***' is wrong."
    expect(error).toMatchObject({ code: 'build_failed', message: `npm run build exited with 2: ${line}` })
    expect(error.excerpt).toMatch(/Building\nsrc\/x\.ts.*\nFound 1 error$/)
    expect((await platform.log(id)).split('\n')[error.logLine - 1]).toBe(`build: ${line}`)
    // A stream opened behind the line before begins with it.
    const headers = { accept: 'text/event-stream', 'last-event-id': String(error.logLine - 1) }
    const { text } = await platform.api.call('GET', `/deployments/${id}/logs`, { headers })
    expect(text.split('\n').find((line) => line.startsWith('data: '))).toContain('error TS2322')
  })

  test('a host that is not there: its name, and buildNetwork only if that is what blocks it', async () => {
    const build = 'echo "curl: (6) Could not resolve host: api.example.com" >&2; exit 6'
    const files = { 'package.json': scripts({ build }) }
    const [open, closed] = await Promise.all([
      deployed('unreachable', files),
      deployed('unreachable-closed', files, { settings: { buildNetwork: 'none' } }),
    ])
    expect(open.deployment.error.message).toMatch(/api\.example\.com could not be reached: check its name/)
    expect(open.deployment.error.message).not.toContain('buildNetwork')
    expect(closed.deployment.error.message).toMatch(/api\.example\.com could not be reached: .* buildNetwork is none/)
  })

  test('an output directory that is not there: output_missing', async () => {
    const { deployment } = await deployed(
      'nothing',
      { 'package.json': scripts({ build: 'true' }) },
      { framework: 'vite' },
    )
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'output_missing' } })
  })

  test('a link that leaves the output: output_unsafe, and nothing is published', async () => {
    const build = 'mkdir -p dist && echo x > dist/index.html && ln -s /etc/passwd dist/passwd'
    const { id, deployment } = await deployed('links', { 'package.json': scripts({ build }) }, { framework: 'vite' })
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'output_unsafe' } })
    expect(await platform.artifacts.read(id)).toBeNull()
  })

  test('a repository that is gone when the worker comes: clone_failed', async () => {
    await platform.project('gone', { 'index.html': '' })
    const { body: project } = await platform.api.call('GET', '/projects/gone')
    const id = await platform.deploy('gone')
    await platform.settled(id)
    await platform.api.db.project.update({ where: { id: project.id }, data: { repo: 'acme/nowhere' } })
    const again = await platform.api.db.deployment.update({ where: { id }, data: { state: 'BUILDING' } })
    const { enqueue } = await import('../../../src/jobs/queue.ts')
    await enqueue(platform.api.db, { kind: 'build', key: again.id, payload: { deploymentId: id } })
    expect(await platform.settled(id)).toMatchObject({ state: 'ERROR', error: { code: 'clone_failed' } })
  })

  test('a build that hangs: build_timeout, and no process is left', async () => {
    const short = await startPlatform({ BUILD_TIMEOUT_MS: '6000' })
    const sleep = uniqueSleep()
    const build = `(setsid ${sleep} &) ; ${sleep}`
    await short.project('hangs', { 'package.json': scripts({ build }) })
    const deployment = await short.settled(await short.deploy('hangs'))
    expect(deployment).toMatchObject({ state: 'ERROR', error: { code: 'build_timeout' } })
    expect(running(sleep)).toBe(false)
    await short.stop()
  })
})

describe.concurrent('cancel', () => {
  test('ends the whole process tree of the build', async () => {
    const sleep = uniqueSleep()
    const build = `echo started; (setsid ${sleep} &) ; ${sleep}`
    await platform.project('cancel', { 'package.json': scripts({ build }) })
    const id = await platform.deploy('cancel')
    await until(() => running(sleep))
    expect((await platform.api.call('POST', `/deployments/${id}/cancel`)).status).toBe(202)
    await until(() => !running(sleep))
    expect((await platform.settled(id)).state).toBe('CANCELED')
  })
})

describe.concurrent('production', () => {
  test('an older build that finishes after a newer one never takes over', async () => {
    const build = (wait: string) => ({
      'package.json': scripts({ build: `echo started; ${wait}mkdir -p dist && echo x > dist/index.html` }),
    })
    await platform.project('race', build('until [ -e go ]; do sleep 0.1; done; '), { framework: 'vite' })
    const older = await platform.deploy('race', { production: true })
    const { body: project } = await platform.api.call('GET', '/projects/race')
    // The newer build is of another repository, so that it waits for nothing.
    await platform.project('race-fast', build(''), { framework: 'vite' })
    await until(async () => (await platform.log(older)).includes('build: started'))
    await platform.api.db.project.update({ where: { id: project.id }, data: { repo: 'acme/race-fast' } })
    const newer = await platform.deploy('race', { production: true })
    expect(await platform.settled(newer)).toMatchObject({ state: 'READY', current: true })
    const place = join(platform.api.config.dataDir, 'builds', older)
    await writeFile(join(place, (await readdir(place))[0]!, 'work/tree/go'), '')
    expect(await platform.settled(older)).toMatchObject({ state: 'READY', current: false })
    expect((await platform.api.call('GET', `/deployments/${newer}`)).body.current).toBe(true)
  })
})

describe.concurrent('the log', () => {
  test('shows a line while the build goes on that wrote it', async () => {
    await platform.project('slow', { 'package.json': scripts({ build: `echo early; ${uniqueSleep()}` }) })
    const id = await platform.deploy('slow')
    await until(async () => (await platform.log(id)).includes('build: early'))
    expect((await platform.api.call('GET', `/deployments/${id}`)).body.state).toBe('BUILDING')
    await platform.api.call('POST', `/deployments/${id}/cancel`)
    await platform.settled(id)
  })
})

function running(args: string): boolean {
  const { stdout } = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
  return stdout.split('\n').some((line) => line.trim() === args)
}
