// What served production, back to it, and whether it stays there.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi

beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
})

afterAll(() => api.stop())

async function ready(project = 'site'): Promise<string> {
  const { body } = await api.call('POST', '/deployments', { body: { project, production: true } })
  await finishDeployment(api.db, api.deps.urls, body.id, { to: 'READY', by: 'system' })
  return body.id
}

const isCurrent = async (id: string) => (await api.call('GET', `/deployments/${id}`)).body.current
const pinned = async () => (await api.call('GET', '/projects/site')).body.pinned

it('rolls back to the deployment before, which stays until it is released', async () => {
  expect((await api.call('POST', '/projects/site/rollback')).status).toBe(404)
  const [first, second] = [await ready(), await ready()]
  const back = await api.call('POST', '/projects/site/rollback')
  expect(back.body).toMatchObject({ id: first, current: true })
  expect(await pinned()).toBe(first)
  const third = await ready()
  expect([await isCurrent(first), await isCurrent(second), await isCurrent(third)]).toEqual([true, false, false])
  expect((await api.call('DELETE', '/projects/site/pin')).status).toBe(204)
  expect((await api.call('DELETE', '/projects/site/pin')).status).toBe(404)
  expect(await pinned()).toBeNull()
  const fourth = await ready()
  expect(await isCurrent(fourth)).toBe(true)
})

it('pins by a promotion, and one without a pin releases it, each with an event', async () => {
  const [one, two] = [await ready(), await ready()]
  await api.call('POST', `/deployments/${one}/promote`, { body: { pin: true } })
  expect(await pinned()).toBe(one)
  await api.call('POST', `/deployments/${two}/promote`)
  expect(await pinned()).toBeNull()
  const { body } = await api.call('GET', '/events?type=project.updated&limit=2')
  expect(body.events.map(({ data }: { data: { pinned: string | null } }) => data.pinned)).toEqual([null, one])
})

const history = async (project: string, query = '') =>
  (await api.call('GET', `/projects/${project}/production${query}`)).body
const entries = async (project: string) =>
  (await history(project)).production.map(({ deployment, reason }: Record<string, string>) => [deployment, reason])
const rollBack = (project: string, body?: object) => api.call('POST', `/projects/${project}/rollback`, { body })

it('goes back to what served before, whatever was deployed in between, and each time further', async () => {
  await api.newProject('history')
  expect(await history('history')).toMatchObject({ production: [], hasMore: false })
  const [a, b] = [await ready('history'), await ready('history')]
  await api.call('POST', `/deployments/${a}/promote`)
  const c = await ready('history')
  expect((await rollBack('history')).body).toMatchObject({ id: a, current: true, pinned: a })
  expect(await entries('history')).toEqual([
    [a, 'rollback'],
    [c, 'deployment'],
    [a, 'promotion'],
    [b, 'deployment'],
    [a, 'deployment'],
  ])
  // What the rollback left is not what it goes to next.
  expect((await rollBack('history')).body.id).toBe(b)
  expect((await rollBack('history')).body.id).toBe(a)
  expect(await rollBack('history')).toMatchObject({ status: 404 })
})

it('goes back past what was deleted, to one that is named, and not to one that never served', async () => {
  await api.newProject('chosen')
  const [a, b, c] = [await ready('chosen'), await ready('chosen'), await ready('chosen')]
  expect((await api.call('DELETE', `/deployments/${b}`)).status).toBe(204)
  expect((await rollBack('chosen')).body.id).toBe(a)
  expect((await rollBack('chosen', { to: c })).body.id).toBe(c)
  expect((await history('chosen')).production.map(({ deleted }: { deleted: boolean }) => deleted)).toEqual([
    ...[false, false, false, true, false],
  ])
  const preview = await api.call('POST', '/deployments', { body: { project: 'chosen' } })
  await finishDeployment(api.db, api.deps.urls, preview.body.id, { to: 'READY', by: 'system' })
  const refused = await rollBack('chosen', { to: preview.body.id })
  expect(refused).toMatchObject({ status: 404 })
  expect(refused.body.detail).toContain('Promote it instead')
  expect((await rollBack('chosen', { to: b })).status).toBe(404)
  expect((await rollBack('chosen', { too: b })).status).toBe(422)
})

it('is listed page by page with who asked for it and from when to when, for its account alone', async () => {
  await api.newProject('pages')
  const [a, b] = [await ready('pages'), await ready('pages')]
  await api.call('POST', `/deployments/${a}/promote`)
  const first = await history('pages', '?limit=2')
  expect(first.production).toMatchObject([
    { deployment: a, reason: 'promotion', by: expect.stringMatching(/^tok_/), until: null },
    { deployment: b, reason: 'deployment', by: null, until: first.production[0].since },
  ])
  const second = await history('pages', `?limit=2&cursor=${first.nextCursor}`)
  expect(second).toMatchObject({ production: [{ deployment: a, reason: 'deployment' }], hasMore: false })
  const oldestFirst = await history('pages', '?order=asc')
  expect(oldestFirst.production.map(({ deployment }: { deployment: string }) => deployment)).toEqual([a, b, a])
  const { token } = await api.newAccount()
  expect((await api.call('GET', '/projects/pages/production', { token })).status).toBe(404)
})

it('says in every answer that production is pinned', async () => {
  await api.newProject('held')
  const a = await ready('held')
  await api.call('POST', `/deployments/${a}/promote`, { body: { pin: true } })
  const made = await api.call('POST', '/deployments', { body: { project: 'held', production: true } })
  expect(made.body).toMatchObject({ pinned: a, current: false })
  expect((await api.call('GET', `/deployments/${made.body.id}`)).body.pinned).toBe(a)
  expect((await api.call('GET', '/deployments?project=held')).body.deployments).toMatchObject([
    { pinned: a },
    { pinned: a },
  ])
})
