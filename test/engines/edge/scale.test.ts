import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createSnapshot, type Snapshot } from '../../../src/engines/edge/snapshot.ts'
import { createTakeovers } from '../../../src/engines/edge/takeovers.ts'
import { until } from '../../helpers/until.ts'
import { startWorld, type World } from './world.ts'

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
  await world.db.$executeRaw`
    INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
    SELECT 'dpl_' || i, ${account}, 'prj_' || (i - 1) % 2000 + 1, 'READY', 'main', 'c', true, 'p-' || i, 'r', 'api', now()
    FROM generate_series(1, 10000) i`
  await world.db.$executeRaw`
    INSERT INTO domain (id, account_id, project_id, name, verified, txt_value, created_at, updated_at)
    SELECT 'dom_' || i, ${account}, 'prj_' || (i - 1) % 2000 + 1, 'd' || i || '.test', true, 't', now(), now()
    FROM generate_series(1, 10000) i`
})
afterAll(async () => {
  await snapshot?.close()
  await world.stop()
})

const processorMs = (since?: NodeJS.CpuUsage) => {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

test('10,000 deployments and 10,000 domains are loaded by a few queries, held in little memory and found at once', async () => {
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const queries = vi.spyOn(pg.Pool.prototype, 'query')
  const loading = process.cpuUsage()
  const log = pino({ level: 'silent' })
  const { db, notifications } = world
  const takeovers = createTakeovers(undefined, log)
  snapshot = await createSnapshot({
    db,
    notifications,
    edgeDomain: 'localhost',
    ownHosts: new Set(),
    log,
    takeovers,
    onBarred() {},
  })
  const loadMs = processorMs(loading)
  expect(queries.mock.calls.length).toBeLessThan(10)
  queries.mockRestore()
  expect(snapshot.size).toBe(22_000)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(60 << 20)
  const finding = process.cpuUsage()
  const found = Array.from({ length: 10_000 }, (_, i) => snapshot!.find(`d${i + 1}.test`)?.target?.deploymentId)
  // To find each costs less than to read each once; to look through all of them for each would cost a thousand times more.
  expect(processorMs(finding)).toBeLessThan(loadMs)
  expect(found).toEqual(Array.from({ length: 10_000 }, (_, i) => `dpl_${(i % 2000) + 1}`))
})

test('a change among them is seen all the same, by its notification', async () => {
  await world.newProject('fresh')
  const { host } = await world.deploy('fresh', { 'index.html': 'x' }, { production: true })
  await until(() => snapshot!.find('fresh.localhost')?.target && snapshot!.find(host))
})
