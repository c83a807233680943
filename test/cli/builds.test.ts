// `berth cancel`, `redeploy` and `deploy --ref`, what a pin says in each command, and which log is shown.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProgram } from '../../cli/src/program.ts'
import { finishDeployment } from '../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'
import { uploadsOf } from '../helpers/uploads.ts'

let api: TestApi
let cli: CommandLine

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  api = await sharedApi()
  const url = await api.listen()
  for (const name of ['site', 'other', 'empty']) await api.newProject(name)
  await cli.run(['login', '--url', url, '--token', api.token])
}, 120_000)
afterAll(async () => {
  await api.stop()
  await cli.remove()
})

const run = (...args: string[]) => cli.run(args)
const json = (...args: string[]) => cli.json(args)
const create = async (body: object = {}) =>
  (await api.call('POST', '/deployments', { body: { project: 'site', ...body } })).body.id as string
const finish = (id: string, to: 'READY' | 'ERROR' = 'READY') =>
  finishDeployment(api.db, api.deps.urls, id, {
    to,
    by: 'system',
    ...(to === 'ERROR' && { code: 'build_failed', message: 'No luck.' }),
  } as never)
const ready = async (body: object = {}) => {
  const id = await create(body)
  await finish(id)
  return id
}
const newest = async () => (await api.call('GET', '/deployments?project=site&limit=1')).body.deployments[0]

/** Runs a command, and ends the build that it starts. */
async function finishing(to: 'READY' | 'ERROR', ...args: string[]) {
  const before = (await newest())?.id
  const running = run(...args)
  let id = ''
  await expect
    .poll(async () => {
      const { id: found, state } = await newest()
      if (found !== before && state === 'BUILDING') id = found
      return id
    })
    .not.toBe('')
  await finish(id, to)
  return { ...(await running), id }
}

describe('cancel', () => {
  test('cancels the newest build of the project, or the one that is named', async () => {
    const [first, second] = [await create(), await create()]
    const ended = await run('cancel', '-p', 'site')
    expect(ended).toMatchObject({ code: 0, stderr: `Canceled ${second} of site.\n` })
    expect(await json('cancel', first)).toMatchObject({ id: first, state: 'CANCELED' })
    expect(await run('cancel', '-p', 'site')).toMatchObject({ code: 5, stderr: expect.stringContaining('no build') })
    expect((await run('cancel', first)).code).toBe(6)
    expect((await run('cancel', '-p', 'none')).code).toBe(5)
  })
})

describe('redeploy', () => {
  test('builds the newest source again and ends with its result', async () => {
    const id = await ready({ production: true })
    const again = await finishing('READY', 'redeploy', '-p', 'site')
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining(`Ready: ${again.id}`) })
    expect(again.stderr).toContain(`Redeploying ${id} of site`)
    expect(await api.call('GET', `/deployments/${again.id}`)).toMatchObject({
      body: { production: true, current: true },
    })
    const failed = await finishing('ERROR', 'redeploy', id)
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('No luck.') })
    const started = await json('redeploy', id, '--no-wait')
    expect(started).toMatchObject({ state: 'BUILDING', project: 'site' })
    await finish(started.id)
    expect(await run('redeploy', '-p', 'empty')).toMatchObject({ code: 5 })
  })

  test('says so if files are missing', async () => {
    const { body } = await uploadsOf(api).deploy({ 'index.html': 'never sent' })
    expect(await run('redeploy', body.id)).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('Upload them again'),
    })
    await api.call('POST', `/deployments/${body.id}/cancel`)
  })
})

describe('deploy --ref', () => {
  test('deploys a ref of the repository and ends with its result', async () => {
    const done = await finishing('READY', 'deploy', '--ref', 'main', '-p', 'site')
    expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('Ready:') })
    expect(done.stderr).toMatch(/^Branch: http:\/\/site-git-main\.localhost/m)
    expect(await api.call('GET', `/deployments/${done.id}`)).toMatchObject({
      body: { ref: 'main', production: false, source: 'api' },
    })
    expect(await run('deploy', '--ref', 'none', '-p', 'site')).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('has no branch, tag or commit none'),
    })
  })

  test('takes no folder', async () => {
    for (const more of [['.'], ['--prebuilt']])
      expect((await run('deploy', ...more, '--ref', 'main', '-p', 'site')).code).toBe(2)
  })
})

describe('--project', () => {
  test('is an option of every command that acts on a deployment, which must be one of that project', async () => {
    const id = await ready()
    for (const command of ['promote', 'rollback', 'inspect', 'logs', 'open', 'redeploy', 'cancel']) {
      const refused = await run(command, id, '-p', 'other')
      expect(refused, command).toMatchObject({ code: 5, stdout: '' })
      expect(refused.stderr).toContain(`${id} is a deployment of site, not of other.`)
    }
    const { body } = await api.call('GET', '/projects/site')
    expect((await run('promote', id, '-p', 'site')).code).toBe(0)
    expect((await run('inspect', id, '--project', body.id)).code).toBe(0)
  })
})

describe('the tree of commands', () => {
  const leavesOf = (command: Command): Command[] =>
    command.commands.length > 0 ? command.commands.flatMap(leavesOf) : [command]
  const nameOf = (command: Command): string =>
    command.parent?.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
  const leaves = leavesOf(createProgram(() => {}))

  test('has -p, --project on every command that acts on a project', () => {
    const without = leaves.filter(
      ({ options }) => !options.some(({ short, long }) => short === '-p' && long === '--project'),
    )
    // Their argument is the project, the domain or the ticket itself.
    const named = ['projects create', 'projects rename', 'projects rm', 'domains verify', 'domains rm']
    const ofAccount = [
      'logout',
      'whoami',
      'projects ls',
      'tokens ls',
      'tokens rm',
      'events',
      'listen',
      'completion',
      'api',
    ]
    const dns = ['ls', 'set', 'rm', 'import', 'export', 'dnssec'].map((name) => `dns ${name}`)
    const tickets = ['ls', 'open', 'show', 'reply'].map((name) => `tickets ${name}`)
    expect(without.map(nameOf).sort()).toEqual([...named, ...ofAccount, ...dns, ...tickets].sort())
  })

  test('is typed in the session of docs/cli.md, as are a new project without a question and a pin that holds', async () => {
    const [, session = ''] = (await readFile('docs/cli.md', 'utf8')).split('<!-- session')
    const typed = session.split('\n').filter((line) => line.startsWith('$ berth '))
    const isTyped = (words: string) => typed.some((line) => `${line} `.startsWith(`$ berth ${words} `))
    const named = leaves.map((leaf) => nameOf(leaf).replace(/^settings ls$/, 'settings'))
    expect(named.filter((name) => !isTyped(name))).toEqual([])
    expect(session).toMatch(/^\$ berth deploy .*--yes\nCreated project /m)
    expect(session).toMatch(/^\$ berth deploy .*--prod; echo .*\n([^$].*\n)+exit code 8$/m)
  })

  test('is completed in every shell', async () => {
    for (const shell of ['bash', 'zsh']) {
      const { stdout } = await run('completion', shell)
      for (const leaf of leaves) {
        const line = stdout.split('\n').find((text) => text.includes(`'${nameOf(leaf)}')`))
        expect(line, nameOf(leaf)).toBeDefined()
        for (const { long } of leaf.options) expect(line).toContain(` ${long}`.trim())
      }
    }
  })
})

describe('a pin', () => {
  test('is named by every command that touches production', async () => {
    const [first, second] = [await ready({ production: true }), await ready({ production: true })]
    const pinned = (to: string) => `Production is pinned to ${first}. Run \`berth promote ${to}\` to switch.`
    const back = await run('rollback', first)
    expect(back).toMatchObject({ code: 0, stderr: expect.stringContaining(pinned('<deployment>')) })
    const held = await finishing('READY', 'redeploy', '--prod', '-p', 'site')
    expect(held).toMatchObject({ code: 8, stderr: expect.stringContaining(pinned(held.id)) })
    const byRef = await finishing('READY', 'deploy', '--ref', 'main', '--prod', '-p', 'site')
    expect(byRef).toMatchObject({ code: 8, stderr: expect.stringContaining(pinned(byRef.id)) })
    const started = await run('deploy', '--ref', 'main', '--prod', '-p', 'site', '--no-wait', '--json')
    expect(started).toMatchObject({ code: 8, stderr: expect.stringContaining('Production is pinned') })
    expect(JSON.parse(started.stdout)).toMatchObject({ pinned: first })
    await finish(JSON.parse(started.stdout).id)
    expect((await run('inspect', second)).stdout).toContain(`production is pinned to ${first}`)
    expect((await run('ls', '-p', 'site')).stdout).toContain('READY (production, pinned)')
    expect((await run('projects', 'ls')).stdout).toMatch(new RegExp(`^site .*${first}`, 'm'))
    expect((await run('settings', '-p', 'site')).stdout).toContain(first)
    const promoted = await run('promote', second)
    expect(promoted).toMatchObject({ code: 0, stderr: expect.not.stringContaining('pinned') })
    expect(await json('promote', first, '--pin')).toMatchObject({ pinned: first })
    expect((await run('promote', first, '--pin')).stderr).toContain(pinned('<deployment>'))
    expect((await run('promote', second)).code).toBe(0)
  })
})

/** Runs a command against a server that answers as told. */
async function against(answer: (method: string, url: string) => object, args: string[]) {
  const server = createServer(({ method = '', url = '' }, response) => {
    const type = { 'content-type': 'application/json', 'production-served': 'false' }
    response.writeHead(method === 'POST' ? 202 : 200, type).end(JSON.stringify(answer(method, url)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const done = await cli.run(args, { env: { BERTH_URL: url, BERTH_TOKEN: 'brt_test' } })
  server.closeAllConnections()
  server.close()
  return done
}

const made = { id: 'dpl_1', project: 'site', state: 'BUILDING', url: 'https://site.test', pinned: null }

test('a promotion that some edges do not serve yet says what it waits for', async () => {
  const entry = { deployment: 'dpl_1', until: null, waitingFor: ['edge-2', 'edge-3'] }
  const list = { production: [entry], hasMore: false, nextCursor: null }
  const promoted = await against((method) => (method === 'POST' ? made : list), ['promote', 'dpl_1'])
  expect(promoted).toMatchObject({ code: 0, stdout: 'https://site.test\n' })
  expect(promoted.stderr).toContain('Waiting for: edge-2, edge-3.')
})

test('what a deployment is warned of at once is said, also where nothing waits for its build', async () => {
  const warnings = [{ code: 'repository_unreachable', message: "We couldn't reach git.test." }]
  const started = await against(() => ({ ...made, warnings }), ['deploy', '--ref', 'main', '-p', 'site', '--no-wait'])
  expect(started).toMatchObject({ code: 0, stdout: 'https://site.test\n' })
  expect(started.stderr).toContain("Warning: We couldn't reach git.test.\n")
})

test('empty lines of a log are shown', async () => {
  const lines = ['one', '', 'two'].map((text, seq) => ({ seq, at: '', stream: 'stdout', step: null, text }))
  const list = { lines, hasMore: false, nextCursor: null }
  const shown = await against((_, url) => (url.includes('/logs') ? list : made), ['logs', 'dpl_1'])
  expect(shown).toMatchObject({ code: 0, stdout: 'one\n\ntwo\n' })
})

describe('logs', () => {
  test('are those of production, and say so, whatever is newer', async () => {
    const [first, second] = [await ready({ production: true }), await ready({ production: true })]
    await run('rollback', first)
    const shown = await run('logs', '-p', 'site')
    expect(shown.code).toBe(0)
    expect(shown.stderr).toContain(`Log of ${first}, production of site:`)
    expect(shown.stderr).toContain(`The newest deployment is ${second}, READY.`)
    expect(shown.stderr).toContain(`berth logs ${second}`)
    await run('promote', second)
    expect((await run('logs', '-p', 'site')).stderr).toBe(`Log of ${second}, production of site:\n`)
  })

  test('are followed for the build in progress', async () => {
    const building = await create()
    const running = run('logs', '-f', '-p', 'site')
    await finish(building)
    expect((await running).stderr).toMatch(new RegExp(`${building}`))
    await api.call('POST', '/deployments', { body: { project: 'other' } })
    expect((await run('logs', '-p', 'other')).stderr).toContain('the build in progress of other')
    expect((await run('logs', '-p', 'empty')).code).toBe(5)
  })
})
