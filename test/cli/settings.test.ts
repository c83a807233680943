// `berth settings`: shows and changes how a project is built and served.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let api: TestApi
let cli: CommandLine

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  api = await sharedApi()
  const url = await api.listen()
  await api.newProject('site')
  await cli.run(['login', '--url', url, '--token', api.token])
}, 120_000)
afterAll(async () => {
  await api.stop()
  await cli.remove()
})

const run = (...args: string[]) => cli.run(['settings', ...args, '-p', 'site'])
const json = (...args: string[]) => cli.json(['settings', ...args, '-p', 'site'])
const settings = async () => (await api.call('GET', '/projects/site')).body.settings

test('are shown, for people and as the project itself', async () => {
  const shown = await run()
  expect(shown.code).toBe(0)
  expect(shown.stdout).toMatch(/^cleanUrls +true$/m)
  expect(shown.stdout).toMatch(/^buildCommand +\(automatic\)$/m)
  expect(shown.stdout).toMatch(/^framework +static$/m)
  expect(await json('ls')).toEqual((await api.call('GET', '/projects/site')).body)
  expect((await cli.run(['settings', '-p', 'none'])).code).toBe(5)
  expect((await cli.run(['settings'])).code).toBe(2)
})

test('are changed together, and each change says what it applies to', async () => {
  const changed = await run(
    'set',
    ...['cleanUrls=false', 'buildCommand=npm run build -- --mode=x', 'instances=2', 'serverNetwork=none'],
    ...['watchPaths=apps/web/**,!**/*.md', 'crons=[{"path":"/x","schedule":"0 3 * * *"}]', 'framework=node'],
  )
  expect(changed).toMatchObject({ code: 0, stdout: '' })
  expect(changed.stderr.split('\n')).toEqual(
    expect.arrayContaining([
      'Changed cleanUrls. It applies now.',
      'Changed buildCommand. It applies from the next deployment.',
      'Changed framework. It applies from the next deployment.',
      'Changed serverNetwork. It applies when a server next starts.',
    ]),
  )
  expect(await settings()).toMatchObject({
    cleanUrls: false,
    buildCommand: 'npm run build -- --mode=x',
    instances: 2,
    serverNetwork: 'none',
    watchPaths: ['apps/web/**', '!**/*.md'],
    crons: [{ path: '/x', schedule: '0 3 * * *' }],
  })
  expect((await run()).stdout).toMatch(/^crons +\/x at 0 3 \* \* \*$/m)
  expect(await json('set', 'spaFallback=true')).toMatchObject({
    settings: { spaFallback: true },
    changes: [{ field: 'settings.spaFallback', appliesTo: 'now' }],
  })
  expect((await run('set', 'spaFallback=true')).stderr).toContain('Nothing changed')
})

test('a password is read from stdin, and is not shown', async () => {
  const options = { input: 'open sesame\n' }
  const args = ['settings', 'set', 'previewPassword', 'previewProtection=password', '-p', 'site']
  const changed = await cli.run(args, options)
  expect(changed).toMatchObject({ code: 0, stderr: expect.not.stringContaining('sesame') })
  expect(changed.stderr).toContain('Changed previewPassword. It applies now.')
})

test('that are wrong are refused by name, all at once, and change nothing', async () => {
  const before = await settings()
  const refused = await run('set', 'cleanUrls=maybe', 'instances=99', 'hsts=true')
  expect(refused).toMatchObject({ code: 6, stdout: '' })
  expect(refused.stderr).toMatch(/settings\/cleanUrls/)
  expect(refused.stderr).toMatch(/settings\/instances/)
  expect(await run('set', 'frobnicate=1')).toMatchObject({ code: 6, stderr: expect.stringContaining('frobnicate') })
  expect((await run('set', '__proto__=1')).code).toBe(6)
  for (const pairs of [['cleanUrls'], ['=1'], ['crons=x'], ['hsts=true', 'hsts=false']])
    expect((await run('set', ...pairs)).code, pairs.join()).toBe(2)
  expect((await run('unset', 'repo')).stderr).toContain('berth settings set repo=<value>')
  expect((await run('unset', 'frobnicate')).code).toBe(2)
  expect((await run('set')).code).toBe(2)
  expect(await settings()).toEqual(before)
})

test('are unset to what a new project has', async () => {
  const { body } = await api.call('POST', '/projects', { body: { name: 'fresh' } })
  const keys = Object.keys(body.settings)
  const reset = await run('unset', 'framework', ...keys)
  expect(reset, reset.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining('Changed buildCommand.') })
  expect(await settings()).toEqual(body.settings)
})
