// A push that deletes a branch ends its builds and marks its previews, once, and never those of a branch that is back.
import { execFileSync } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { commitHash, writeCommits } from '../../helpers/commits.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const zeros = '0'.repeat(40)
type Hook = { id: string; name: string; secret: string; path: string }

const repositoryOf = (name: string) => join(api.config.dataDir, 'repos', `test/${name}.git`)

async function newHook(name: string, settings: object = {}): Promise<Hook> {
  const { id } = await api.newProject(name, { body: { settings } })
  writeCommits(repositoryOf(name), [...'abcd'])
  const { body } = await api.call('POST', `/projects/${name}/hook`)
  return { id, name, secret: body.secret, path: new URL(body.url).pathname }
}

type Sent = { after?: string; branch?: string; delivery?: string; secret?: string; [field: string]: unknown }

/** A push as GitHub sends it; what it answers. */
async function push(hook: Hook, sent: Sent = {}) {
  const { after = commitHash('a'), branch = 'feature', delivery = randomUUID(), secret = hook.secret, ...fields } = sent
  const repository = { full_name: `test/${hook.name}` }
  const payload = JSON.stringify({ ref: `refs/heads/${branch}`, after, repository, ...fields })
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': delivery,
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(payload).digest('hex')}`,
  }
  const response = await api.app.inject({ method: 'POST', url: hook.path, payload, headers })
  return { status: response.statusCode, body: JSON.parse(response.body) }
}

const remove = (hook: Hook, sent: Sent = {}) => push(hook, { after: zeros, deleted: true, ...sent })
const ready = (id: string) => finishDeployment(api.db, api.deps.urls, id, { to: 'READY', by: 'system' })
const stateOf = async (id: string) => (await api.call('GET', `/deployments/${id}`)).body.state
const isClosed = async ({ id }: Hook, ref = 'feature') =>
  (await api.db.branch.count({ where: { projectId: id, ref, closedAt: { not: null } } })) > 0

/** A branch or tag of this name in the project's repository. */
const create = (hook: Hook, kind: 'branch' | 'tag', name = 'feature') =>
  execFileSync('git', ['-C', repositoryOf(hook.name), kind, name, 'main'])

test('its builds are canceled and its previews marked, and the answer says so', async () => {
  const hook = await newHook('plain')
  const first = (await push(hook)).body.deployment
  await ready(first)
  const pushed = (await push(hook, { after: commitHash('b') })).body.deployment
  const other = (await push(hook, { branch: 'other' })).body.deployment
  const { status, body } = await remove(hook)
  expect({ status, body }).toEqual({
    status: 202,
    body: {
      deployment: null,
      reason: 'branch_deleted',
      detail: 'The branch was deleted. 1 build was canceled; its previews are deleted in 24 hours.',
    },
  })
  expect([await stateOf(first), await stateOf(pushed), await stateOf(other)]).toEqual(['READY', 'CANCELED', 'BUILDING'])
  expect([await isClosed(hook), await isClosed(hook, 'other')]).toEqual([true, false])
  // A branch that became a tag, and one that was never deployed.
  create(hook, 'tag', 'other')
  expect((await remove(hook, { branch: 'other' })).body.detail).toBe(
    'The branch was deleted. 1 build was canceled; its previews are deleted in 24 hours.',
  )
  expect((await remove(hook, { branch: 'unseen' })).body.detail).toBe('The branch was deleted.')
})

test('it counts while autoDeploy is off too, and so does a push of a branch that is back', async () => {
  const hook = await newHook('idle')
  const building = (await push(hook)).body.deployment
  await api.call('PATCH', '/projects/idle', { body: { settings: { autoDeploy: false } } })
  expect((await remove(hook)).body.detail).toContain('1 build was canceled')
  expect(await stateOf(building)).toBe('CANCELED')
  expect(await isClosed(hook)).toBe(true)
  expect((await push(hook, { after: commitHash('b') })).body.reason).toBe('auto_deploy_off')
  expect(await isClosed(hook)).toBe(false)
})

test('a push that is skipped, and one that is deployed, keep the previews of a branch that is back', async () => {
  const hook = await newHook('watched', { watchPaths: ['docs'] })
  await ready((await push(hook)).body.deployment)
  await remove(hook)
  const commits = [{ added: [], modified: ['src/a.ts'], removed: [] }]
  const skipped = await push(hook, { before: commitHash('a'), after: commitHash('b'), commits })
  expect(skipped.body.reason).toBe('paths_unchanged')
  expect(await isClosed(hook)).toBe(false)
  await remove(hook, { before: commitHash('b') })
  expect(await isClosed(hook)).toBe(true)
  expect((await push(hook, { after: commitHash('c') })).body.reason).toBe('deployed')
  expect(await isClosed(hook)).toBe(false)
})

test('that is sent again ends nothing that was pushed since: by its id, by its text, or when it was forgotten', async () => {
  const hook = await newHook('replayed')
  await ready((await push(hook)).body.deployment)
  const delivery = randomUUID()
  await remove(hook, { delivery, before: commitHash('a') })
  const again = (await push(hook, { after: commitHash('d') })).body.deployment
  for (const sent of [{ delivery }, { before: commitHash('a') }]) {
    expect((await remove(hook, sent)).body.detail).toBe('This push was already received.')
  }
  await api.db.push.deleteMany({ where: { projectId: hook.id } })
  create(hook, 'branch')
  expect((await remove(hook, { delivery, before: commitHash('a') })).body).toEqual({
    deployment: null,
    reason: 'branch_deleted',
    detail: 'The repository still has the branch feature. Nothing was canceled or deleted.',
  })
  expect(await stateOf(again)).toBe('BUILDING')
  expect(await isClosed(hook)).toBe(false)
})

test('that nobody signed, or of another repository or branch name, ends nothing', async () => {
  const hook = await newHook('guarded')
  const building = (await push(hook)).body.deployment
  expect((await remove(hook, { secret: 'brh_wrong' })).status).toBe(401)
  const other = await remove(hook, { repository: { full_name: 'test/other' } })
  expect(other.body.reason).toBe('other_repository')
  for (const branch of ['fea\u0000ture', 'feature^', '*']) {
    expect((await remove(hook, { branch })).body.detail).toBe('The branch was deleted.')
  }
  expect((await remove(hook, { ref: 'refs/tags/feature' })).body.reason).toBe('not_a_branch')
  expect(await stateOf(building)).toBe('BUILDING')
})

test('of the production branch cancels its builds and deletes nothing', async () => {
  const hook = await newHook('live', { productionBranch: 'release' })
  const serving = (await push(hook, { branch: 'release' })).body.deployment
  await ready(serving)
  await push(hook, { branch: 'release', after: commitHash('b') })
  expect((await remove(hook, { branch: 'release' })).body.detail).toBe('The branch was deleted. 1 build was canceled.')
  expect((await api.call('GET', `/deployments/${serving}`)).body).toMatchObject({ state: 'READY', current: true })
  expect(await isClosed(hook, 'release')).toBe(false)
})
