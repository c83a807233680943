import { hash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'
import { createResponseChecker } from '../../helpers/responses.ts'

let api: TestApi
let check: ReturnType<typeof createResponseChecker>
beforeAll(async () => {
  api = await sharedApi()
  check = createResponseChecker(api.app)
  // The one repository that all projects here are linked to.
  await api.newProject('site')
})
afterAll(() => api.stop())

let made = 0

type Hook = { id: string; name: string; path: string; secret: string }

async function newHook(input: object = {}, project: object = {}): Promise<Hook> {
  const name = `site-${++made}`
  await api.call('POST', '/projects', { body: { name, repo: 'test/site', ...project } })
  const { body } = await api.call('POST', `/projects/${name}/deploy-hooks`, { body: { name: 'cms', ...input } })
  const path = new URL(body.url).pathname
  return { id: body.id, name, path, secret: path.split('/').pop()! }
}

async function send(path: string, options: { method?: string; payload?: string; type?: string } = {}): Promise<Answer> {
  const { method = 'POST', payload, type } = options
  const headers = type === undefined ? {} : { 'content-type': type }
  const response = await api.app.inject({ method: method as 'POST', url: path, headers, ...(payload && { payload }) })
  const text = response.body
  const body = text === '' ? undefined : JSON.parse(text)
  const answer = { status: response.statusCode, headers: response.headers as Answer['headers'], body, text }
  if (method === 'POST') check('POST', path, answer)
  return answer
}

const deploymentsOf = async ({ name }: Hook) =>
  (await api.call('GET', `/deployments?project=${name}`)).body.deployments as { id: string }[]

describe('a deploy hook', () => {
  test('shows its address once, and keeps the hash of its secret alone', async () => {
    const hook = await newHook()
    expect(hook.secret).toMatch(/^brd_[0-9A-Za-z]{40}$/)
    const { body, text } = await api.call('GET', `/projects/${hook.name}/deploy-hooks`)
    expect(body.deployHooks).toMatchObject([{ id: hook.id, name: 'cms', ref: null, lastUsedAt: null }])
    expect(text + (await api.call('GET', `/projects/${hook.name}/deploy-hooks/${hook.id}`)).text).not.toContain('brd_')
    const row = await api.db.deployHook.findUniqueOrThrow({ where: { id: hook.id } })
    expect(Buffer.from(row.hash)).toEqual(hash('sha256', hook.secret, 'buffer'))
    const { text: log } = await api.call('GET', '/events')
    expect(log).not.toContain(hook.secret)
  })

  test('deploys the production branch to production, as its own act', async () => {
    const hook = await newHook()
    const { status, body } = await send(hook.path)
    expect({ status, body }).toMatchObject({ status: 202, body: { reason: 'deployed' } })
    const { body: deployment } = await api.call('GET', `/deployments/${body.deployment}`)
    expect(deployment).toMatchObject({ ref: 'main', production: true, source: 'hook', state: 'BUILDING' })
    expect(deployment.commit).toMatch(/^[0-9a-f]{7}$/)
    const { body: log } = await api.call('GET', `/events?subject=${deployment.id}`)
    expect(log.events).toMatchObject([{ type: 'deployment.created', actor: hook.id }])
    const { body: read } = await api.call('GET', `/projects/${hook.name}/deploy-hooks/${hook.id}`)
    expect(read.lastUsedAt).not.toBeNull()
  })

  test('says what production is pinned to, if the deployment does not take over', async () => {
    const hook = await newHook()
    const { body: first } = await send(hook.path)
    await finishDeployment(api.db, api.deps.urls, first.deployment, { to: 'READY', by: 'system' })
    await api.call('POST', `/deployments/${first.deployment}/promote`, { body: { pin: true } })
    const { body } = await send(hook.path)
    expect(body.detail).toBe(
      `main is being deployed, but production is pinned to ${first.deployment}. Promote ${body.deployment} to switch.`,
    )
  })

  test('deploys another ref as a preview, also where pushes do not deploy', async () => {
    const settings = { productionBranch: 'release', autoDeploy: false }
    const hook = await newHook({ ref: 'main' }, { settings })
    const { body } = await send(hook.path)
    expect((await api.call('GET', `/deployments/${body.deployment}`)).body).toMatchObject({ production: false })
  })

  test.each([
    ['nothing', {}],
    ['JSON', { payload: '{"event":"published"}', type: 'application/json' }],
    ['broken JSON', { payload: '{"event', type: 'application/json' }],
    ['a form', { payload: 'a=b', type: 'application/x-www-form-urlencoded' }],
    ['text', { payload: 'published', type: 'text/plain; charset=utf-8' }],
    ['octets', { payload: '\0\u0001', type: 'application/octet-stream' }],
    ['a body of no type', { payload: 'x', type: '' }],
    ['a body of a malformed type', { payload: 'x', type: 'nonsense' }],
    ['no body, but a type', { type: 'application/json' }],
  ])('takes %s', async (_what, sent) => {
    const hook = await newHook()
    expect(await send(hook.path, sent)).toMatchObject({ status: 202, body: { reason: 'deployed' } })
  })

  test('refuses a large body', async () => {
    const hook = await newHook()
    const payload = 'x'.repeat(64 * 1024 + 1)
    expect(await send(hook.path, { payload, type: 'text/plain' })).toMatchObject({
      status: 413,
      body: { code: 'body_too_large' },
    })
  })

  test('makes one deployment of a burst, and another one once the first no longer waits', async () => {
    const hook = await newHook()
    const { body: second } = await api.call('POST', `/projects/${hook.name}/deploy-hooks`, { body: { name: 'other' } })
    const paths = Array.from({ length: 12 }, (_, index) => (index % 2 ? hook.path : new URL(second.url).pathname))
    const answers = await Promise.all(paths.map((path) => send(path)))
    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 202))
    expect(new Set(answers.map(({ body }) => body.deployment)).size).toBe(1)
    expect(answers.filter(({ body }) => body.reason === 'deployed')).toHaveLength(1)
    const [first] = await deploymentsOf(hook)
    await api.db.deployment.update({ where: { id: first!.id }, data: { startedAt: new Date() } })
    const { body } = await send(hook.path)
    expect(body).toMatchObject({ reason: 'deployed' })
    await finishDeployment(api.db, api.deps.urls, body.deployment, { to: 'READY', by: 'system' })
    expect((await send(hook.path)).body).toMatchObject({ reason: 'deployed' })
    expect(await deploymentsOf(hook)).toHaveLength(3)
  })

  test.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
    'starts nothing by %s, and tells how',
    async (method) => {
      const hook = await newHook()
      const { status, headers, text } = await send(hook.path, { method })
      expect(status).toBe(405)
      expect(headers.allow).toBe('POST')
      if (method !== 'HEAD') expect(text).toContain('POST')
      expect(text).not.toContain(hook.secret)
      expect(await deploymentsOf(hook)).toEqual([])
    },
  )

  test('is a plain 404 with an unknown secret, whatever it looks like', async () => {
    const hook = await newHook()
    const secrets = [
      `brd_${'0'.repeat(40)}`,
      hook.secret.slice(0, -1),
      'x',
      'brd_%00',
      encodeURIComponent('../'),
      hook.id,
    ]
    const answers = await Promise.all(secrets.map((secret) => send(`/hooks/deploy/${secret}`)))
    for (const { status, body } of answers)
      expect({ status, code: body.code }).toEqual({ status: 404, code: 'not_found' })
    expect(new Set(answers.map(({ body }) => body.detail)).size).toBe(1)
  })

  test('starts nothing once it is deleted', async () => {
    const hook = await newHook()
    const path = `/projects/${hook.name}/deploy-hooks/${hook.id}`
    expect((await api.call('DELETE', path)).status).toBe(204)
    expect((await send(hook.path)).status).toBe(404)
    expect((await api.call('GET', path)).status).toBe(404)
    expect((await api.call('DELETE', path)).status).toBe(404)
  })

  test('is refused with the name of the field', async () => {
    const { name } = await newHook()
    const bad = { body: { name: ' ', ref: 'a..b' } }
    const { status, body } = await api.call('POST', `/projects/${name}/deploy-hooks`, bad)
    expect(status).toBe(422)
    expect(body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(['#/name', '#/ref'])
  })

  test('says so when the ref is not there', async () => {
    const hook = await newHook({ ref: 'no-such-branch' })
    const { status, body } = await send(hook.path)
    expect({ status, code: body.code }).toEqual({ status: 422, code: 'ref_not_found' })
    expect(body.detail).toContain('no-such-branch')
    expect(body.errors).toBeUndefined()
  })

  test('needs a project with a repository', async () => {
    await api.call('POST', '/projects', { body: { name: 'uploads' } })
    const { status, body } = await api.call('POST', '/projects/uploads/deploy-hooks', { body: { name: 'cms' } })
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'project_without_repository' })
  })

  test('starts nothing while the account is suspended', async () => {
    const { accountId, token } = await api.newAccount()
    await api.call('POST', '/projects', { token, body: { name: 'held', repo: 'test/site' } })
    const { body } = await api.call('POST', '/projects/held/deploy-hooks', { token, body: { name: 'cms' } })
    await api.db.account.update({ where: { id: accountId }, data: { suspendedAt: new Date() } })
    expect(await send(new URL(body.url).pathname)).toMatchObject({ status: 403, body: { code: 'account_suspended' } })
  })

  test('is called 60 times in a minute at most, whatever the others are', async () => {
    const [hook, other] = [await newHook(), await newHook()]
    const answers: number[] = []
    for (let count = 0; count < 61; count++) answers.push((await send(hook.path)).status)
    expect(answers).toEqual([...Array.from({ length: 60 }, () => 202), 429])
    const { status, headers } = await send(hook.path)
    expect(status).toBe(429)
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
    expect((await send(other.path)).status).toBe(202)
  })
})
