import { createHmac, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { deleteOldPushes } from '../../../src/services/pushes/pushes.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'
import { commitHash, writeCommits } from '../../helpers/commits.ts'
import { createResponseChecker } from '../../helpers/responses.ts'

let api: TestApi
let check: ReturnType<typeof createResponseChecker>
/** For what is refused and leaves no trace. */
let shared: Hook
beforeAll(async () => {
  api = await sharedApi()
  check = createResponseChecker(api.app)
  // The one repository that all projects here are linked to.
  await api.newProject('site')
  writeCommits(join(api.config.dataDir, 'repos/test/site.git'), [...'123456789abcdef'])
  shared = await newHook()
})
afterAll(() => api.stop())

/** That of a commit which the repository has; of 0, what hosts send for a branch that is not there. */
const hash = (digit: string) => (digit === '0' ? '0'.repeat(40) : commitHash(digit))
const hmac = (secret: string, text: string | Buffer) => createHmac('sha256', secret).update(text).digest('hex')

type Hook = { projectId: string; name: string; secret: string; path: string }

let made = 0

async function newHook(body: object = {}): Promise<Hook> {
  const name = `site-${++made}`
  const { body: project } = await api.call('POST', '/projects', { body: { name, repo: 'test/site', ...body } })
  const { body: hook } = await api.call('POST', `/projects/${name}/hook`)
  return { projectId: project.id, name, secret: hook.secret, path: new URL(hook.url).pathname }
}

async function post(path: string, payload: string | Buffer, headers: Record<string, string>): Promise<Answer> {
  const sent = { 'content-type': 'application/json', ...headers }
  const response = await api.app.inject({ method: 'POST', url: path, payload, headers: sent })
  const answer: Answer = {
    status: response.statusCode,
    headers: response.headers as Answer['headers'],
    body: response.body === '' ? undefined : JSON.parse(response.body),
    text: response.body,
  }
  check('POST', path, answer)
  return answer
}

function payloadOf(fields: object = {}): object {
  return { ref: 'refs/heads/main', after: hash('a'), repository: { full_name: 'test/site' }, ...fields }
}

/** A push as GitHub sends it. */
function push(hook: Hook, fields: object = {}, headers: Record<string, string> = {}): Promise<Answer> {
  const text = JSON.stringify(payloadOf(fields))
  return post(hook.path, text, {
    'x-github-event': 'push',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${hmac(hook.secret, text)}`,
    ...headers,
  })
}

const deployment = async (id: string) => (await api.call('GET', `/deployments/${id}`)).body
const deploymentsOf = async (hook: Hook) =>
  (await api.call('GET', `/deployments?project=${hook.name}`)).body.deployments as { id: string; state: string }[]

describe('a signed push', () => {
  test('to the production branch makes a production deployment of exactly the commit that was pushed', async () => {
    const hook = await newHook()
    const answer = await push(hook)
    expect(answer).toMatchObject({ status: 202, body: { reason: 'deployed' } })
    const { id } = await deployment(answer.body.deployment)
    expect(await deployment(id)).toMatchObject({
      state: 'BUILDING',
      ref: 'main',
      commit: hash('a').slice(0, 7),
      production: true,
      source: 'push',
    })
    const stored = await api.db.deployment.findUniqueOrThrow({ where: { id } })
    expect(stored.commit).toBe(hash('a'))
    expect(await api.db.job.findMany({ where: { kind: 'build', key: id } })).toHaveLength(1)
    const { body: log } = await api.call('GET', `/events?subject=${id}`)
    expect(log.events).toMatchObject([{ type: 'deployment.created', actor: 'system', data: { id, source: 'push' } }])
    expect((await api.call('GET', `/projects/${hook.name}/hook`)).body.lastPushAt).not.toBeNull()
  })

  test('to the production branch says what production is pinned to', async () => {
    const hook = await newHook()
    const { body: first } = await push(hook)
    expect(first.detail).toBe('main is being deployed to production.')
    await finishDeployment(api.db, api.deps.urls, first.deployment, { to: 'READY', by: 'system' })
    await api.call('POST', `/deployments/${first.deployment}/promote`, { body: { pin: true } })
    const { body } = await push(hook, { after: hash('b') })
    expect(body.detail).toBe(
      `main is being deployed, but production is pinned to ${first.deployment}. Promote ${body.deployment} to switch.`,
    )
    const { body: preview } = await push(hook, { ref: 'refs/heads/next', after: hash('c') })
    expect(preview.detail).toBe('next is being deployed as a preview.')
  })

  test('to another branch makes a preview, also when its name has slashes', async () => {
    const hook = await newHook({ settings: { productionBranch: 'release/1' } })
    const { body } = await push(hook, { ref: 'refs/heads/feature/one' })
    expect(await deployment(body.deployment)).toMatchObject({ ref: 'feature/one', production: false })
    const { body: live } = await push(hook, { ref: 'refs/heads/release/1' })
    expect(await deployment(live.deployment)).toMatchObject({ ref: 'release/1', production: true })
  })

  test.each([
    ['a deleted branch', { deleted: true }, 'branch_deleted'],
    ['a branch whose hash is zeros', { after: hash('0') }, 'branch_deleted'],
    ['a tag', { ref: 'refs/tags/v1' }, 'not_a_branch'],
    ['a note', { ref: 'refs/notes/commits' }, 'not_a_branch'],
    ['another repository', { repository: { full_name: 'test/other' } }, 'other_repository'],
    ['no repository', { repository: undefined }, 'other_repository'],
  ])('of %s makes nothing, and says why', async (_what, fields, reason) => {
    expect(await push(shared, fields)).toMatchObject({ status: 202, body: { deployment: null, reason } })
    expect(await deploymentsOf(shared)).toEqual([])
  })

  test('of the linked repository in other letters is its push', async () => {
    const hook = await newHook()
    const { body } = await push(hook, { repository: { full_name: 'Test/SITE' } })
    expect(body.reason).toBe('deployed')
  })

  test('makes nothing while autoDeploy is off, and can be sent again once it is on', async () => {
    const hook = await newHook({ settings: { autoDeploy: false } })
    const delivery = { 'x-github-delivery': randomUUID() }
    expect(await push(hook, {}, delivery)).toMatchObject({ status: 202, body: { reason: 'auto_deploy_off' } })
    await api.call('PATCH', `/projects/${hook.name}`, { body: { settings: { autoDeploy: true } } })
    expect(await push(hook, {}, delivery)).toMatchObject({ status: 202, body: { reason: 'deployed' } })
  })

  test('cancels earlier pushes to its branch that still build, and nothing else', async () => {
    const hook = await newHook()
    const other = (await push(hook, { ref: 'refs/heads/other' })).body.deployment
    const asked = (await api.call('POST', '/deployments', { body: { project: hook.name, ref: 'main' } })).body.id
    const first = (await push(hook, { after: hash('1') })).body.deployment
    const second = (await push(hook, { after: hash('2') })).body.deployment
    const { body } = await push(hook, { after: hash('3') })
    expect(body.detail).toContain(second)
    const states = new Map((await deploymentsOf(hook)).map(({ id, state }) => [id, state]))
    expect([first, second, body.deployment, other, asked].map((id) => states.get(id))).toEqual([
      'CANCELED',
      'CANCELED',
      'BUILDING',
      'BUILDING',
      'BUILDING',
    ])
    const { body: log } = await api.call('GET', `/events?subject=${first}&type=deployment.canceled`)
    expect(log.events).toHaveLength(1)
  })

  test('leaves one build per branch, even when ten arrive at once', async () => {
    const hook = await newHook()
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => push(hook, { after: hash(String((n % 9) + 1)), n })),
    )
    expect(answers.map(({ body }) => body.reason)).toEqual(Array(10).fill('deployed'))
    const building = (await deploymentsOf(hook)).filter(({ state }) => state === 'BUILDING')
    expect(building).toHaveLength(1)
  })

  test('that names a commit which does not exist makes nothing, cancels nothing, and says why', async () => {
    const hook = await newHook()
    const good = (await push(hook)).body.deployment
    const answer = await push(hook, { after: 'd'.repeat(40) })
    expect(answer).toMatchObject({ status: 202, body: { deployment: null, reason: 'commit_not_found' } })
    expect(answer.body.detail).toBe(`test/site has no commit ${'d'.repeat(40)}. Nothing was built or canceled.`)
    expect(await deploymentsOf(hook)).toMatchObject([{ id: good, state: 'BUILDING' }])
  })

  test('goes along with changes of its project and its builds at the same time', async () => {
    const hook = await newHook()
    const first = (await push(hook)).body.deployment
    const status = { provider: 'github', token: 'x' }
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) => [
        push(hook, { n }),
        api.call('PUT', `/projects/${hook.name}/hook/status`, { body: status }),
        api.call('PATCH', `/projects/${hook.name}`, { body: { settings: { cleanUrls: true } } }),
        api.call('POST', `/deployments/${first}/promote`),
        api.call('POST', `/deployments/${first}/cancel`),
      ]).flat(),
    )
    expect(answers.filter(({ status }) => status >= 500).map(({ text }) => text)).toEqual([])
  })

  test('is taken once by its delivery id, even when ten copies arrive at once', async () => {
    const hook = await newHook()
    const delivery = { 'x-github-delivery': randomUUID() }
    const answers = await Promise.all(Array.from({ length: 10 }, () => push(hook, {}, delivery)))
    expect(answers.map(({ body }) => body.reason).sort()).toEqual([...Array(9).fill('already_deployed'), 'deployed'])
    expect(new Set(answers.map(({ body }) => body.deployment)).size).toBe(1)
    expect(await deploymentsOf(hook)).toHaveLength(1)
  })

  test('that was recorded cannot be replayed under another delivery id, nor under none', async () => {
    const hook = await newHook()
    const first = await push(hook)
    for (const delivery of [randomUUID(), '']) {
      const { body } = await push(hook, {}, { 'x-github-delivery': delivery })
      expect(body).toMatchObject({ reason: 'already_deployed', deployment: first.body.deployment })
    }
  })

  test('is forgotten after a week, and not before', async () => {
    const hook = await newHook()
    await push(hook)
    const where = { projectId: hook.projectId }
    const age = (days: number) =>
      api.db.push.updateMany({ where, data: { createdAt: new Date(Date.now() - days * 86_400_000) } })
    await age(6.9)
    await deleteOldPushes(api.db)
    expect(await api.db.push.count({ where })).toBe(1)
    await age(7.1)
    await deleteOldPushes(api.db)
    expect(await api.db.push.count({ where })).toBe(0)
  })

  test('is refused beyond 60 in a minute, for its own project alone', async () => {
    const [busy, calm] = [await newHook(), await newHook()]
    const answers: Answer[] = []
    for (let n = 0; n < 61; n++) answers.push(await push(busy, { deleted: true, n }))
    expect(answers.map(({ status }) => status)).toEqual([...Array(60).fill(202), 429])
    expect(answers[60]).toMatchObject({
      body: { code: 'rate_limited' },
      headers: { 'retry-after': expect.any(String) },
    })
    expect((await push(calm)).status).toBe(202)
  })

  test('is refused while the account is suspended', async () => {
    const hook = await newHook()
    await api.db.account.update({ where: { id: api.accountId }, data: { suspendedAt: new Date() } })
    try {
      expect(await push(hook)).toMatchObject({ status: 403, body: { code: 'account_suspended' } })
    } finally {
      await api.db.account.update({ where: { id: api.accountId }, data: { suspendedAt: null } })
    }
  })
})

describe('every repository host is understood:', () => {
  test.each([
    ['x-gitea', { 'x-github-event': 'push' }],
    ['x-forgejo', { 'x-gitea-event': 'push', 'x-github-event': 'push' }],
  ])('%s headers', async (prefix, more) => {
    const hook = await newHook()
    const text = JSON.stringify(payloadOf())
    const sign = (secret: string) => ({
      [`${prefix}-event`]: 'push',
      [`${prefix}-delivery`]: 'same',
      [`${prefix}-signature`]: hmac(secret, text),
      ...more,
    })
    expect((await post(hook.path, text, sign('other'))).status).toBe(401)
    expect((await post(hook.path, text, sign(hook.secret))).body.reason).toBe('deployed')
    const again = JSON.stringify(payloadOf({ after: hash('b') }))
    const replay = { ...sign(hook.secret), [`${prefix}-signature`]: hmac(hook.secret, again) }
    expect((await post(hook.path, again, replay)).body.reason).toBe('already_deployed')
  })

  test('GitLab, which sends the secret itself', async () => {
    const hook = await newHook()
    const send = (after: string, headers: Record<string, string>) => {
      const project = { path_with_namespace: 'test/site' }
      const body = { object_kind: 'push', ref: 'refs/heads/main', after, project, repository: { name: 'x' } }
      return post(hook.path, JSON.stringify(body), { 'x-gitlab-event': 'Push Hook', ...headers })
    }
    for (const token of ['', 'wrong', hook.secret.slice(0, -1), `${hook.secret}x`]) {
      expect((await send(hash('a'), { 'x-gitlab-token': token })).status).toBe(401)
    }
    const token = { 'x-gitlab-token': hook.secret }
    expect((await send(hash('a'), { ...token, 'idempotency-key': 'k' })).body.reason).toBe('deployed')
    expect((await send(hash('b'), { ...token, 'idempotency-key': 'k' })).body.reason).toBe('already_deployed')
    expect((await send(hash('c'), { ...token, 'x-gitlab-event-uuid': 'u' })).body.reason).toBe('deployed')
    expect((await send(hash('d'), { ...token, 'x-gitlab-event-uuid': 'u' })).body.reason).toBe('already_deployed')
    const tag = { ...token, 'x-gitlab-event': 'Tag Push Hook' }
    expect((await send(hash('0'), tag)).body.reason).toBe('branch_deleted')
    expect((await send(hash('e'), { ...token, 'x-gitlab-event': 'Merge Request Hook' })).body.reason).toBe(
      'other_event',
    )
  })

  test('a ping is answered kindly, and other events are let pass', async () => {
    const hook = await newHook()
    expect(await push(hook, {}, { 'x-github-event': 'ping' })).toMatchObject({ status: 200, body: { reason: 'ping' } })
    const other = await push(hook, {}, { 'x-github-event': 'issues' })
    expect(other).toMatchObject({ status: 202, body: { deployment: null, reason: 'other_event' } })
    expect(await deploymentsOf(hook)).toEqual([])
  })

  test('forms, signed as GitHub and as Gitea sign them', async () => {
    const hook = await newHook()
    const send = (after: string, signed: 'body' | 'payload') => {
      const payload = JSON.stringify(payloadOf({ after, message: 'ä & + = %' }))
      const body = new URLSearchParams({ payload }).toString()
      const signature = hmac(hook.secret, signed === 'body' ? body : payload)
      return post(hook.path, body, {
        'content-type': 'application/x-www-form-urlencoded',
        'x-hub-signature-256': `sha256=${signature}`,
      })
    }
    expect((await send(hash('a'), 'body')).body.reason).toBe('deployed')
    expect((await send(hash('b'), 'payload')).body.reason).toBe('deployed')
  })
})

describe('a push that is not signed by the secret', () => {
  const shapeOf = ({ status, headers, body }: Answer) => ({
    status,
    headers: Object.keys(headers).sort(),
    body: { ...body, requestId: '' },
  })

  test('is refused alike, whether the project exists, has a hook, or is another’s', async () => {
    const hook = await newHook()
    const bare = await api.newProject('bare')
    const text = JSON.stringify(payloadOf())
    const wrong = { 'x-hub-signature-256': `sha256=${hmac('wrong', text)}` }
    const reference = shapeOf(await post(hook.path, text, wrong))
    expect(reference).toMatchObject({ status: 401, body: { code: 'invalid_signature' } })
    const right = { 'x-hub-signature-256': `sha256=${hmac(hook.secret, text)}` }
    const elsewhere = [bare.id, 'prj_000000000000000000000000', hook.name, 'x', '%00', '..%2f', '%F0%9F%98%80']
    for (const id of elsewhere) expect(shapeOf(await post(`/hooks/git/${id}`, text, right))).toEqual(reference)
    expect(await deploymentsOf(hook)).toEqual([])
  })

  test.each([
    ['no signature', {}],
    ['an empty one', { 'x-hub-signature-256': '' }],
    ['zeros', { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }],
    ['the old algorithm', { 'x-hub-signature': `sha1=${'a'.repeat(40)}` }],
    ['half of one', { 'x-hub-signature-256': 'sha256=abcd' }],
    ['something else', { 'x-hub-signature-256': `sha256=${'é'.repeat(64)}` }],
  ])('is refused with %s, before its body is looked at', async (_what, headers) => {
    expect(await post(shared.path, '{"ref":', headers as never)).toMatchObject({ status: 401 })
  })

  test('is refused when one byte of its body changed', async () => {
    const hook = await newHook()
    const text = JSON.stringify(payloadOf())
    const headers = { 'x-hub-signature-256': `sha256=${hmac(hook.secret, text)}` }
    expect((await post(hook.path, text.replace('main', 'mail'), headers)).status).toBe(401)
    expect((await post(hook.path, text, headers)).status).toBe(202)
  })
})

describe('a signed body that is no push', () => {
  const send = (hook: Hook, text: string | Buffer, headers: Record<string, string> = {}) =>
    post(hook.path, text, { 'x-hub-signature-256': `sha256=${hmac(hook.secret, text)}`, ...headers })

  test.each([
    ['is not JSON', '{"ref":', 400, 'invalid_json'],
    ['is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), 400, 'invalid_json'],
    ['is empty', '', 400, 'invalid_json'],
    ['is a list', '[]', 422, 'validation_failed'],
    ['is null', 'null', 422, 'validation_failed'],
    ['is nested half a million deep', `${'['.repeat(500_000)}${']'.repeat(500_000)}`, 422, 'validation_failed'],
    ['has a short hash', '{"ref":"refs/heads/main","after":"abc"}', 422, 'validation_failed'],
  ])('is refused when it %s', async (_what, text, status, code) => {
    expect(await send(shared, text)).toMatchObject({ status, body: { code } })
  })

  test.each(['-x', 'a..b', 'a b', 'a\u0000', 'a\ud800', 'x.lock', '@{1}'])(
    'is refused for the branch %j',
    async (name) => {
      const text = JSON.stringify(payloadOf({ ref: `refs/heads/${name}` }))
      const { status, body } = await send(shared, text)
      expect(status).toBe(422)
      expect(body.errors).toMatchObject([{ in: 'body', pointer: '#/ref' }])
    },
  )

  test('is refused before it is parsed when most of a megabyte lies deep in it', async () => {
    const parse = vi.spyOn(JSON, 'parse')
    const deep = `${'{"a":[0,'.repeat(100_000)}0${']}'.repeat(100_000)}`
    const answer = await send(shared, `{"ref":"refs/heads/main","commits":${deep}}`)
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length))
    parse.mockRestore()
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ in: 'body', code: 'too_long' }] } })
    expect(longest).toBeLessThanOrEqual(256 * 1024)
  })

  test('is taken with thousands of commits, which are parsed some at a time', async () => {
    const hook = await newHook()
    const commits = Array.from({ length: 4_000 }, (_, n) => ({ id: hash('a'), message: `commit ${n}`.padEnd(150) }))
    const text = JSON.stringify(payloadOf({ commits }))
    const parse = vi.spyOn(JSON, 'parse')
    const { status } = await send(hook, text)
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length))
    parse.mockRestore()
    expect(status).toBe(202)
    expect(longest).toBeLessThanOrEqual(256 * 1024)
  })

  test('is refused above a megabyte, and taken below', async () => {
    const hook = await newHook()
    const padded = (bytes: number) => {
      const text = JSON.stringify(payloadOf({ pad: '' }))
      return text.replace('"pad":""', `"pad":"${'x'.repeat(bytes - text.length)}"`)
    }
    expect((await send(hook, padded(1024 * 1024))).status).toBe(202)
    expect(await send(hook, padded(1024 * 1024 + 1))).toMatchObject({ status: 413, body: { code: 'body_too_large' } })
  })

  test('is refused as plain text', async () => {
    expect((await send(shared, 'x', { 'content-type': 'text/plain' })).status).toBe(415)
  })
})

describe('a push to a project with watchPaths', () => {
  const watching = (watchPaths: string[] = ['apps/web/**']) => newHook({ settings: { watchPaths } })
  /** One commit behind another. */
  const step = (from: string, to: string, ...files: string[]) => ({
    before: hash(from),
    after: hash(to),
    commits: [{ added: files, modified: [], removed: [] }],
  })
  const outside = (from: string, to: string) => step(from, to, 'apps/api/main.go', 'README.md')

  test('that changes nothing under them makes no deployment, and says so', async () => {
    const hook = await watching()
    expect((await push(hook, step('a', 'b', 'README.md'))).body.reason).toBe('deployed')
    const { status, body } = await push(hook, outside('b', 'c'))
    expect({ status, body }).toMatchObject({ status: 202, body: { deployment: null, reason: 'paths_unchanged' } })
    expect(body.detail).toContain('None of the 2 changed files')
    expect(await deploymentsOf(hook)).toHaveLength(1)
    const skip = { project: hook.name, ref: 'main', commit: hash('c'), reason: 'paths_unchanged', detail: body.detail }
    expect((await api.call('GET', `/projects/${hook.name}/hook`)).body.lastSkip).toMatchObject(skip)
    const { body: log } = await api.call('GET', `/events?type=push.skipped&subject=${hook.projectId}`)
    expect(log.events).toMatchObject([{ actor: 'system', data: skip }])
  })

  test('that changes something under them is built, also after others that did not', async () => {
    const hook = await watching()
    await push(hook, step('a', 'b', 'apps/web/index.html'))
    expect((await push(hook, outside('b', 'c'))).body.reason).toBe('paths_unchanged')
    expect((await push(hook, outside('c', 'd'))).body.reason).toBe('paths_unchanged')
    expect((await push(hook, step('d', 'e', 'x', 'apps/web/x'))).body.reason).toBe('deployed')
    expect((await push(hook, outside('e', 'f'))).body.reason).toBe('paths_unchanged')
  })

  test('leaves the build before it alone', async () => {
    const hook = await watching()
    const { body: first } = await push(hook, step('a', 'b', 'apps/web/index.html'))
    await push(hook, outside('b', 'c'))
    expect((await deployment(first.deployment)).state).toBe('BUILDING')
  })

  test('is built where the base is not what was deployed: a push in between never came', async () => {
    const hook = await watching()
    await push(hook, step('a', 'b', 'apps/web/index.html'))
    expect((await push(hook, outside('c', 'd'))).body.reason).toBe('deployed')
  })

  test.each([
    ['is the first of its branch', { ...outside('b', 'c'), ref: 'refs/heads/other' }],
    ['makes the branch', { ...outside('0', 'c'), created: true }],
    ['is forced', { ...outside('b', 'c'), forced: true }],
    ['has no list of commits', { before: hash('b'), after: hash('c') }],
    ['has commits of another form', { before: hash('b'), after: hash('c'), commits: [{ added: 7 }], created: 'no' }],
    ['has more commits than are listed', { ...outside('b', 'c'), total_commits_count: 30 }],
  ])('is built if it %s', async (_what, fields) => {
    const hook = await watching()
    await push(hook, step('a', 'b', 'apps/web/index.html'))
    expect((await push(hook, fields)).body.reason).toBe('deployed')
  })

  test('is built if the build before it failed', async () => {
    const hook = await watching()
    const { body } = await push(hook, step('a', 'b', 'apps/web/index.html'))
    const failed = { to: 'ERROR', code: 'build_failed', message: 'it failed', by: 'system' } as const
    await finishDeployment(api.db, api.deps.urls, body.deployment, failed)
    expect((await push(hook, outside('b', 'c'))).body.reason).toBe('deployed')
  })

  test('is skipped again when it is sent again, told once, and built once its paths are watched', async () => {
    const hook = await watching()
    await push(hook, step('a', 'b', 'apps/web/index.html'))
    const delivery = { 'x-github-delivery': randomUUID() }
    for (let count = 0; count < 2; count++) {
      expect((await push(hook, outside('b', 'c'), delivery)).body.reason).toBe('paths_unchanged')
    }
    const { body: log } = await api.call('GET', `/events?type=push.skipped&subject=${hook.projectId}`)
    expect(log.events).toHaveLength(1)
    await api.call('PATCH', `/projects/${hook.name}`, { body: { settings: { watchPaths: [] } } })
    expect((await push(hook, outside('b', 'c'), delivery)).body.reason).toBe('deployed')
    expect((await push(hook, outside('b', 'c'), delivery)).body.reason).toBe('already_deployed')
  })

  test.each(['', '/apps', '!', '!!a', 'a{b,c}', 'a?', 'a\\\\b', ' a', 'x'.repeat(201)])(
    'refuses the path %j',
    async (path) => {
      const settings = { watchPaths: ['ok/**', path] }
      const { status, body } = await api.call('PATCH', `/projects/${shared.name}`, { body: { settings } })
      expect(status).toBe(422)
      expect(body.errors).toMatchObject([{ pointer: '#/settings/watchPaths/1' }])
    },
  )
})

describe('the hook itself', () => {
  test('shows its secret once, keeps it sealed, and tells the log of each change', async () => {
    const project = await api.newProject('told')
    const { status, body, headers } = await api.call('POST', '/projects/told/hook')
    expect(status).toBe(201)
    expect(headers.location).toBe('/api/projects/told/hook')
    expect(body).toMatchObject({ url: `${api.config.baseUrl}/hooks/git/${project.id}`, commitStatus: null })
    expect(body.secret).toMatch(/^brh_[0-9A-Za-z]{40}$/)
    const read = await api.call('GET', '/projects/told/hook')
    expect(read.text).not.toContain(body.secret)
    const stored = await api.db.pushHook.findUniqueOrThrow({ where: { projectId: project.id } })
    expect(Buffer.from(stored.secret).toString('latin1')).not.toContain(body.secret)
    expect((await api.call('DELETE', '/projects/told/hook')).status).toBe(204)
    expect((await api.call('GET', '/projects/told/hook')).status).toBe(404)
    const { body: log } = await api.call('GET', `/events?subject=${project.id}&type=project.updated`)
    expect(log.events).toHaveLength(2)
  })

  test('takes pushes of the old secret for the overlap, and of no secret but the new one without', async () => {
    const hook = await newHook()
    const rotate = async (body?: object): Promise<Hook> => ({
      ...hook,
      secret: (await api.call('POST', `/projects/${hook.name}/hook`, { body })).body.secret,
    })
    const second = await rotate({ overlapSeconds: 60 })
    expect((await push(hook, { n: 1 })).status).toBe(202)
    expect((await push(second, { n: 2 })).status).toBe(202)
    await api.db.pushHook.update({ where: { projectId: hook.projectId }, data: { oldSecretUntil: new Date() } })
    expect((await push(hook, { n: 3 })).status).toBe(401)
    const third = await rotate()
    expect((await push(second, { n: 4 })).status).toBe(401)
    expect((await push(third, { n: 5 })).status).toBe(202)
  })

  test('goes with its project, and refuses pushes once it is deleted', async () => {
    const hook = await newHook()
    await push(hook)
    expect((await api.call('DELETE', `/projects/${hook.name}/hook`)).status).toBe(204)
    expect((await push(hook, { n: 1 })).status).toBe(401)
    const other = await newHook()
    await push(other)
    expect((await api.call('DELETE', `/projects/${other.name}`)).status).toBe(204)
    expect((await push(other, { n: 1 })).status).toBe(401)
  })

  test('keeps the token for commit statuses sealed and never returns it', async () => {
    const hook = await newHook()
    const path = `/projects/${hook.name}/hook/status`
    const put = await api.call('PUT', path, { body: { provider: 'github', token: 'ghp_secret' } })
    expect(put.body.commitStatus).toEqual({
      provider: 'github',
      apiUrl: 'https://api.github.com',
      postedAt: null,
      error: null,
    })
    expect(put.text).not.toContain('ghp_secret')
    const stored = await api.db.pushHook.findUniqueOrThrow({ where: { projectId: hook.projectId } })
    expect(Buffer.from(stored.statusToken!).toString('latin1')).not.toContain('ghp_secret')
    const gitea = { provider: 'gitea', apiUrl: 'https://git.example.com/', token: 'x' }
    const changed = await api.call('PUT', path, { body: gitea })
    expect(changed.body.commitStatus.apiUrl).toBe('https://git.example.com/api/v1')
    const { body: usual } = await api.call('PUT', path, { body: { provider: 'gitlab', token: 'x' } })
    expect(usual.commitStatus).toMatchObject({ provider: 'gitlab', apiUrl: 'https://gitlab.com/api/v4' })
    for (const apiUrl of ['https://gitlab.example.com/', 'https://gitlab.example.com/api/v4']) {
      const { body } = await api.call('PUT', path, { body: { provider: 'gitlab', apiUrl, token: 'x' } })
      expect(body.commitStatus.apiUrl).toBe('https://gitlab.example.com/api/v4')
    }
    expect((await api.call('DELETE', path)).status).toBe(204)
    expect((await api.call('DELETE', path)).status).toBe(404)
  })

  test.each([
    [{ provider: 'gitea', token: 'x' }, 'required'],
    [{ provider: 'gitea', apiUrl: 'https://127.0.0.1/api/v1', token: 'x' }, 'bad_url'],
    [{ provider: 'github', apiUrl: 'https://user:pass@example.com', token: 'x' }, 'bad_url'],
    [{ provider: 'github', apiUrl: 'ftp://example.com', token: 'x' }, 'bad_url'],
    [{ provider: 'github', apiUrl: 'https://example.com/?x=', token: 'x' }, 'bad_format'],
    [{ provider: 'github', token: 'two words' }, 'bad_format'],
    [{ provider: 'gitlab', apiUrl: 'http://192.168.0.1', token: 'x' }, 'bad_url'],
    [{ provider: 'bitbucket', token: 'x' }, 'not_allowed'],
  ])('refuses statuses to %j', async (body, code) => {
    const answer = await api.call('PUT', `/projects/${shared.name}/hook/status`, { body })
    expect(answer.status).toBe(422)
    expect(answer.body.errors).toMatchObject([{ code }])
  })
})
