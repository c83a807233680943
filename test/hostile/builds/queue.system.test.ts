// A tenant that does whatever it may to have the workers for itself, beside one that builds now and then.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Handler, startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { announceWaiting, startBuild } from '../../../src/services/deployments/queue.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { newTenant, type Tenant } from '../../helpers/builds.ts'
import { createRepository } from '../../helpers/repository.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
let hostile: Tenant
let honest: Tenant
const workers: Worker[] = []
const failures: string[] = []
/** Ids of deployments in the order in which they started, and who started. */
const started: { id: string; accountId: string }[] = []
/** While the hostile tenant is about, its builds go on until they are canceled or this ends. */
const over = new AbortController()

beforeAll(async () => {
  api = await startApi({ QUOTA_BUILDS_AT_ONCE: '3', QUOTA_BUILDS_QUEUED: '30' })
  hostile = await newTenant(api)
  honest = await newTenant(api)
})
afterAll(async () => {
  over.abort()
  for (const worker of workers) await worker.stop()
  await api.stop()
})

function work(): void {
  const { db, deps } = api
  const run: Handler<'build'>['run'] = async ({ deploymentId: id }, { signal }) => {
    const row = await db.deployment.findUnique({ where: { id } })
    if (row?.state !== 'BUILDING' || !(await startBuild(db, row))) return
    started.push({ id, accountId: row.accountId })
    const canceled = new AbortController()
    const off = deps.notifications.on('event', ({ type, subject }) => {
      if (type === 'deployment.canceled' && subject === id) canceled.abort()
      if (type === 'project.deleted' && subject === row.projectId) canceled.abort()
    })
    const ends = AbortSignal.any([signal, over.signal, canceled.signal])
    // The hostile ones go on for as long as they can.
    if (row.accountId === hostile.accountId && !ends.aborted) {
      await new Promise((resolve) => ends.addEventListener('abort', resolve))
    }
    off()
    await finishDeployment(db, deps.urls, id, { to: 'READY', by: 'system' })
  }
  const handler = { concurrency: 2, retryDelaysMs: [], run, giveUp: async () => {} }
  workers.push(startWorker(db, deps.notifications, deps.log, { build: handler }))
}

async function call(method: string, path: string, body?: object) {
  const answer = await api.call(method, path, { token: hostile.token, ...(body && { body }) })
  if (answer.status >= 500) failures.push(`${method} ${path}: ${answer.text}`)
  return answer
}

/** Asks for builds to its limit, of many projects, all of them for production. */
async function flood(project: string): Promise<void> {
  while (!over.signal.aborted) await call('POST', '/deployments', { project, production: true })
}

/** Asks for a build and cancels it again, at every moment of its life. */
async function churn(project: string): Promise<void> {
  while (!over.signal.aborted) {
    const { body, status } = await call('POST', '/deployments', { project, production: true })
    if (status === 201) await call('POST', `/deployments/${body.id}/cancel`)
    const { body: list } = await call('GET', '/deployments?state=BUILDING&limit=100')
    const [any] = (list.deployments as { id: string }[]).toSorted(() => Math.random() - 0.5)
    if (any) await call('POST', `/deployments/${any.id}/cancel`)
  }
}

/** Makes a project, has it built and deletes it with all that waits and runs. */
async function dispose(repo: string): Promise<void> {
  for (let round = 0; !over.signal.aborted; round++) {
    const name = `gone-${round}`
    await call('POST', '/projects', { name, repo })
    await Promise.all([1, 2, 3].map(() => call('POST', '/deployments', { project: name })))
    await call('DELETE', `/projects/${name}`)
  }
}

test('each build of the honest one starts before a second one of the other, and nothing breaks', async () => {
  const { repo } = await api.db.project.findUniqueOrThrow({ where: { id: hostile.projectId } })
  await createRepository(`${api.config.dataDir}/repos`, repo)
  work()
  work()
  const attack = Promise.all([flood(hostile.projectId), churn(hostile.projectId), dispose(repo)])
  await until(() => started.length > 5)
  const waited: number[] = []
  for (let round = 0; round < 12; round++) {
    const before = started.length
    const id = await honest.ask()
    const place = (await api.call('GET', `/deployments/${id}`, { token: honest.token })).body.queuePosition
    expect(place === null || place <= 2).toBe(true)
    await announceWaiting(api.db, null)
    const at = await until(() => started.findIndex((one) => one.id === id) + 1)
    waited.push(started.slice(before, at - 1).filter(({ accountId }) => accountId === hostile.accountId).length)
    await until(async () => (await api.db.deployment.findUniqueOrThrow({ where: { id } })).state === 'READY')
  }
  over.abort()
  await attack
  // What was being taken when it was asked for, by either worker, goes before it.
  expect(Math.max(...waited)).toBeLessThanOrEqual(2)
  expect(failures).toEqual([])
  await until(async () => (await api.db.job.count({ where: { kind: 'build' } })) === 0)
  expect(await api.db.deployment.count({ where: { state: 'BUILDING' } })).toBe(0)
  const counted = await api.db.accountUsage.aggregate({ where: { name: 'buildsQueued' }, _sum: { used: true } })
  expect(Number(counted._sum.used)).toBe(0)
}, 120_000)
