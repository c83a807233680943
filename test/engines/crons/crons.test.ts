import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createCronHandler } from '../../../src/engines/crons/handler.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

/** Stands for an edge, which has tests of its own: what it is asked, and what it answers. */
let edge: Server
let answer: (request: IncomingMessage, response: ServerResponse) => void
const asked: IncomingMessage[] = []

let api: TestApi
let workers: Worker[]
beforeAll(async () => {
  edge = createServer((request, response) => {
    asked.push(request)
    answer(request, response)
  })
  edge.listen(0, '127.0.0.1')
  await once(edge, 'listening')
  const { port } = edge.address() as AddressInfo
  api = await startApi({ EDGE_HTTP_PORT: String(port), HOST: '127.0.0.1' })
  await api.newProject('first')
  const { db, notifications, log, config, urls, vault } = api.deps
  workers = [1, 2].map(() =>
    startWorker(db, notifications, log, { cron: createCronHandler({ db, config, urls, vault, log }, 1_000) }),
  )
})
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()))
  await api.stop()
  edge.closeAllConnections()
  edge.close()
})
beforeEach(() => {
  asked.length = 0
  answer = (_request, response) => response.end('done')
})

let made = 0
const patiently = { timeout: 30_000, interval: 30 }

/** A project with one cron and a production deployment, unless it shall have none. */
async function newProject({ path = '/tick', production = true } = {}) {
  const name = `site-${++made}`
  const settings = { crons: [{ path, schedule: '0 0 1 1 *' }] }
  const { body } = await api.call('POST', '/projects', { body: { name, repo: 'test/first', settings } })
  const { id: cronId } = await api.db.cron.findFirstOrThrow({ where: { projectId: body.id } })
  let deploymentId = ''
  if (production) {
    const { body: deployment } = await api.call('POST', '/deployments', { body: { project: name, production: true } })
    deploymentId = deployment.id
    await finishDeployment(api.db, api.deps.urls, deploymentId, { to: 'READY', by: 'system' })
  }
  return { id: body.id as string, name, host: new URL(body.productionUrl).host, cronId, deploymentId }
}

/** Makes it due, as if so many minutes had passed. */
async function makeDue(cronId: string, minutes = 0): Promise<void> {
  const nextAt = new Date(Date.now() - minutes * 60_000 - 1)
  await api.db.cron.update({ where: { id: cronId }, data: { nextAt } })
  await api.db.job.updateMany({ where: { kind: 'cron', key: cronId }, data: { runAt: nextAt } })
}

const runsOf = (cronId: string) => api.db.cronRun.findMany({ where: { cronId }, orderBy: { id: 'asc' } })

async function runOf({ name, cronId }: { name: string; cronId: string }) {
  await makeDue(cronId)
  const last = async () => (await api.call('GET', `/projects/${name}/crons`)).body.crons[0].lastRun
  await expect.poll(async () => ((await last())?.outcome ?? 'running') === 'running', patiently).toBe(false)
  return last()
}

describe('a cron that is due', () => {
  test('gets production by its host name, and notes what came of it', async () => {
    const project = await newProject({ path: '/api/tick?all=1' })
    expect(await runOf(project)).toMatchObject({ outcome: 'ok', status: 200, error: null })
    expect(asked).toHaveLength(1)
    const [{ method, url, headers }] = asked as [IncomingMessage]
    expect({ method, url }).toEqual({ method: 'GET', url: '/api/tick?all=1' })
    expect(headers).toMatchObject({ host: project.host, 'user-agent': 'berth-cron/1' })
    expect(headers.authorization).toBeUndefined()
    const lines = async () => (await api.call('GET', `/deployments/${project.deploymentId}/runtime-logs`)).body.lines
    await expect
      .poll(lines, patiently)
      .toMatchObject([{ stream: 'system', text: expect.stringMatching(/^cron \/api\/tick\?all=1: 200 in/) }])
    const [cron] = (await api.call('GET', `/projects/${project.name}/crons`)).body.crons
    expect(new Date(cron.nextRunAt).getTime()).toBeGreaterThan(Date.now())
    const job = await api.db.job.findFirstOrThrow({ where: { kind: 'cron', key: project.cronId } })
    expect(job.runAt.toISOString()).toBe(cron.nextRunAt)
  })

  test('sends the secret of production, if the project has one', async () => {
    const project = await newProject()
    const put = (value: string, target: string) =>
      api.call('PUT', `/projects/${project.name}/env/CRON_SECRET`, { body: { value, target } })
    await put('for-all', 'all')
    await put('for-previews', 'preview')
    await runOf(project)
    await put('for-production', 'production')
    await expect.poll(() => asked.length, patiently).toBe(1)
    const first = (await runsOf(project.cronId)).length
    await makeDue(project.cronId)
    await expect.poll(async () => (await runsOf(project.cronId)).length, patiently).toBe(first + 1)
    await expect.poll(() => asked.length, patiently).toBe(2)
    expect(asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer for-all', 'Bearer for-production'])
  })

  test('sends nothing if no header may have the secret', async () => {
    const project = await newProject()
    await api.call('PUT', `/projects/${project.name}/env/CRON_SECRET`, { body: { value: 'a\r\nx: y' } })
    expect(await runOf(project)).toMatchObject({ outcome: 'failed', error: expect.stringContaining('CRON_SECRET') })
    expect(asked).toEqual([])
  })

  test('that was missed many times is called once, by one of two workers', async () => {
    const project = await newProject()
    const settings = { crons: [{ path: '/minutely', schedule: '* * * * *' }] }
    await api.call('PATCH', `/projects/${project.name}`, { body: { settings } })
    const { id } = await api.db.cron.findFirstOrThrow({ where: { projectId: project.id } })
    await makeDue(id, 90)
    await expect.poll(async () => (await runsOf(id))[0]?.outcome, patiently).toBe('ok')
    const { nextAt } = await api.db.cron.findFirstOrThrow({ where: { id } })
    expect(nextAt.getTime()).toBeGreaterThan((await runsOf(id))[0]!.startedAt.getTime())
    expect(asked.filter(({ url }) => url === '/minutely')).toHaveLength((await runsOf(id)).length)
    // It would be due again in one of the next tests.
    await api.call('DELETE', `/projects/${project.name}`)
  })

  test('is not called again by a job that comes too early, which waits for its time', async () => {
    const project = await newProject()
    const { nextAt } = await api.db.cron.findFirstOrThrow({ where: { id: project.cronId } })
    await api.db.job.updateMany({ where: { kind: 'cron', key: project.cronId }, data: { runAt: new Date(0) } })
    const due = async () => (await api.db.job.findFirst({ where: { kind: 'cron', key: project.cronId } }))?.runAt
    await expect.poll(due, patiently).toEqual(nextAt)
    expect(await runsOf(project.cronId)).toEqual([])
    expect(asked).toEqual([])
  })

  test.each([
    ['an error', 500, {}, 'Production answered with 500.'],
    ['a page that there is not', 404, {}, 'Production answered with 404.'],
    ['a redirect, which is not followed', 302, { location: '/elsewhere' }, 'Redirects are not followed.'],
  ])('fails with %s', async (_what, status, headers, error) => {
    answer = (_request, response) => response.writeHead(status, headers).end()
    expect(await runOf(await newProject())).toMatchObject({ outcome: 'failed', status, error })
    expect(asked).toHaveLength(1)
  })

  test('fails without an answer in time, and with one that does not end', async () => {
    answer = () => {}
    const silent = await runOf(await newProject())
    expect(silent).toMatchObject({ outcome: 'failed', status: null, error: 'There was no answer within 1 s.' })
    answer = (_request, response) => response.writeHead(200).write('and')
    const endless = await runOf(await newProject())
    expect(endless).toMatchObject({ outcome: 'failed', status: 200, error: 'The answer had no end within 1 s.' })
  })

  test('fails if the connection is cut', async () => {
    answer = (request) => request.socket.destroy()
    const cut = await runOf(await newProject())
    expect(cut).toMatchObject({ outcome: 'failed', status: null, error: expect.stringContaining('connection failed') })
    expect(asked).toHaveLength(1)
  })

  test('is skipped without production, and says so', async () => {
    const run = await runOf(await newProject({ production: false }))
    expect(run).toMatchObject({ outcome: 'skipped', status: null, error: expect.stringContaining('production') })
    expect(asked).toEqual([])
  })

  test('is skipped while the account is suspended, or the project taken down', async () => {
    const project = await newProject()
    const { accountId } = api
    await api.db.account.update({ where: { id: accountId }, data: { suspendedAt: new Date() } })
    try {
      await makeDue(project.cronId)
      await expect.poll(async () => (await runsOf(project.cronId))[0]?.error, patiently).toContain('suspended')
    } finally {
      await api.db.account.update({ where: { id: accountId }, data: { suspendedAt: null } })
    }
    const other = await newProject()
    const takedown = { id: `tkd_${'0'.repeat(24)}`, accountId, projectId: other.id, hosts: [], reason: 'reported' }
    await api.db.takedown.create({ data: { ...takedown, createdAt: new Date() } })
    expect(await runOf(other)).toMatchObject({ outcome: 'skipped', error: expect.stringContaining('taken down') })
    expect(asked).toEqual([])
  })
})
