// A start script that is run without npm runs as it would with it.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resolveStart } from '../../../src/engines/servers/run/start-script.ts'
import { until } from '../../helpers/until.ts'
import { type World, withEachDriverAtOnce } from './world.ts'

const program = `import { createServer } from 'node:http'
createServer((_, response) => response.end(JSON.stringify({ argv: process.argv.slice(2), env: process.env })))
  .listen(process.env.PORT)`

async function answerOf(world: World, id = 'site'): Promise<{ argv: string[]; env: Record<string, string> }> {
  world.show(id)
  return JSON.parse((await world.get('/')).text)
}

async function write(path: string, content: unknown): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  await chmod(path, 0o755)
}

/** Deploys it with this package.json, and with other files. */
async function deploy(world: World, manifest: object, files: Record<string, unknown> = {}, id = 'site'): Promise<void> {
  await world.deploy(id, program)
  for (const [path, content] of Object.entries({ 'package.json': manifest, ...files }))
    await write(join(world.artifacts.serverDirectory(id), path), content)
}

const names = (env: Record<string, string>) =>
  Object.fromEntries(
    ['npm_command', 'npm_lifecycle_event', 'npm_lifecycle_script', 'npm_package_name', 'npm_package_version'].map(
      (name) => [name, env[name]],
    ),
  )

test('nothing outside of the tree is read, whatever links lead there', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'berth-start-'))
  const [directory, outside] = [join(parent, 'tree'), join(parent, 'outside')]
  const manifest = { scripts: { start: 'secret of the machine' } }
  await write(join(outside, 'web/package.json'), manifest)
  await write(join(directory, 'real/web/package.json'), manifest)
  await mkdir(join(directory, 'linked'))
  await symlink(outside, join(directory, 'apps'))
  await symlink('real', join(directory, 'inside'))
  await symlink(join(outside, 'web/package.json'), join(directory, 'linked/package.json'))
  execFileSync('mkfifo', [join(directory, 'package.json')])
  const asItIs = { command: 'npm start', environment: { A: '1' } }
  for (const root of ['apps/web', 'linked', 'missing', '']) {
    expect(await resolveStart('npm start', { directory, root }, { A: '1' }), root).toEqual(asItIs)
  }
  expect((await resolveStart('npm start', { directory, root: 'real/web' }, {})).environment.npm_lifecycle_script).toBe(
    'secret of the machine',
  )
  await rm(parent, { recursive: true })
})

test('what does not fit into a variable, or is an option, is left to npm', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'berth-start-'))
  const large = 'x'.repeat(140_000)
  await write(join(directory, 'package.json'), {
    scripts: { start: `echo ${large}`, '--silent': 'true', '-s': 'true' },
  })
  for (const command of ['npm start', 'npm run --silent', 'npm run -s', 'npm run', 'npm start && true'])
    expect((await resolveStart(command, { directory, root: '' }, {})).command).toBe(command)
  await write(join(directory, 'package.json'), { name: large, version: large, scripts: { start: 'true' } })
  const { environment } = await resolveStart('npm start', { directory, root: '' }, {})
  expect(environment).toMatchObject({ npm_package_name: '', npm_package_version: '', npm_lifecycle_script: 'true' })
  await rm(directory, { recursive: true })
})

withEachDriverAtOnce('a start script', (test) => {
  test('has its programs, the name of the package and what else npm gives it, but no npm', async ({ start }) => {
    const world = await start({}, { start: undefined })
    const tool = '#!/bin/sh\nexec node server.mjs "$@"\n'
    const script = `tool 'a  b' "$npm"`
    const manifest = { name: '@acme/site', version: '1.2.3', scripts: { start: script } }
    await deploy(world, manifest, { 'node_modules/.bin/tool': tool })
    const { argv, env } = await answerOf(world)
    expect(argv).toEqual(['a  b', ''])
    expect(names(env)).toEqual({
      npm_command: 'start',
      npm_lifecycle_event: 'start',
      npm_lifecycle_script: script,
      npm_package_name: '@acme/site',
      npm_package_version: '1.2.3',
    })
    expect(env.npm_package_json).toBe(join(env.INIT_CWD!, 'package.json'))
    expect(env.npm_execpath).toBeUndefined()
    const titles = world.processes('site').map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0])
    expect(titles.filter((title) => /node$/.test(title!))).toHaveLength(1)
    expect(titles.filter((title) => /^npm/.test(title!))).toEqual([])
    await until(() => world.lines('site').length >= 2)
    expect(world.lines('site').slice(0, 2)).toEqual(['$ npm start', `> ${script}`])
  })

  test('of another name is run too, and finds the programs of the workspace above', async ({ start }) => {
    const world = await start(
      {},
      {
        start: undefined,
        settingsOf: async () => ({
          environment: { NPM_TOKEN: 'x' },
          network: 'none',
          command: 'npm run serve:all',
        }),
      },
    )
    const tool = '#!/bin/sh\nexec node ../../server.mjs above\n'
    await deploy(
      world,
      { workspaces: ['apps/*'] },
      {
        'node_modules/.bin/tool': tool,
        'apps/web/package.json': { name: 'web', scripts: { 'serve:all': 'tool', start: 'exit 3' } },
      },
    )
    const settings = { files: {}, spaFallback: false, cleanUrls: false }
    await world.artifacts.publish('site', { version: 1, kind: 'node', root: 'apps/web', ...settings })
    const { argv, env } = await answerOf(world)
    expect(argv).toEqual(['above'])
    expect(names(env)).toMatchObject({ npm_command: 'run-script', npm_lifecycle_event: 'serve:all' })
    expect(env.npm_execpath).toBeUndefined()
  })

  test('is left to npm where that does more: scripts around it, settings, variables', async ({ start }) => {
    const world = await start({}, { start: undefined })
    const scripts = { start: 'node server.mjs' }
    const cases: [object, Record<string, string>?][] = [
      [{ scripts: { ...scripts, prestart: 'true' } }],
      [{ scripts: { ...scripts, poststart: 'true' } }],
      [{ scripts, config: { port: '1' } }],
      [{ scripts: { start: 'node server.mjs $npm_execpath' } }],
      [{ scripts }, { '.npmrc': 'node-options=--no-warnings\n' }],
    ]
    for (const [index, [manifest, files]] of cases.entries()) {
      const id = `site-${index}`
      await deploy(world, manifest, files, id)
      expect((await answerOf(world, id)).env.npm_execpath).toBeDefined()
    }
  })

  test('that is missing, or no text, fails with what npm says', async ({ start }) => {
    const world = await start({}, { start: undefined })
    await deploy(world, { scripts: { start: ['node'] } }, {})
    world.show('site')
    expect((await world.get('/')).status).toBe(503)
    await until(() => world.lines('site').some((line) => line.includes('npm error')))
  })
})
