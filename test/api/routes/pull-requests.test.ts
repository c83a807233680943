import { createHmac, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { removeClosedBranches } from '../../../src/services/deployments/retention/branches.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { deleteOldPullRequests, maxOpen } from '../../../src/services/pushes/pull-requests.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'
import { commitHash, writeCommits } from '../../helpers/commits.ts'
import { createResponseChecker } from '../../helpers/responses.ts'

let api: TestApi
let check: ReturnType<typeof createResponseChecker>
beforeAll(async () => {
  api = await sharedApi()
  check = createResponseChecker(api.app)
  await api.newProject('site')
  writeCommits(join(api.config.dataDir, 'repos/test/site.git'), ['a', 'b', 'c'])
})
afterAll(() => api.stop())

type Hook = { projectId: string; name: string; secret: string; path: string }

let made = 0

async function newHook(settings: object = {}): Promise<Hook> {
  const name = `site-${++made}`
  const { body: project } = await api.call('POST', '/projects', { body: { name, repo: 'test/site', settings } })
  const { body: hook } = await api.call('POST', `/projects/${name}/hook`)
  return { projectId: project.id, name, secret: hook.secret, path: new URL(hook.url).pathname }
}

async function post(hook: Hook, body: object, headers: Record<string, string>): Promise<Answer> {
  const payload = JSON.stringify(body)
  const signature = createHmac('sha256', hook.secret).update(payload).digest('hex')
  const sent = {
    'content-type': 'application/json',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${signature}`,
    ...headers,
  }
  const response = await api.app.inject({ method: 'POST', url: hook.path, payload, headers: sent })
  const { statusCode: status, body: text } = response
  const answer = { status, headers: response.headers as Answer['headers'], body: JSON.parse(text), text }
  check('POST', hook.path, answer)
  return answer
}

type Said = { commit?: string; fork?: boolean; number?: number; title?: string; at?: number; repository?: string }

/** What GitHub sends; `at` counts seconds. */
function tell(hook: Hook, action: string, said: Said = {}): Promise<Answer> {
  const { commit = 'a', fork = false, number = 7, title = 'A title', at = ++made, repository = 'test/site' } = said
  const body = {
    action,
    number,
    pull_request: {
      number,
      title,
      updated_at: new Date(Date.UTC(2026, 0, 1) + at * 1000).toISOString(),
      head: { ref: 'greeting', sha: commitHash(commit), repo: { full_name: fork ? 'mallory/site' : 'test/site' } },
    },
    repository: { full_name: repository },
  }
  return post(hook, body, { 'x-github-event': 'pull_request' })
}

function push(hook: Hook, commit: string, branch = 'greeting'): Promise<Answer> {
  const body = { ref: `refs/heads/${branch}`, after: commitHash(commit), repository: { full_name: 'test/site' } }
  return post(hook, body, { 'x-github-event': 'push' })
}

const list = async (hook: Hook) => (await api.call('GET', `/projects/${hook.name}/pull-requests`)).body.pullRequests
const only = async (hook: Hook) => {
  const found = await list(hook)
  expect(found).toHaveLength(1)
  return found[0]
}
const approve = (hook: Hook, commit: string, number: number | string = 7, token?: string) =>
  api.call('POST', `/projects/${hook.name}/pull-requests/${number}/approve`, {
    body: { commit: commitHash(commit) },
    ...(token && { token }),
  })
const deployments = async (hook: Hook) =>
  (await api.call('GET', `/deployments?project=${hook.name}`)).body.deployments as Answer['body'][]
const end = (id: string, to: 'READY' | 'CANCELED') =>
  finishDeployment(api.db, api.deps.urls, id, { to, by: 'system' } as never)

describe('a request from the same repository', () => {
  test('is deployed as a preview of its branch, and listed', async () => {
    const hook = await newHook()
    const answer = await tell(hook, 'opened')
    expect(answer).toMatchObject({ status: 202, body: { reason: 'deployed' } })
    const { body } = await api.call('GET', `/deployments/${answer.body.deployment}`)
    expect(body).toMatchObject({ ref: 'greeting', production: false, source: 'pull_request', untrusted: false })
    expect(body.commitSha).toBe(commitHash('a'))
    expect(await only(hook)).toEqual({
      number: 7,
      project: hook.name,
      title: 'A title',
      branch: 'greeting',
      fromFork: false,
      state: 'OPEN',
      commit: commitHash('a').slice(0, 7),
      commitSha: commitHash('a'),
      approval: 'not_needed',
      approvedBy: null,
      deployment: body.id,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      closedAt: null,
    })
  })

  test('is built once with its push, whichever comes first', async () => {
    const [first, second] = [await newHook(), await newHook()]
    const pushed = (await push(first, 'a')).body.deployment
    expect((await tell(first, 'opened')).body).toMatchObject({ deployment: pushed, reason: 'already_deployed' })
    expect((await only(first)).deployment).toBe(pushed)
    const told = (await tell(second, 'opened')).body.deployment
    expect((await push(second, 'a')).body).toMatchObject({ deployment: told, reason: 'already_deployed' })
    for (const hook of [first, second]) expect(await deployments(hook)).toHaveLength(1)
  })

  test('is built once with its push, even when both come at once', async () => {
    const hook = await newHook()
    const answers = await Promise.all([tell(hook, 'opened'), push(hook, 'a')])
    expect(answers.map(({ body }) => body.reason).sort()).toEqual(['already_deployed', 'deployed'])
    expect(await deployments(hook)).toHaveLength(1)
  })

  test('from the production branch takes nothing from production', async () => {
    const hook = await newHook({ productionBranch: 'greeting' })
    await tell(hook, 'opened')
    const { body } = await push(hook, 'a')
    expect(body.reason).toBe('deployed')
    expect((await deployments(hook)).map(({ production }) => production)).toEqual([true, false])
  })

  test('ends the build of the commit before, and has the new one as its own', async () => {
    const hook = await newHook()
    const first = (await tell(hook, 'opened')).body.deployment
    const second = (await tell(hook, 'synchronize', { commit: 'b' })).body.deployment
    expect((await deployments(hook)).map(({ id, state }) => [id, state])).toEqual([
      [second, 'BUILDING'],
      [first, 'CANCELED'],
    ])
    expect(await only(hook)).toMatchObject({ commitSha: commitHash('b'), deployment: second })
  })

  test('of a commit that does not exist ends nothing', async () => {
    const hook = await newHook()
    const { deployment } = (await push(hook, 'a')).body
    const { body } = await tell(hook, 'synchronize', { commit: 'never written' })
    expect(body).toMatchObject({ deployment: null, reason: 'commit_not_found' })
    expect(await deployments(hook)).toMatchObject([{ id: deployment, state: 'BUILDING' }])
  })

  test('is noted and not built while autoDeploy is off', async () => {
    const hook = await newHook({ autoDeploy: false })
    expect((await tell(hook, 'opened')).body).toMatchObject({ deployment: null, reason: 'auto_deploy_off' })
    expect(await only(hook)).toMatchObject({ deployment: null })
  })

  test('whose title changes is not built again', async () => {
    const hook = await newHook()
    const { deployment } = (await tell(hook, 'opened')).body
    await end(deployment, 'CANCELED')
    expect((await tell(hook, 'edited', { title: 'Another' })).body.reason).toBe('other_event')
    expect(await only(hook)).toMatchObject({ title: 'Another', deployment })
    expect(await deployments(hook)).toHaveLength(1)
  })

  test('that is closed has its own builds ended, and those of pushes left alone', async () => {
    const hook = await newHook()
    const { deployment } = (await tell(hook, 'opened')).body
    const closed = await tell(hook, 'closed')
    expect(closed.body).toMatchObject({ deployment: null, reason: 'pull_request_closed' })
    expect(closed.body.detail).toBe('The pull request was closed. 1 build was canceled.')
    expect(await only(hook)).toMatchObject({ state: 'CLOSED', closedAt: expect.any(String) })
    const pushed = (await push(hook, 'b')).body.deployment
    await tell(hook, 'reopened', { commit: 'b' })
    await tell(hook, 'closed', { commit: 'b' })
    expect(await deployments(hook)).toMatchObject([
      { id: pushed, state: 'BUILDING' },
      { id: deployment, state: 'CANCELED' },
    ])
  })
})

describe('a request from a fork', () => {
  test('is built only once a member approves its commit, untrusted, and the log of the account says so', async () => {
    const hook = await newHook()
    const told = await tell(hook, 'opened', { fork: true })
    expect(told.body).toMatchObject({ deployment: null, reason: 'approval_needed' })
    expect(await deployments(hook)).toEqual([])
    expect(await only(hook)).toMatchObject({ fromFork: true, approval: 'needed', approvedBy: null, deployment: null })
    const { status, body } = await approve(hook, 'a')
    expect(status).toBe(202)
    expect(body).toMatchObject({ approval: 'approved', approvedBy: expect.stringMatching(/^tok_/) })
    expect(await only(hook)).toEqual(body)
    expect(await deployments(hook)).toMatchObject([
      { id: body.deployment, ref: 'refs/pull/7/head', untrusted: true, production: false, source: 'pull_request' },
    ])
    const { body: log } = await api.call('GET', `/events?type=pull_request.approved&subject=${hook.projectId}`)
    expect(log.events).toMatchObject([{ actor: body.approvedBy, data: { number: 7, commitSha: commitHash('a') } }])
  })

  test('is approved for one commit alone, by its whole hash', async () => {
    const hook = await newHook()
    await tell(hook, 'opened', { fork: true })
    const old = (await approve(hook, 'a')).body.deployment
    expect((await tell(hook, 'synchronize', { fork: true, commit: 'b' })).body.reason).toBe('approval_needed')
    expect(await only(hook)).toMatchObject({ approval: 'needed', deployment: null })
    const late = await approve(hook, 'a')
    expect({ status: late.status, code: late.body.code }).toEqual({ status: 409, code: 'pull_request_changed' })
    const path = `/projects/${hook.name}/pull-requests/7/approve`
    const short = await api.call('POST', path, { body: { commit: commitHash('b').slice(0, 12) } })
    expect(short.status).toBe(422)
    const fresh = (await approve(hook, 'b')).body.deployment
    expect((await deployments(hook)).map(({ id, state }) => [id, state])).toEqual([
      [fresh, 'BUILDING'],
      [old, 'CANCELED'],
    ])
  })

  test('that is approved twice is built once, and again if that failed', async () => {
    const hook = await newHook()
    await tell(hook, 'opened', { fork: true })
    const answers = await Promise.all(Array.from({ length: 5 }, () => approve(hook, 'a')))
    expect(new Set(answers.map(({ body }) => body.deployment)).size).toBe(1)
    await end(answers[0]!.body.deployment, 'CANCELED')
    expect((await approve(hook, 'a')).body.deployment).not.toBe(answers[0]!.body.deployment)
    expect(await deployments(hook)).toHaveLength(2)
  })

  test('never becomes production', async () => {
    const hook = await newHook()
    await tell(hook, 'opened', { fork: true })
    const id = (await approve(hook, 'a')).body.deployment
    await end(id, 'READY')
    const refused = await Promise.all([
      api.call('POST', `/deployments/${id}/promote`),
      api.call('POST', `/deployments/${id}/redeploy`, { body: { production: true } }),
    ])
    for (const { status, body } of refused) {
      expect({ status, code: body.code }).toEqual({ status: 409, code: 'deployment_untrusted' })
    }
    await expect(api.db.deployment.update({ where: { id }, data: { production: true } })).rejects.toThrow()
    const { body: again } = await api.call('POST', `/deployments/${id}/redeploy`)
    expect(again).toMatchObject({ untrusted: true, production: false, commitSha: commitHash('a') })
  })

  test('that is closed has its builds ended and its previews deleted some time after, and takes no approval', async () => {
    const hook = await newHook()
    await tell(hook, 'opened', { fork: true })
    const ready = (await approve(hook, 'a')).body.deployment
    await end(ready, 'READY')
    await tell(hook, 'synchronize', { fork: true, commit: 'b' })
    const building = (await approve(hook, 'b')).body.deployment
    const { body } = await tell(hook, 'closed', { fork: true, commit: 'b' })
    expect(body.detail).toBe('The pull request was closed. 1 build was canceled; its previews are deleted in 24 hours.')
    expect((await deployments(hook)).map(({ id, state }) => [id, state])).toEqual([
      [building, 'CANCELED'],
      [ready, 'READY'],
    ])
    expect((await approve(hook, 'b')).body.code).toBe('pull_request_closed')
    const removed = () => removeClosedBranches(api.db, api.deps.urls, new Date(Date.now() + 1_000))
    await tell(hook, 'reopened', { fork: true, commit: 'b' })
    expect(await removed()).toBe(0)
    await tell(hook, 'closed', { fork: true, commit: 'b' })
    expect(await removed()).toBe(2)
    expect(await deployments(hook)).toEqual([])
    expect(await only(hook)).toMatchObject({ state: 'CLOSED', approval: 'approved', deployment: null })
  })

  test('has a URL that follows its newest approved commit', async () => {
    const hook = await newHook()
    await tell(hook, 'opened', { fork: true })
    await approve(hook, 'a')
    await tell(hook, 'synchronize', { fork: true, commit: 'b' })
    await approve(hook, 'b')
    const urls = (await deployments(hook)).map(({ branchUrl }) => branchUrl)
    expect(urls).toEqual([expect.stringMatching(/-git-refs-pull-7-head-/), urls[0]])
  })

  test('is approved by nobody else, nor where there is none', async () => {
    const hook = await newHook()
    await tell(hook, 'opened', { fork: true })
    const other = await api.newAccount()
    for (const number of [7, 8, 'x', '7.0', '99999999999']) {
      expect((await approve(hook, 'a', number, other.token)).status).toBe(404)
    }
    for (const number of [8, 'x', '7.0', '99999999999']) expect((await approve(hook, 'a', number)).status).toBe(404)
    await tell(hook, 'opened', { number: 9 })
    expect((await approve(hook, 'a', 9)).body.code).toBe('approval_not_needed')
    expect((await deployments(hook)).filter(({ untrusted }) => untrusted)).toEqual([])
  })
})

describe('what a host says of a request', () => {
  test('is taken once, and not once something newer is known', async () => {
    const hook = await newHook()
    const at = ++made
    await tell(hook, 'synchronize', { commit: 'b', at: at + 1 })
    expect((await tell(hook, 'opened', { commit: 'a', at })).body.reason).toBe('pull_request_outdated')
    expect(await only(hook)).toMatchObject({ commitSha: commitHash('b') })
    const delivery = { 'x-github-event': 'pull_request', 'x-github-delivery': randomUUID() }
    const body = {
      action: 'opened',
      number: 8,
      pull_request: { title: 'x', head: { ref: 'greeting', sha: commitHash('c'), repo: { full_name: 'test/site' } } },
      repository: { full_name: 'test/site' },
    }
    const answers = [await post(hook, body, delivery), await post(hook, body, delivery)]
    expect(answers.map(({ body }) => body.reason)).toEqual(['deployed', 'already_deployed'])
  })

  test('of another repository, and what it does beside, is let pass', async () => {
    const hook = await newHook()
    expect((await tell(hook, 'opened', { repository: 'test/other' })).body.reason).toBe('other_repository')
    expect((await tell(hook, 'labeled')).body.reason).toBe('other_event')
    expect(await list(hook)).toEqual([])
  })

  test('has to be signed, and to be a request', async () => {
    const hook = await newHook()
    expect((await tell({ ...hook, secret: 'wrong' }, 'opened')).status).toBe(401)
    const odd = await post(hook, { action: 'opened', number: 'x' }, { 'x-github-event': 'pull_request' })
    expect(odd.status).toBe(422)
  })

  test('by GitLab is understood', async () => {
    const hook = await newHook()
    const body = {
      object_kind: 'merge_request',
      project: { path_with_namespace: 'test/site' },
      object_attributes: {
        iid: 12,
        action: 'open',
        title: 'Merge me',
        source_branch: 'greeting',
        source_project_id: 2,
        target_project_id: 1,
        last_commit: { id: commitHash('a') },
      },
    }
    const headers = { 'x-gitlab-event': 'Merge Request Hook', 'x-gitlab-token': hook.secret, 'x-hub-signature-256': '' }
    expect((await post(hook, body, headers)).body.reason).toBe('approval_needed')
    await approve(hook, 'a', 12)
    expect(await deployments(hook)).toMatchObject([{ ref: 'refs/merge-requests/12/head', untrusted: true }])
  })

  test('is kept for a bounded number of requests, and for a month once they are closed', async () => {
    const hook = await newHook({ autoDeploy: false })
    const { projectId } = hook
    const rows = Array.from({ length: maxOpen }, (_, index) => ({
      ...{ projectId, number: index + 100, ref: 'r', title: 't', branch: 'b', fromFork: true, commit: commitHash('a') },
      ...{ state: 'OPEN', createdAt: new Date(), updatedAt: new Date(Date.now() - 60_000 + index) },
    }))
    await api.db.pullRequest.createMany({ data: rows })
    await tell(hook, 'opened')
    const numbers = async () =>
      (await api.db.pullRequest.findMany({ where: { projectId }, orderBy: { number: 'asc' } })).map((it) => it.number)
    expect(await numbers()).toEqual([7, ...rows.slice(1).map(({ number }) => number)])
    await tell(hook, 'closed')
    await deleteOldPullRequests(api.db)
    expect(await numbers()).toHaveLength(maxOpen)
    const monthAgo = new Date(Date.now() - 31 * 86_400_000)
    await api.db.pullRequest.updateMany({ where: { projectId }, data: { updatedAt: monthAgo } })
    await deleteOldPullRequests(api.db)
    expect(await numbers()).toEqual(rows.slice(1).map(({ number }) => number))
  })
})
