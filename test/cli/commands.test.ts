// The command line against the API itself: every command that reads or changes something, its data and its exit codes.
import { readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type CommandLine, openCommandLine } from '../helpers/command-line.ts'
import { newPerson } from '../helpers/people.ts'

let api: TestApi
let cli: CommandLine
let url: string
let ready: string
let building: string

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  api = await sharedApi()
  url = (await api.listen()).replace('127.0.0.1', 'localhost')
  await api.newProject('site')
  const deploy = async () => (await api.call('POST', '/deployments', { body: { project: 'site' } })).body.id
  ready = await deploy()
  building = await deploy()
  const now = new Date()
  await api.db.deployment.update({ where: { id: ready }, data: { state: 'READY', readyAt: now, finishedAt: now } })
  await cli.run(['login', '--url', url, '--token', api.token])
}, 120_000)
afterAll(async () => {
  await api.stop()
  await cli.remove()
})

const run = (...args: string[]) => cli.run(args)
const json = (...args: string[]) => cli.json(args)

describe('signing in', () => {
  test('keeps the token for nobody else to read, and says whose it is', async () => {
    const file = join(cli.directory, '.config/berth/logins.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const who = await json('whoami')
    expect(who).toMatchObject({ server: url, token: { scopes: ['*'] }, account: { id: api.accountId } })
    expect((await run('whoami')).stdout).toContain(url)
  }, 120_000)

  test('is by a code that a person approves', async () => {
    const person = await newPerson(api, { role: 'developer' })
    const home = { XDG_CONFIG_HOME: join(cli.directory, 'other') }
    let answered: Promise<unknown> | undefined
    const ended = await cli.run(['login', '--url', url], {
      env: home,
      interruptWhen(stderr) {
        const userCode = /approve the code ([A-Z]{4}-[A-Z]{4})/.exec(stderr)?.[1]
        if (userCode) answered ??= person.browser.ask('POST', '/device/answer', { userCode, approve: true })
        return false
      },
    })
    expect(await answered).toMatchObject({ status: 204 })
    expect(ended).toMatchObject({ code: 0, stdout: '' })
    const who = await cli.json(['whoami'], { env: home })
    expect(who.token).toMatchObject({ createdBy: person.user.id })
    expect((await cli.run(['logout'], { env: home })).code).toBe(0)
    expect((await cli.run(['whoami', '--url', url], { env: home })).code).toBe(3)
  }, 120_000)

  test('goes after the environment, and a stored token goes to its own server alone', async () => {
    const other = await api.newAccount()
    const env = { BERTH_TOKEN: other.token }
    expect((await cli.json(['whoami'], { env })).account.id).toBe(other.accountId)
    const elsewhere = await cli.run(['whoami'], { env: { BERTH_URL: 'http://localhost:1' } })
    expect(elsewhere).toMatchObject({ code: 3, stdout: '' })
    const plain = await cli.run(['whoami'], { env: { BERTH_URL: 'http://berth.example.com', ...env } })
    expect(plain).toMatchObject({ code: 2, stderr: expect.stringContaining('not encrypted') })
  }, 120_000)

  test('has an exit code for each way to fail', async () => {
    expect((await run('whoami', '--token', 'brt_wrong')).code).toBe(3)
    expect((await run('inspect', 'dpl_none')).code).toBe(5)
    expect((await run('frobnicate')).code).toBe(2)
    expect((await run('inspect')).code).toBe(2)
    expect((await cli.run(['ls'], { env: { BERTH_URL: 'http://localhost:1', BERTH_TOKEN: api.token } })).code).toBe(7)
    expect((await run('projects', 'create', 'Not A Name', '--repo', 'a/b')).code).toBe(6)
    const { body } = await api.call('POST', '/tokens', { body: { name: 'narrow', scopes: ['dns:read'] } })
    const refused = await run('projects', 'ls', '--json', '--token', body.secret)
    expect(refused).toMatchObject({ code: 4, stdout: '' })
    expect(JSON.parse(refused.stderr).error).toMatchObject({ code: 'insufficient_scope' })
    // Wrong words are told as all else is.
    for (const args of [['ls', '--frob'], ['frobnicate'], ['dns', 'rm'], []]) {
      const wrong = await run(...args, '--json')
      expect(wrong).toMatchObject({ code: 2, stdout: '' })
      expect(JSON.parse(wrong.stderr).error.code).toBe('usage')
    }
    // Nothing of what is not there is no empty list.
    expect((await run('ls', '-p', 'nothing')).code).toBe(5)
    expect((await run('domains', 'ls', '-p', 'nothing')).code).toBe(5)
    expect((await run('api', '/no/such/thing')).code).toBe(5)
  }, 120_000)

  test('ends with a token that works no more, whatever it may do', async () => {
    const { body } = await api.call('POST', '/tokens', { body: { name: 'narrow', scopes: ['dns:read'] } })
    const home = { XDG_CONFIG_HOME: join(cli.directory, 'narrow') }
    expect((await cli.run(['login', '--url', url, '--token', body.secret], { env: home })).code).toBe(0)
    expect(await cli.run(['logout'], { env: home })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('revoked'),
    })
    expect((await api.call('GET', '/tokens/current', { token: body.secret })).status).toBe(401)
    expect((await cli.run(['logout', '--url', url], { env: home })).code).toBe(3)
  }, 120_000)
})

describe('deployments', () => {
  test('are listed, shown, promoted, and their logs read', async () => {
    expect(await json('link', 'site')).toMatchObject({ name: 'site' })
    expect(JSON.parse(await readFile(join(cli.directory, '.berth/project.json'), 'utf8'))).toEqual({ project: 'site' })
    expect((await json('ls')).map(({ id }: { id: string }) => id)).toEqual([building, ready])
    expect((await run('ls', '-n', '1')).stdout.trim().split('\n')).toHaveLength(2)
    expect(await json('inspect', ready)).toMatchObject({ id: ready, state: 'READY' })
    expect((await run('inspect', ready, '--wait')).code).toBe(0)
    expect((await run('logs', ready)).code).toBe(0)
    expect(await json('promote', ready)).toMatchObject({ id: ready })
    expect((await run('rollback')).code).toBe(5)
    const back = await run('rollback', ready)
    expect(back).toMatchObject({ code: 0, stderr: expect.stringContaining('Run `berth promote') })
    expect(await json('inspect', ready)).toMatchObject({ current: true, pinned: ready })
    expect((await run('rollback', building)).code).toBe(5)
    expect((await run('promote', building)).code).toBe(6)
    const shown = await run('open')
    expect(shown.stdout.trim()).toBe((await api.call('GET', '/projects/site')).body.productionUrl)
    await api.call('POST', `/deployments/${building}/cancel`)
    expect((await run('inspect', building, '--wait')).code).toBe(1)
    expect((await run('logs', '-f', building)).code).toBe(1)
  }, 120_000)
})

describe('domains and DNS', () => {
  test('tell what to set, and take and give records', async () => {
    const added = await run('domains', 'add', 'example.org', '-p', 'site')
    expect(added.code).toBe(0)
    expect(added.stderr).toContain('_berth.example.org')
    expect((await json('domains', 'ls'))[0]).toMatchObject({ name: 'example.org', verified: false })
    expect((await run('domains', 'verify', 'example.org')).code).toBe(1)
    const waiting = await cli.run(['domains', 'verify', 'example.org', '--wait'], {
      interruptWhen: (stderr) => stderr.includes('not verified yet'),
    })
    expect(waiting.code).toBe(130)

    const set = await json('dns', 'set', 'example.org', 'www', 'a', '192.0.2.1', '192.0.2.2', '--ttl', '60')
    expect(set).toMatchObject({ name: 'www', type: 'A', ttl: 60, values: ['192.0.2.1', '192.0.2.2'] })
    expect(await json('dns', 'ls', 'example.org')).toHaveLength(2)
    const zone = (await run('dns', 'export', 'example.org')).stdout
    expect(zone).toContain('192.0.2.2')
    const file = join(cli.directory, 'zone')
    await writeFile(file, '$ORIGIN example.org.\nwww 60 IN A 192.0.2.1\n@ 60 IN TXT "new"\n')
    const dry = await json('dns', 'import', 'example.org', file, '--dry-run')
    expect(dry).toMatchObject({ dryRun: true, created: 1, deleted: 1, unchanged: 1 })
    expect((await run('dns', 'import', 'example.org', file)).code).toBe(2)
    expect((await run('dns', 'import', 'example.org', file, '--yes')).code).toBe(0)
    expect((await run('dns', 'rm', 'example.org', 'www', 'A', '--yes')).code).toBe(0)
    expect(await run('dns', 'rm', 'example.org', 'www', 'A', '--yes')).toMatchObject({ code: 5, stdout: '' })
    expect(await json('dns', 'dnssec', 'example.org')).toMatchObject({ domain: 'example.org' })
    expect(await json('dns', 'dnssec', 'example.org', 'on')).toMatchObject({ enabled: true })
    expect((await run('dns', 'dnssec', 'example.org', 'perhaps')).code).toBe(2)
    expect(await json('dns', 'ls', 'example.org')).toHaveLength(1)
    expect((await run('domains', 'rm', 'example.org')).code).toBe(2)
    expect((await run('domains', 'rm', 'example.org', '--yes')).code).toBe(0)
  }, 120_000)
})

describe('the rest of the account', () => {
  test('tokens and tickets', async () => {
    const made = await json('tokens', 'create', 'ci', '--scope', 'deployments:write', '--expires', '1d')
    expect(made.secret).toMatch(/^brt_/)
    expect((await json('tokens', 'ls')).some(({ id }: { id: string }) => id === made.id)).toBe(true)
    const { body: next } = await api.call('POST', `/tokens/${made.id}/rotate`, { body: { overlapSeconds: 60 } })
    const lines = (await run('tokens', 'ls')).stdout.split('\n').map((line) => line.split(/ {2,}/))
    const [createdBy, replacedBy] = ['CREATED BY', 'REPLACED BY'].map((head) => lines[0]!.indexOf(head))
    const cellsOf = ({ id }: { id: string }) => {
      const cells = lines.find(([first]) => first === id)!
      return [cells[createdBy!], cells[replacedBy!]]
    }
    expect([made, next].map(cellsOf)).toEqual([
      [made.creatorId, next.id],
      [next.creatorId, '-'],
    ])
    expect((await run('tokens', 'rm', made.id, '--yes')).code).toBe(0)

    const { id } = await json('tickets', 'open', 'Help', '-m', 'It is broken.')
    expect((await cli.run(['tickets', 'reply', id], { input: 'Still.' })).code).toBe(0)
    const shown = await json('tickets', 'show', id)
    expect(shown.messages.map(({ message }: { message: string }) => message)).toEqual(['It is broken.', 'Still.'])
    expect(await json('tickets', 'ls', '--status', 'open')).toHaveLength(1)
  }, 120_000)

  test('the API itself, by fields, by a body and with its status', async () => {
    expect((await json('api', '/projects/site')).name).toBe('site')
    expect((await json('api', 'api/projects', '-X', 'GET', '-f', 'search=sit')).projects).toHaveLength(1)
    const changed = await json('api', '/projects/site', '-X', 'PATCH', '-f', 'settings.spaFallback=true')
    expect(changed.settings.spaFallback).toBe(true)
    const made = await json('api', '/tickets', '-d', '{"subject":"a","message":"b"}')
    expect(made.id).toMatch(/^tkt_/)
    const missing = await run('api', '/projects/none')
    expect(missing.code).toBe(5)
    expect(JSON.parse(missing.stdout).code).toBe('not_found')
    for (const path of ['https://example.com/', '//example.com/', '/../../auth/me']) {
      expect((await run('api', path)).code).toBe(2)
    }
  }, 120_000)

  test('deploy hooks are made, listed page by page and deleted, and crons are listed', async () => {
    const made = await json('hooks', 'add', 'cms', '-p', 'site')
    expect(made.url).toContain('/hooks/deploy/brd_')
    // More than a page has.
    const count = 100
    for (let index = 0; index < count; index++) {
      const made = await api.call('POST', '/projects/site/deploy-hooks', { body: { name: `h${index}` } })
      expect(made.status).toBe(201)
    }
    const listed = (await json('hooks', 'ls', '-p', 'site')) as { id: string }[]
    expect(new Set(listed.map(({ id }) => id)).size).toBe(count + 1)
    expect((await run('hooks', 'rm', made.id, '-p', 'site')).code).toBe(2)
    expect((await run('hooks', 'rm', made.id, '-p', 'site', '--yes')).code).toBe(0)
    expect((await run('hooks', 'ls', '-p', 'site')).stdout).not.toContain(made.id)
    expect(await run('crons', 'ls', '-p', 'site')).toMatchObject({ stdout: '', stderr: 'None found.\n', code: 0 })
    const settings = { crons: [{ path: '/x', schedule: '0 3 * * *' }] }
    await api.call('PATCH', '/projects/site', { body: { settings } })
    expect((await run('crons', 'ls', '-p', 'site')).stdout).toMatch(
      /crn_\w+ +0 3 \* \* \* +\/x +\d{4}-\d\d-\d\d 03:00 +-/,
    )
  }, 120_000)

  test('events are listed, and sent to a local program as webhooks are', async () => {
    expect((await json('events', '--type', 'project.*', '-n', '1'))[0].type).toMatch(/^project\./)
    const secret = `whsec_${Buffer.alloc(24, 3).toString('base64')}`
    const got: { body: string; headers: Record<string, string> }[] = []
    const receiver = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      got.push({ body, headers: request.headers as Record<string, string> })
      response.end()
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const to = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
    let asked = false
    const listening = cli.run(['listen', '--forward-to', to, '--secret', secret, '--type', 'ticket.*'], {
      interruptWhen: (stderr) => {
        if (stderr.includes('Sending events')) asked = true
        return false
      },
    })
    const opened = setInterval(() => {
      if (asked) void api.call('POST', '/tickets', { body: { subject: 'Event', message: 'x' } })
    }, 500)
    await expect.poll(() => got.length, { timeout: 20_000 }).toBeGreaterThan(0)
    clearInterval(opened)
    expect(new Webhook(secret).verify(got[0]!.body, got[0]!.headers)).toMatchObject({ type: 'ticket.created' })
    receiver.close()
    receiver.closeAllConnections()
    // The stream ends with the token that it was opened with.
    await run('logout')
    expect((await listening).code).toBe(3)
  }, 120_000)

  test('completion is a script for each shell', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) expect((await run('completion', shell)).stdout).toContain('rollback')
    expect((await run('completion', 'cmd')).code).toBe(2)
  })
})
