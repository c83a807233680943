import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createSnapshot, type Snapshot } from '../../../src/engines/edge/hosts/snapshot.ts'
import { createTakeovers } from '../../../src/engines/edge/hosts/takeovers.ts'
import { readEdgeHosts } from '../../../src/services/deployments/hosts.ts'
import { memoryInUse } from '../../helpers/heap.ts'
import { counted, stepsOf, takesLinearSteps } from '../../helpers/steps/steps.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

const counting = await counted<typeof import('../../../src/engines/edge/hosts/hosts.ts')>(
  'src/engines/edge/hosts/hosts.ts',
)

let world: World
let snapshot: Snapshot | undefined
beforeAll(async () => {
  world = await startWorld()
  const account = world.actor.accountId
  await world.db.$executeRaw`
    INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback, clean_urls,
      auto_deploy, current_deployment_id, created_at, updated_at)
    SELECT 'prj_' || i, ${account}, 'p' || i, 'static', 'a/b', 'r', 'p' || i, 'main', false, true, true, 'dpl_' || i,
      now(), now() FROM generate_series(1, 2000) i`
  // In batches, so that a busy machine doesn't hit the statement timeout.
  for (let from = 1; from <= 10_000; from += 1_000) {
    await world.db.$executeRaw`
      INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
      SELECT 'dpl_' || i, ${account}, 'prj_' || (i - 1) % 2000 + 1, 'READY', 'main', 'c', true, 'p-' || i, 'r', 'api', now()
      FROM generate_series(${from}::int, ${from}::int + 999) i`
    await world.db.$executeRaw`
      INSERT INTO domain (id, account_id, project_id, name, verified, txt_value, created_at, updated_at)
      SELECT 'dom_' || i, ${account}, 'prj_' || (i - 1) % 2000 + 1, 'd' || i || '.test', true, 't', now(), now()
      FROM generate_series(${from}::int, ${from}::int + 999) i`
  }
})
afterAll(async () => {
  await snapshot?.close()
  await world.stop()
})

test('10,000 deployments and 10,000 domains are loaded by a few queries and held in little memory', async () => {
  const before = memoryInUse().heapUsed
  const queries = vi.spyOn(pg.Pool.prototype, 'query')
  const log = pino({ level: 'silent' })
  const { db, notifications } = world
  const takeovers = createTakeovers(undefined, () => {}, log)
  snapshot = await createSnapshot({
    db,
    notifications,
    edgeDomain: 'localhost',
    ownHosts: new Set(),
    log,
    takeovers,
    onBarred() {},
  })
  expect(queries.mock.calls.length).toBeLessThan(10)
  queries.mockRestore()
  expect(snapshot.size).toBe(22_000)
  expect(memoryInUse().heapUsed - before).toBeLessThan(60 << 20)
  const found = Array.from({ length: 10_000 }, (_, i) => snapshot!.find(`d${i + 1}.test`)?.target?.deploymentId)
  expect(found).toEqual(Array.from({ length: 10_000 }, (_, i) => `dpl_${(i % 2000) + 1}`))
})

test('a lookup takes as many steps as in a small table, and loading takes linear steps', async () => {
  const rows = await readEdgeHosts(world.db)
  const takeovers = createTakeovers(undefined, () => {}, pino({ level: 'silent' }))
  const tableOf = (projects: number) => {
    const table = new counting.HostTable('localhost', takeovers)
    table.apply(rows.filter(({ projectId }) => Number(projectId.slice('prj_'.length)) <= projects))
    return table
  }
  const [few, many] = [tableOf(10), tableOf(2_000)]
  for (const name of ['d1.test', 'p-1.localhost', 'www.d1.test', 'nobody.test']) {
    expect(few.find(name)).toEqual(many.find(name))
    expect(await stepsOf(() => many.find(name))).toBe(await stepsOf(() => few.find(name)))
  }
  await takesLinearSteps(250, tableOf)
})

test('a change among them is seen all the same, by its notification', async () => {
  await world.newProject('fresh')
  const { host } = await world.deploy('fresh', { 'index.html': 'x' }, { production: true })
  await until(() => snapshot!.find('fresh.localhost')?.target && snapshot!.find(host))
})
