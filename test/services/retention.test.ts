// What is kept no longer is deleted, and nothing else.
import { Registry } from 'prom-client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { forgetFailedJobs } from '../../src/jobs/queue.ts'
import { idAt } from '../../src/platform/ids.ts'
import { tasksOf } from '../../src/roles/housekeeping.ts'
import { linesAfter } from '../../src/services/deployments/logs/deployment-logs.ts'
import { deleteOldLogLines, removeOldDeployments } from '../../src/services/deployments/retention/retention.ts'
import { deleteOldHolds } from '../../src/services/domains/domains.ts'
import { promoteDeployment } from '../../src/services/production/promotion.ts'
import { forgetEndedTokens } from '../../src/services/tokens/tokens.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { newTenant, type Tenant } from '../helpers/builds.ts'

const dayMs = 86_400_000
const ago = (days: number) => new Date(Date.now() - days * dayMs)

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api?.stop())

afterEach(async () => {
  await api.db.project.deleteMany()
})

let made = 0

type Made = { days: number; state?: string; production?: boolean }

/** Deployments that were made so many days ago, the later ones of the list later. */
async function deployAll({ accountId, projectId }: Tenant, kinds: Made[]): Promise<string[]> {
  const texts = { ref: 'main', commit: '', region: 'local-1', source: 'api' }
  const rows = kinds.map(({ days, state = 'READY', production = false }) => {
    const createdAt = ago(days)
    const id = `${idAt('dpl', createdAt)}${String(++made).padStart(14, '0')}`
    return { id, accountId, projectId, state, production, ...texts, label: `old-${made}`, createdAt }
  })
  await api.db.deployment.createMany({ data: rows })
  return rows.map(({ id }) => id)
}

const makeCurrent = (projectId: string, id: string) =>
  api.db.project.update({ where: { id: projectId }, data: { currentDeploymentId: id } })

const remove = (previews: number) =>
  removeOldDeployments(api.db, api.deps.urls, { previews, before: ago(30) }, AbortSignal.timeout(60_000))

async function left({ projectId }: Tenant): Promise<string[]> {
  const found = await api.db.deployment.findMany({ where: { projectId }, orderBy: { id: 'asc' } })
  return found.map(({ id }) => id)
}

describe('deployments', () => {
  test('previews beyond the newest of their project go when they are old, and neither new ones nor those of others', async () => {
    const [tenant, other] = [await newTenant(api), await newTenant(api)]
    const ids = await deployAll(
      tenant,
      [60, 50, 45, 40, 35, 20, 10].map((days) => ({ days })),
    )
    const others = await deployAll(
      other,
      [90, 80, 70].map((days) => ({ days })),
    )
    expect(await remove(3)).toBe(4)
    // Of the seven, the newest three stay in any case; the fourth is old.
    expect(await left(tenant)).toEqual(ids.slice(4))
    expect(await left(other)).toEqual(others)
    expect(await remove(3)).toBe(0)
  })

  test('what failed or was canceled goes when it is old, and does not count among those that stay', async () => {
    const tenant = await newTenant(api)
    const kinds = [
      { days: 60 },
      { days: 50, state: 'ERROR' },
      { days: 45, state: 'CANCELED', production: true },
      { days: 40, state: 'BUILDING' },
      { days: 20, state: 'ERROR' },
    ]
    const ids = await deployAll(tenant, kinds)
    expect(await remove(1)).toBe(2)
    expect(await left(tenant)).toEqual([ids[0], ids[3], ids[4]])
  })

  test('production: the current one stays however old, with the newest ten and what served lately', async () => {
    const tenant = await newTenant(api)
    const ids = await deployAll(
      tenant,
      Array.from({ length: 14 }, (_, index) => ({ days: 100 - index, production: true })),
    )
    // The first served until now, when the second took over.
    await makeCurrent(tenant.projectId, ids[0]!)
    await makeCurrent(tenant.projectId, ids[1]!)
    expect(await remove(1)).toBe(2)
    expect(await left(tenant)).toEqual([ids[0], ids[1], ...ids.slice(4)])
    await api.db.deployment.update({ where: { id: ids[0]! }, data: { productionUntil: ago(31) } })
    expect(await remove(1)).toBe(1)
    expect(await left(tenant)).toEqual([ids[1], ...ids.slice(4)])
  })

  test('go as by DELETE: with their event, their files and their counters', async () => {
    const tenant = await newTenant(api)
    const [old, kept] = await deployAll(tenant, [{ days: 60 }, { days: 50 }])
    await api.db.deployment.update({ where: { id: old! }, data: { storedBytes: 500 } })
    await api.db.deployment.update({ where: { id: kept! }, data: { storedBytes: 70 } })
    await api.db.logLine.create({
      data: { deploymentId: old!, seq: 1, at: ago(60), stream: 'stdout', step: 'build', text: 'x' },
    })
    expect(await remove(1)).toBe(1)
    const { body: account } = await api.call('GET', '/account', { token: tenant.token })
    expect(account.usage).toMatchObject({ deployments: 1, storedBytes: 70 })
    const usage = await api.db.projectUsage.aggregate({
      where: { projectId: tenant.projectId },
      _sum: { deployments: true, storedBytes: true },
    })
    expect(usage._sum).toEqual({ deployments: 1n, storedBytes: 70n })
    const { body } = await api.call('GET', `/events?subject=${old}`, { token: tenant.token })
    expect(body.events).toMatchObject([{ type: 'deployment.deleted', actor: 'system', data: { id: old } }])
    expect(await api.db.job.findFirst({ where: { kind: 'reap', key: old! } })).toMatchObject({
      payload: { deploymentIds: [old] },
    })
    expect(await linesAfter(api.db, old!, 0, 10)).toEqual([])
    expect((await api.call('GET', `/deployments/${old}`, { token: tenant.token })).status).toBe(404)
  })

  test('are deleted once by two processes at once, and one that is promoted meanwhile stays', async () => {
    const tenant = await newTenant(api)
    const ids = await deployAll(
      tenant,
      Array.from({ length: 30 }, () => ({ days: 60 })),
    )
    const promoted = promoteDeployment(api.db, api.deps.urls, tenant.actor, { id: ids[15]! })
    const counts = await Promise.all([remove(1), remove(1), promoted.then(() => 0)])
    expect(counts[0]! + counts[1]!).toBe(28)
    expect(await left(tenant)).toEqual([ids[15], ids[29]])
    const where = { type: 'deployment.deleted', subject: { in: ids } }
    expect(await api.db.event.count({ where })).toBe(28)
  })

  test('more than are found at once go in one run, and a run that is cut off leaves the rest for the next', async () => {
    const tenant = await newTenant(api)
    const ids = await deployAll(
      tenant,
      Array.from({ length: 60 }, () => ({ days: 60 })),
    )
    const cut = new AbortController()
    const running = removeOldDeployments(api.db, api.deps.urls, { previews: 1, before: ago(30) }, cut.signal)
    cut.abort()
    await expect(running).rejects.toThrow()
    expect(await remove(1)).toBe(59)
    expect(await left(tenant)).toEqual(ids.slice(-1))
  })

  test('one that cannot be deleted keeps no other, and is told', async () => {
    const [tenant, other] = [await newTenant(api), await newTenant(api)]
    const ids = await deployAll(tenant, [{ days: 60 }, { days: 55 }, { days: 50 }])
    const others = await deployAll(other, [{ days: 60 }, { days: 50 }])
    const refuse = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER refuse BEFORE DELETE ON deployment FOR EACH ROW WHEN (OLD.id = '${ids[0]}') EXECUTE FUNCTION refuse()`
    for (const statement of refuse.split(/(?<=\$\$);/)) await api.db.$executeRawUnsafe(statement)
    await expect(remove(1)).rejects.toThrow('could not be deleted')
    expect(await left(tenant)).toEqual([ids[0], ids[2]])
    expect(await left(other)).toEqual([others[1]])
    await api.db.$executeRaw`DROP TRIGGER refuse ON deployment`
    expect(await remove(1)).toBe(1)
  })
})

describe('log lines', () => {
  test('of before a time go, but not those of what serves production, and no later ones', async () => {
    const tenant = await newTenant(api)
    const [old, current, young] = await deployAll(tenant, [
      { days: 200 },
      { days: 150, production: true },
      { days: 50 },
    ])
    await makeCurrent(tenant.projectId, current!)
    const write = (deploymentId: string, days: number[]) =>
      api.db.logLine.createMany({
        data: days.map((count, index) => {
          return { deploymentId, seq: index + 1, at: ago(count), stream: 'stdout', step: 'run', text: 'x' }
        }),
      })
    await api.db.$executeRaw`INSERT INTO log_line (deployment_id, seq, at, stream, step, text)
      SELECT ${old}, seq, ${ago(200)}, 'stdout', 'build', 'x' FROM generate_series(1, 6000) seq`
    await api.db.logLine.create({
      data: { deploymentId: old!, seq: 6001, at: ago(10), stream: 'stdout', step: 'run', text: 'x' },
    })
    await write(current!, [150, 150])
    await write(young!, [50])
    expect(await deleteOldLogLines(api.db, ago(90))).toBe(6000)
    const seqs = async (id: string) => (await linesAfter(api.db, id, 0, 10)).map(({ seq }) => seq)
    expect(await seqs(old!)).toEqual([6001])
    expect(await seqs(current!)).toEqual([1, 2])
    expect(await seqs(young!)).toEqual([1])
    // Once another one serves production, its lines are like any others.
    await makeCurrent(tenant.projectId, young!)
    expect(await deleteOldLogLines(api.db, ago(90))).toBe(2)
    expect(await deleteOldLogLines(api.db, ago(90))).toBe(0)
  })
})

test('jobs that were given up long ago go, and neither later ones nor those that wait', async () => {
  const at = (failedAt: Date | null) => ({ kind: 'status', payload: {}, failedAt, createdAt: ago(60) })
  await api.db.job.createMany({ data: [at(ago(31)), at(ago(29)), at(null)] })
  expect(await forgetFailedJobs(api.db, ago(30))).toBe(1)
  const kept = await api.db.job.findMany({ where: { kind: 'status' }, orderBy: { id: 'asc' } })
  expect(kept.map(({ failedAt }) => failedAt === null)).toEqual([false, true])
})

describe('tokens', () => {
  test('that were revoked or expired long ago go, whole lines of them, and none that another one still descends from', async () => {
    const { accountId } = await api.newAccount()
    const token = (id: string, rest: { parentId?: string; revokedAt?: Date; expiresAt?: Date } = {}) =>
      api.db.token.create({
        data: {
          id,
          accountId,
          name: id,
          scopes: ['*'],
          projectIds: [],
          prefix: 'brt_0000',
          hash: Uint8Array.from(Buffer.from(id)),
          createdAt: ago(200),
          ...rest,
        },
      })
    await token('tok_a', { revokedAt: ago(100) })
    await token('tok_b', { revokedAt: ago(100), parentId: 'tok_a' })
    await token('tok_c', { expiresAt: ago(91), parentId: 'tok_b' })
    await token('tok_d', { revokedAt: ago(100) })
    await token('tok_e', { parentId: 'tok_d' })
    await token('tok_f', { expiresAt: ago(89) })
    await token('tok_g', { expiresAt: ago(-100), revokedAt: ago(89) })
    expect(await forgetEndedTokens(api.db)).toBe(3)
    const kept = await api.db.token.findMany({ where: { id: { startsWith: 'tok_', lt: 'tok_h' }, accountId } })
    const ids = kept.map(({ id }) => id).filter((id) => id.length === 5)
    expect(ids.sort()).toEqual(['tok_d', 'tok_e', 'tok_f', 'tok_g'])
  })
})

test('reservations of names go when they are over', async () => {
  const { accountId } = api
  const hold = (name: string, until: Date) => ({ name, accountId, until })
  await api.db.domainHold.createMany({ data: [hold('over.com', ago(1)), hold('held.com', ago(-1))] })
  expect(await deleteOldHolds(api.db)).toBe(1)
  expect(await api.db.domainHold.findMany({ select: { name: true } })).toEqual([{ name: 'held.com' }])
})

describe('the configuration', () => {
  const kinds = (environment: Record<string, string>) => {
    const config = loadConfig(environment)
    const names = tasksOf({ ...api.deps, config, registry: new Registry() }).map(({ name }) => name)
    return names.filter((name) => /log_lines|deployments|deliveries|failed_jobs/.test(name))
  }
  const all = ['remove log_lines', 'remove deployments', 'remove deliveries', 'remove failed_jobs']

  test('keeps each kind for some time, and for ever by 0 or never', () => {
    expect(kinds({})).toEqual(all)
    const never = { RETENTION_LOG_DAYS: '0', RETENTION_DELIVERY_DAYS: 'never', RETENTION_FAILED_JOB_DAYS: '0' }
    expect(kinds({ ...never, RETENTION_PREVIEWS: 'never' })).toEqual([])
    expect(kinds({ ...never, RETENTION_PREVIEW_DAYS: '0' })).toEqual([])
    expect(loadConfig({ RETENTION_PREVIEWS: '3' }).retention.previews).toBe(3)
  })

  test('is refused where it is no number of days', () => {
    for (const value of ['-1', 'soon', '1.5', '1e3']) {
      expect(() => loadConfig({ RETENTION_LOG_DAYS: value })).toThrow(/RETENTION_LOG_DAYS/)
    }
  })
})
