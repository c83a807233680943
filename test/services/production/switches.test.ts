// A switch of production: who is waited for, and what ends it.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import {
  type EdgeNode,
  endEdgeLease,
  endSwitches,
  recordShown,
  renewEdgeLease,
} from '../../../src/services/production/switches.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

// Of its own: every live edge of an installation is waited for.
let api: TestApi
beforeAll(async () => {
  api = await startApi()
})
afterAll(() => api.stop())

const edge = (id: string): EdgeNode => ({ id, name: `node-${id}` })

async function deploy(project: string): Promise<string> {
  const { body } = await api.call('POST', '/deployments', { body: { project, production: true } })
  await finishDeployment(api.db, api.deps.urls, body.id, { to: 'READY', by: 'system' })
  return body.id
}

async function present(project: string) {
  const { body } = await api.call('GET', `/projects/${project}/production?limit=1`)
  return body.production[0]
}

async function show(node: EdgeNode, project: string, deploymentId: string): Promise<void> {
  const { id } = await api.db.project.findFirstOrThrow({ where: { name: project } })
  await recordShown(api.db, node, new Map([[id, deploymentId]]))
  await endSwitches(api.db, api.deps.urls)
}

const served = async (id: string) =>
  (await api.call('GET', `/events?type=deployment.served&subject=${id}`)).body.events.length

test('a switch is over when every live edge shows it, with one event, and names those it waits for', async () => {
  await api.newProject('two')
  const [one, two] = [edge('1'), edge('2')]
  await Promise.all([renewEdgeLease(api.db, one), renewEdgeLease(api.db, two)])
  const id = await deploy('two')
  expect(await present('two')).toMatchObject({ deployment: id, servedAt: null, waitingFor: ['node-1', 'node-2'] })
  await show(one, 'two', id)
  await show(one, 'two', id)
  expect(await present('two')).toMatchObject({ servedAt: null, waitingFor: ['node-2'] })
  expect(await served(id)).toBe(0)
  await Promise.all([show(two, 'two', id), show(two, 'two', id)])
  expect(await present('two')).toMatchObject({ servedAt: expect.any(String), waitingFor: [] })
  expect(await served(id)).toBe(1)
  await endSwitches(api.db, api.deps.urls)
  expect(await api.db.edgeSwitch.count()).toBe(0)
})

/** Waits for a deployment; its state then, and the edges that do not show it yet. */
async function untilReady(id: string) {
  const { body } = await api.call('GET', `/deployments/${id}?wait=60`)
  return [body.state, (await present(body.project)).waitingFor]
}

test('who waits for a production deployment is answered when every live edge shows it', async () => {
  await api.newProject('awaited')
  const both = [edge('1'), edge('2')]
  await Promise.all(both.map((one) => renewEdgeLease(api.db, one)))
  const { body } = await api.call('POST', '/deployments', { body: { project: 'awaited', production: true } })
  const whileBuilding = untilReady(body.id)
  await finishDeployment(api.db, api.deps.urls, body.id, { to: 'READY', by: 'system' })
  const onceReady = untilReady(body.id)
  expect(await present('awaited')).toMatchObject({ waitingFor: ['node-1', 'node-2'] })
  for (const one of both) await show(one, 'awaited', body.id)
  expect(await Promise.all([whileBuilding, onceReady])).toEqual([
    ['READY', []],
    ['READY', []],
  ])
})

test('what an edge shows that is not production any more ends nothing', async () => {
  await api.newProject('late')
  const [a, b] = [await deploy('late'), await deploy('late')]
  await Promise.all(['1', '2'].map((id) => show(edge(id), 'late', a)))
  expect(await present('late')).toMatchObject({ deployment: b, servedAt: null })
  await Promise.all(['1', '2'].map((id) => show(edge(id), 'late', b)))
  expect((await present('late')).servedAt).not.toBeNull()
})

test('an edge that stops, or whose lease ends, is waited for no longer', async () => {
  await api.newProject('gone')
  const a = await deploy('gone')
  await show(edge('1'), 'gone', a)
  expect((await present('gone')).waitingFor).toEqual(['node-2'])
  await api.db.edge.update({ where: { id: '2' }, data: { leasedUntil: new Date(Date.now() - 1) } })
  expect((await present('gone')).waitingFor).toEqual([])
  await endSwitches(api.db, api.deps.urls)
  expect(await served(a)).toBe(1)
  const b = await deploy('gone')
  await endEdgeLease(api.db, edge('1'))
  // Nobody is there to serve it, so it is not said to be served.
  await endSwitches(api.db, api.deps.urls)
  expect(await present('gone')).toMatchObject({ servedAt: null, waitingFor: [] })
  expect(await served(b)).toBe(0)
})

test('a promotion says whether every visitor gets it', async () => {
  await api.newProject('told')
  const [a] = [await deploy('told'), await deploy('told')]
  const alone = await api.call('POST', `/deployments/${a}/promote`)
  expect(alone.headers['production-served']).toBe('true')
})
