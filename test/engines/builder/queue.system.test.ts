// Builds of several accounts with real workers: who starts when, and what the log says of it.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { announceWaits } from '../../../src/engines/builder/index.ts'
import type { Handler } from '../../../src/jobs/worker.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { startBuild } from '../../../src/services/deployments/queue.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { limit, newTenant, type Tenant } from '../../helpers/builds.ts'
import { until } from '../../helpers/until.ts'
import { uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 120_000 })

describe('workers', () => {
  let platform: Platform
  const workers: Worker[] = []
  /** Ends the build of a deployment that is running. */
  const gates = new Map<string, () => void>()
  const started: string[] = []
  beforeAll(async () => {
    platform = await startPlatform({}, false)
  })
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()))
    await platform.api.db.job.deleteMany()
    gates.clear()
    started.length = 0
  })
  afterAll(() => platform.stop())

  /** Builds that last until their gate is opened. */
  function work(concurrency: number): void {
    const { db, deps } = platform.api
    const run: Handler<'build'>['run'] = async ({ deploymentId: id }, { signal }) => {
      const row = await db.deployment.findUnique({ where: { id } })
      if (row?.state !== 'BUILDING' || !(await startBuild(db, row))) return
      started.push(id)
      const ended = Promise.withResolvers<void>()
      gates.set(id, ended.resolve)
      signal.addEventListener('abort', () => ended.reject(signal.reason))
      // A worker may be stopped while its build starts, and then no event follows.
      signal.throwIfAborted()
      await ended.promise
      await finishDeployment(db, deps.urls, id, { to: 'READY', by: 'system' })
    }
    const handler = { concurrency, retryDelaysMs: [], run, giveUp: async () => {} }
    workers.push(startWorker(db, deps.notifications, deps.log, { build: handler }))
  }

  const end = async (id: string) => {
    gates.get(id)!()
    await until(async () => (await platform.api.db.job.count({ where: { key: id } })) === 0)
  }

  const tenants = () => Promise.all([newTenant(platform.api), newTenant(platform.api)])

  async function hasBuilt(tenant: Tenant): Promise<void> {
    await platform.api.db.buildTurn.create({ data: { accountId: tenant.accountId, startedAt: new Date() } })
  }

  test('start the build of another account at once while a dozen of one wait, and take turns afterwards', async () => {
    const [hog, guest] = await tenants()
    await hasBuilt(guest)
    work(2)
    const many: string[] = []
    for (let i = 0; i < 12; i++) many.push(await hog.ask())
    await until(() => started.length === 1)
    const [g1, g2] = [await guest.ask(), await guest.ask()]
    await until(() => started.length === 2)
    expect(started).toEqual([many[0], g1])
    await end(g1)
    await until(() => started.length === 3)
    await end(g2)
    // Nobody else waits, and yet a slot stays free.
    await end(many[0]!)
    await until(() => started.length === 4)
    expect(started.slice(2)).toEqual([g2, many[1]])
    const g3 = await guest.ask()
    await until(() => started.length === 5)
    expect(started[4]).toBe(g3)
  })

  test('of several machines keep to what an account may run at once', async () => {
    const [hog, guest] = await tenants()
    await hasBuilt(guest)
    await limit(platform.api.db, hog.accountId, { buildsAtOnce: 2 })
    for (let i = 0; i < 6; i++) await hog.ask()
    for (let i = 0; i < 3; i++) work(2)
    await until(() => started.length === 2)
    const [g1, g2] = [await guest.ask(), await guest.ask()]
    await until(() => started.length === 4)
    expect(started.slice(2).sort()).toEqual([g1, g2].sort())
    const running = await platform.api.db.job.groupBy({
      by: ['accountId'],
      where: { lockedBy: { not: null } },
      _count: true,
    })
    expect(running.find(({ accountId }) => accountId === hog.accountId)?._count).toBe(2)
  })

  test('give both slots to an account that has the platform for itself', async () => {
    await platform.api.db.buildTurn.deleteMany()
    const [alone] = await tenants()
    await Promise.all([alone.ask(), alone.ask(), alone.ask()])
    work(2)
    await until(() => started.length === 2)
  })
})

describe('a build that has to wait', () => {
  let platform: Platform
  let stop: () => Promise<void>
  beforeAll(async () => {
    platform = await startPlatform({ BUILD_CONCURRENCY: '1' })
    stop = announceWaits(platform.api.deps)
  })
  afterAll(async () => {
    await stop()
    await platform.stop()
  })

  const read = async (id: string) => (await platform.api.call('GET', `/deployments/${id}`)).body

  test('says so in its log, then when it started, and is built as ever', async () => {
    await platform.project('long', { 'package.json': scripts({ build: `echo begun; ${uniqueSleep()}` }) })
    await platform.project('short', { 'index.html': 'short' })
    const long = await platform.deploy('long')
    await until(async () => (await platform.log(long)).includes('build: begun'))
    expect((await read(long)).startedAt).not.toBeNull()
    const short = await platform.deploy('short')
    expect(await read(short)).toMatchObject({ startedAt: null, queuePosition: 1 })
    await until(async () => (await platform.log(short)) !== '')
    expect(await platform.log(short)).toBe('queue: Waiting for a free build slot: this build is next.')
    await platform.api.call('POST', `/deployments/${long}/cancel`)
    const ready = await platform.settled(short)
    expect(ready).toMatchObject({ state: 'READY', queuePosition: null })
    expect(Date.parse(ready.startedAt)).toBeLessThanOrEqual(Date.parse(ready.finishedAt))
    const log = await platform.log(short)
    expect(log).toMatch(/^queue: Waiting.*\nqueue: Build started after \d+ s\.\nclone: Cloning/)
  })

  test('longer than the account has minutes left ends with the reason, and does not run', async () => {
    const { db, accountId } = platform.api
    await platform.project('late', { 'index.html': 'late' })
    await platform.project('blocker', { 'package.json': scripts({ build: `echo begun; ${uniqueSleep()}` }) })
    const blocker = await platform.deploy('blocker')
    await until(async () => (await platform.log(blocker)).includes('build: begun'))
    const late = await platform.deploy('late')
    await db.account.update({ where: { id: accountId }, data: { limits: { buildMinutesPerMonth: 7 } } })
    await db.deployment.update({ where: { id: blocker }, data: { startedAt: new Date(Date.now() - 8 * 60_000) } })
    await platform.api.call('POST', `/deployments/${blocker}/cancel`)
    expect(await platform.settled(late)).toMatchObject({ state: 'ERROR', error: { code: 'quota_exceeded' } })
    expect(await platform.log(late)).not.toContain('Cloning')
    await db.account.update({ where: { id: accountId }, data: { limits: {} } })
  })
})
