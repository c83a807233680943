import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSnapshot, type Snapshot } from '../../../src/engines/edge/snapshot.ts'
import { createTakeovers } from '../../../src/engines/edge/takeovers.ts'
import { startWorld, until, type World } from './world.ts'

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

test('10,000 deployments and 10,000 domains are loaded quickly, held in little memory and found at once', async () => {
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const startedMs = performance.now()
  const log = pino({ level: 'silent' })
  snapshot = await createSnapshot(world.db, world.notifications, 'localhost', log, createTakeovers(undefined, log))
  expect(performance.now() - startedMs).toBeLessThan(2_000)
  expect(snapshot.size).toBe(22_000)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(60 << 20)
  const findMs = performance.now()
  for (let i = 1; i <= 10_000; i++) {
    expect.soft(snapshot.find(`d${i}.test`)?.target?.deploymentId).toBe(`dpl_${((i - 1) % 2000) + 1}`)
  }
  expect(performance.now() - findMs).toBeLessThan(2_000)
})

test('a change among them is seen within a second all the same', async () => {
  await world.newProject('fresh')
  const { host } = await world.deploy('fresh', { 'index.html': 'x' }, { production: true })
  await until(() => snapshot!.find('fresh.localhost')?.target && snapshot!.find(host))
})
