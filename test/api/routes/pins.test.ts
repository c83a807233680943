// Pinned production: it stays where it is until it is released.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi

beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
})

afterAll(() => api.stop())

async function ready(): Promise<string> {
  const { body } = await api.call('POST', '/deployments', { body: { project: 'site', production: true } })
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
