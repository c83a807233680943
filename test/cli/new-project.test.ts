// `berth deploy` in a folder without a project: it creates one, or leaves nothing behind.
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { type CliOptions, type CommandLine, openCommandLine } from '../helpers/command-line.ts'

let api: TestApi
let cli: CommandLine
let url: string
let parent: string
let folder: string

beforeAll(async () => {
  cli = await openCommandLine({ here: true })
  api = await sharedApi()
  url = await api.listen()
}, 120_000)
afterAll(async () => {
  await api.stop()
  await cli.remove()
})
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'berth-new-'))
  folder = join(parent, 'My Äpp_2')
  await mkdir(folder)
  await writeFile(join(folder, 'index.html'), '<h1>Hello</h1>')
})
afterEach(() => rm(parent, { recursive: true, force: true }))

const deploy = (args: string[] = [], options: CliOptions & { token?: string } = {}) => {
  const { token = api.token, ...more } = options
  const env = { BERTH_URL: url, BERTH_TOKEN: token, NO_COLOR: '1' }
  return cli.run(['deploy', folder, '--no-wait', ...args], { ...more, env })
}
const names = async (token = api.token) =>
  (await api.call('GET', '/projects', { token })).body.projects.map(({ name }: { name: string }) => name)
const linked = () => readFile(join(folder, '.berth/project.json'), 'utf8').catch(() => null)

describe('with --yes', () => {
  test('creates the project, links the folder and deploys, and the next deployment goes to the same one', async () => {
    const first = await deploy(['--yes'])
    expect(first, first.stderr).toMatchObject({ code: 0 })
    expect(first.stderr).toContain('Created project my-app-2.')
    expect(await linked()).toBe('{"project":"my-app-2"}\n')
    expect((await deploy(['--yes'])).code).toBe(0)
    const { body } = await api.call('GET', '/deployments?project=my-app-2')
    expect(body.deployments).toHaveLength(2)
    expect(body.deployments[0]).toMatchObject({ source: 'upload', production: false })
  })

  test('takes the name of package.json, without its scope', async () => {
    await writeFile(join(folder, 'package.json'), '{"name":"@acme/Shop"}')
    expect((await deploy(['--yes'])).code).toBe(0)
    expect(await linked()).toBe('{"project":"shop"}\n')
  })

  test.each(['{"name":42}', '{"name":"@acme/"}', 'null', 'no JSON'])(
    'ignores a package.json that names nothing: %s',
    async (text) => {
      await writeFile(join(folder, 'package.json'), text)
      const other = await api.newAccount()
      expect((await deploy(['--yes'], { token: other.token })).code).toBe(0)
      expect(await names(other.token)).toEqual(['my-app-2'])
    },
  )

  test('refuses a name that is taken, and says what to type', async () => {
    const { token } = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'my-app-2' }, token })
    const ended = await deploy(['--yes'], { token })
    expect(ended).toMatchObject({ code: 6, stdout: '' })
    expect(ended.stderr).toContain('berth deploy --project my-app-2')
    expect(await linked()).toBeNull()
    expect((await api.call('GET', '/deployments', { token })).body.deployments).toEqual([])
  })
})

describe('on a terminal', () => {
  test('asks first, and asks for another name when this one is taken or invalid', async () => {
    const { token } = await api.newAccount()
    await api.call('POST', '/projects', { body: { name: 'my-app-2' }, token })
    const ended = await deploy([], {
      token,
      answers: [
        [/Create project my-app-2\? \[Y\/n\]/, ''],
        [/my-app-2.*\n.*Name of the new project:/, 'Not A Name'],
        [/Name of the new project:/, 'other'],
      ],
    })
    expect(ended, ended.stderr).toMatchObject({ code: 0 })
    expect(await names(token)).toEqual(['my-app-2', 'other'])
    expect(await linked()).toBe('{"project":"other"}\n')
  })

  test('creates nothing when the answer is no', async () => {
    const { token } = await api.newAccount()
    const ended = await deploy([], { token, answers: [[/\[Y\/n\]/, 'n']] })
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('berth link') })
    expect(await names(token)).toEqual([])
  })
})

describe('leaves nothing behind', () => {
  test('without a terminal and --yes, and says what to type', async () => {
    const { token } = await api.newAccount()
    const ended = await deploy([], { token })
    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toMatch(/not linked to a project.*\n.*--yes to create my-app-2.*--project/)
    expect(await names(token)).toEqual([])
  })

  test('of a folder that has no files', async () => {
    const { token } = await api.newAccount()
    await rm(join(folder, 'index.html'))
    expect((await deploy(['--yes'], { token })).code).toBe(2)
    expect(
      (await cli.run(['deploy', join(folder, 'none'), '--yes'], { env: { BERTH_URL: url, BERTH_TOKEN: token } })).code,
    ).toBe(2)
    expect(await names(token)).toEqual([])
  })

  test('when the API refuses the deployment', async () => {
    const { accountId, token } = await api.newAccount()
    await api.db.account.update({ where: { id: accountId }, data: { limits: { sourceBytes: 3 } } })
    const ended = await deploy(['--yes'], { token })
    expect(ended).toMatchObject({ code: 4, stderr: expect.stringContaining('quota_exceeded') })
    expect(ended.stderr).toContain('Deleted project my-app-2')
    expect(await names(token)).toEqual([])
    expect(await linked()).toBeNull()
  })

  test('when the token may not create projects', async () => {
    const scopes = ['deployments:write', 'projects:read']
    const { body } = await api.call('POST', '/tokens', { body: { name: 'ci', scopes } })
    expect((await deploy(['--yes'], { token: body.secret })).code).toBe(4)
    expect(await linked()).toBeNull()
  })

  test('of a git ref, which needs the repository of a project', async () => {
    const ended = await cli.run(['deploy', '--ref', 'main', '--yes'], {
      env: { BERTH_URL: url, BERTH_TOKEN: api.token },
    })
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('--project') })
  })
})
