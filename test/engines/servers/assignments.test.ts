// What a runner reports of its instances, and one that is wanted again while its last requests end.
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAssignments } from '../../../src/engines/servers/run/assignments.ts'
import type { Servers } from '../../../src/engines/servers/run/servers.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import type { Duty } from '../../../src/services/instances/index.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

/** A server that has a WebSocket open: it is retired once that ends, or as soon as it is kept again. */
function openServer() {
  const done = { retired: 0, halted: 0 }
  let end = () => {}
  const servers = {
    backend: () => ({}),
    keep: () => end(),
    ready: async () => {},
    retire() {
      done.retired++
      return new Promise<void>((resolve) => {
        end = resolve
      })
    },
    halt: async () => void done.halted++,
    isWanted: () => false,
  }
  return { done, end: () => end(), servers: servers as unknown as Servers }
}

test('goes on if production comes back to it, without waiting for them', async () => {
  await api.newProject('back')
  const { body } = await api.call('POST', '/deployments', { body: { project: 'back' } })
  await finishDeployment(api.db, api.deps.urls, body.id, { to: 'READY', by: 'system' })
  const { term } = await api.db.instance.create({ data: { deploymentId: body.id, slot: 1, node: 'n', address: 'a' } })
  const { done, end, servers } = openServer()
  const assignments = createAssignments({ db: api.db, servers, log: pino({ level: 'silent' }), handoverMs: 0 })
  const key = `${body.id}/${term}`
  const follow = (duty: Duty) =>
    assignments.follow([{ deploymentId: body.id, slot: 1, term: String(term), state: 'healthy', duty } as never])
  const states = async () =>
    (await api.db.instance.findMany({ where: { deploymentId: body.id } })).map(({ state }) => state)
  follow('keep')
  assignments.onState(key, 'healthy')
  await until(async () => (await states())[0] === 'healthy')
  follow('surplus')
  await until(async () => done.retired === 1 && (await states())[0] === 'leaving')
  expect(assignments.backend(key)).toBeNull()
  follow('keep')
  await until(async () => (await states())[0] === 'healthy')
  expect(assignments.backend(key)).not.toBeNull()
  expect(done.halted).toBe(0)
  // It can leave again.
  follow('surplus')
  await until(() => done.retired === 2)
  end()
  await until(async () => (await states()).length === 0)
  expect(done.halted).toBe(1)
})

test('reports one state after the other, so that the last one stays', async () => {
  const written: string[] = []
  const answers: (() => void)[] = []
  const updateMany = ({ data }: { data: { state: string } }) => {
    written.push(data.state)
    return new Promise<void>((resolve) => answers.push(resolve))
  }
  const db = { instance: { updateMany } } as never
  const assignments = createAssignments({ db, servers: openServer().servers, log: pino({ level: 'silent' }) })
  assignments.follow([{ deploymentId: 'd', slot: 1, term: '1', state: 'healthy', duty: 'keep' } as never])
  assignments.onState('d/1', 'healthy')
  await until(() => written.length > 0)
  expect(written).toEqual(['starting'])
  answers[0]!()
  await until(() => written.length > 1)
  expect(written).toEqual(['starting', 'healthy'])
})
