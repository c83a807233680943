import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let token: string
beforeAll(async () => {
  api = await sharedApi()
  token = (await createAccount(api.db, 'the desk', ['operator'])).token
})
afterAll(() => api.stop())

test('an operator reads the nodes page by page, newest first, each with its state', async () => {
  const load = { cpu: 0.5, memoryBytes: 1_000, work: { jobs: 2 } }
  const row = { name: 'web-1', roles: ['worker'], version: '1.0.0', load }
  await api.db.node.createMany({
    data: [
      { ...row, id: 'nod_1', address: '10.0.0.1' },
      { ...row, id: 'nod_2', draining: true },
      { ...row, id: 'nod_3', draining: true, heartbeatAt: new Date(Date.now() - 60_000) },
    ],
  })
  const first = await api.call('GET', '/operator/nodes?limit=2', { token })
  expect(first.body.nodes).toMatchObject([
    { id: 'nod_3', state: 'LOST', address: null },
    { id: 'nod_2', state: 'DRAINING' },
  ])
  const { body } = await api.call('GET', `/operator/nodes?limit=2&cursor=${first.body.nextCursor}`, { token })
  const { startedAt, heartbeatAt } = await api.db.node.findUniqueOrThrow({ where: { id: 'nod_1' } })
  expect(body).toEqual({
    nodes: [
      {
        ...{
          id: 'nod_1',
          name: 'web-1',
          roles: ['worker'],
          version: '1.0.0',
          address: '10.0.0.1',
          state: 'ACTIVE',
          load,
        },
        ...{ startedAt: startedAt.toISOString(), heartbeatAt: heartbeatAt.toISOString() },
      },
    ],
    hasMore: false,
    nextCursor: null,
    latestCursor: null,
  })
})

test('an operator drains a node and takes it back, but not one that is lost', async () => {
  const change = (id: string, draining: boolean) =>
    api.call('PATCH', `/operator/nodes/${id}`, { token, body: { draining } })
  expect((await change('nod_1', true)).body).toMatchObject({ id: 'nod_1', state: 'DRAINING' })
  expect((await api.call('GET', '/operator/nodes/nod_1', { token })).body.state).toBe('DRAINING')
  expect((await change('nod_1', false)).body.state).toBe('ACTIVE')
  expect(await change('nod_3', false)).toMatchObject({ status: 409, body: { code: 'invalid_transition' } })
  // A name stands for several, so it is taken by the command alone.
  expect((await change('web-1', true)).status).toBe(404)
})

test('nobody else does', async () => {
  const answer = await api.call('GET', '/operator/nodes')
  expect([answer.status, answer.body.code]).toEqual([403, 'insufficient_scope'])
})
