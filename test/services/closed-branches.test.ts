// A branch that is deleted takes its builds along at once and its previews later, and nothing that serves production.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDeployment } from '../../src/services/deployments/deployments.ts'
import { closeBranch, removeClosedBranches, reopenBranch } from '../../src/services/deployments/retention/branches.ts'
import { finishDeployment } from '../../src/services/deployments/states.ts'
import { promoteDeployment } from '../../src/services/production/promotion.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { newTenant, type Tenant } from '../helpers/builds.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api?.stop())

const hourMs = 3_600_000
type Made = { ref?: string; production?: boolean; source?: 'push' | 'api' | 'upload'; ready?: boolean }

async function deploy({ actor, projectId }: Tenant, made: Made = {}): Promise<string> {
  const { ref = 'feature', production = false, source = 'push', ready = true } = made
  const plan = { ref, commit: '', production, region: 'r', source }
  const project = { id: projectId, name: 'x', pinnedDeploymentId: null }
  const { id } = await createDeployment(api.db, api.deps.urls, actor, { ...plan, project })
  if (ready) await finishDeployment(api.db, api.deps.urls, id, { to: 'READY', by: 'system' })
  return id
}

const close = ({ projectId }: Tenant, ref = 'feature') => closeBranch(api.db, api.deps.urls, { projectId, ref })
/** Closed so many hours ago. */
const backdate = ({ projectId }: Tenant, hours: number) =>
  api.db.branch.updateMany({
    where: { projectId, closedAt: { not: null } },
    data: { closedAt: new Date(Date.now() - hours * hourMs) },
  })
const remove = () => removeClosedBranches(api.db, api.deps.urls, new Date(Date.now() - 24 * hourMs))

async function left({ projectId }: Tenant): Promise<string[]> {
  const found = await api.db.deployment.findMany({ where: { projectId }, orderBy: { id: 'asc' } })
  return found.map(({ id }) => id)
}

async function statesOf(ids: string[]): Promise<string[]> {
  const found = await api.db.deployment.findMany({ where: { id: { in: ids } }, select: { id: true, state: true } })
  return ids.map((id) => found.find((row) => row.id === id)!.state)
}

describe('a branch that is closed', () => {
  test('ends its own builds at once, whoever started them, with their events', async () => {
    const tenant = await newTenant(api)
    const pushed = await deploy(tenant, { ready: false })
    const asked = await deploy(tenant, { ready: false, source: 'api' })
    const other = await deploy(tenant, { ready: false, ref: 'other' })
    const upload = await deploy(tenant, { ready: false, ref: '', source: 'upload' })
    const stranger = await newTenant(api)
    const foreign = await deploy(stranger, { ready: false })
    expect(await close(tenant)).toEqual({ canceled: 2, previews: 2 })
    expect(await statesOf([pushed, asked, other, upload, foreign])).toEqual([
      ...['CANCELED', 'CANCELED'],
      ...['BUILDING', 'BUILDING', 'BUILDING'],
    ])
    const { body } = await api.call('GET', `/events?subject=${pushed}&type=deployment.canceled`, {
      token: tenant.token,
    })
    expect(body.events).toMatchObject([{ actor: 'system' }])
    expect(await api.db.job.count({ where: { kind: 'build', key: { in: [pushed, asked] } } })).toBe(0)
  })

  test('loses its previews after the grace period and not before; other branches stay', async () => {
    const tenant = await newTenant(api)
    const mine = [await deploy(tenant), await deploy(tenant)]
    const failed = await deploy(tenant, { ready: false })
    const other = await deploy(tenant, { ref: 'other' })
    expect(await close(tenant)).toEqual({ canceled: 1, previews: 3 })
    await backdate(tenant, 23)
    expect(await remove()).toBe(0)
    expect(await left(tenant)).toEqual([...mine, failed, other])
    await backdate(tenant, 25)
    expect(await remove()).toBe(3)
    expect(await left(tenant)).toEqual([other])
    const { body } = await api.call('GET', `/events?subject=${mine[0]}&type=deployment.deleted`, {
      token: tenant.token,
    })
    expect(body.events).toMatchObject([{ actor: 'system' }])
    // It is done: a branch of this name may come back, with the same URL.
    expect(await api.db.branch.count({ where: { projectId: tenant.projectId, closedAt: { not: null } } })).toBe(0)
    expect(await remove()).toBe(0)
  })

  test('loses nothing if it is deployed or pushed again within the grace period', async () => {
    const [deployed, pushed] = [await newTenant(api), await newTenant(api)]
    const before = [await deploy(deployed), await deploy(pushed)]
    for (const tenant of [deployed, pushed]) {
      await close(tenant)
      await backdate(tenant, 25)
    }
    const again = await deploy(deployed, { ready: false })
    await reopenBranch(api.db, { projectId: pushed.projectId, ref: 'feature' })
    expect(await remove()).toBe(0)
    expect(await left(deployed)).toEqual([before[0], again])
    expect(await left(pushed)).toEqual([before[1]])
    // Closed once more, the time begins anew.
    await close(deployed)
    expect(await remove()).toBe(0)
  })

  test('keeps what serves production or has served it, and what is pinned', async () => {
    const tenant = await newTenant(api)
    const [served, current, preview] = [await deploy(tenant), await deploy(tenant), await deploy(tenant)]
    await promoteDeployment(api.db, api.deps.urls, tenant.actor, { id: served })
    await promoteDeployment(api.db, api.deps.urls, tenant.actor, { id: current, pin: true })
    expect(await close(tenant)).toEqual({ canceled: 0, previews: 1 })
    await backdate(tenant, 25)
    expect(await remove()).toBe(1)
    expect(await left(tenant)).toEqual([served, current])
    expect(preview).not.toBe(current)
  })

  test('that is the production branch ends its builds and loses nothing', async () => {
    const tenant = await newTenant(api)
    const kept = [await deploy(tenant, { ref: 'main', production: true }), await deploy(tenant, { ref: 'main' })]
    const building = await deploy(tenant, { ref: 'main', production: true, ready: false })
    expect(await close(tenant, 'main')).toEqual({ canceled: 1, previews: 0 })
    await backdate(tenant, 25)
    expect(await remove()).toBe(0)
    expect(await left(tenant)).toEqual([...kept, building])
    // Closed while it was another one.
    const late = await deploy(tenant)
    await close(tenant)
    await backdate(tenant, 25)
    await api.db.project.update({ where: { id: tenant.projectId }, data: { productionBranch: 'feature' } })
    expect(await remove()).toBe(0)
    expect(await left(tenant)).toEqual([...kept, building, late])
  })

  test('from before branches were noted loses its previews too', async () => {
    const tenant = await newTenant(api)
    await deploy(tenant)
    await api.db.branch.deleteMany({ where: { projectId: tenant.projectId } })
    await close(tenant)
    await backdate(tenant, 25)
    expect(await remove()).toBe(1)
  })

  test('of which one preview cannot be deleted loses the others, and that one later', async () => {
    const [tenant, other] = [await newTenant(api), await newTenant(api)]
    const [stuck] = [await deploy(tenant), await deploy(tenant), await deploy(other)]
    for (const closed of [tenant, other]) {
      await close(closed)
      await backdate(closed, 25)
    }
    const refuse = `CREATE FUNCTION refuse_preview() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER refuse_preview BEFORE DELETE ON deployment FOR EACH ROW WHEN (OLD.id = '${stuck}') EXECUTE FUNCTION refuse_preview()`
    for (const statement of refuse.split(/(?<=\$\$);/)) await api.db.$executeRawUnsafe(statement)
    await expect(remove()).rejects.toThrow('could not be deleted')
    expect([await left(tenant), await left(other)]).toEqual([[stuck], []])
    await api.db.$executeRaw`DROP TRIGGER refuse_preview ON deployment`
    await api.db.$executeRaw`DROP FUNCTION refuse_preview()`
    expect(await remove()).toBe(1)
  })
})
