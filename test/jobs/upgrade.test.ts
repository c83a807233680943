// A database of the version before, with builds that wait, run, failed and were canceled.
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate } from '../../prisma/migrate.ts'
import { takeBuild } from '../../src/jobs/statements.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { queuePositions } from '../../src/services/deployments/queue.ts'
import { postgresUrl } from '../helpers/database.ts'

let client: pg.Client
let db: Database

beforeAll(async () => {
  const url = new URL(postgresUrl())
  const admin = new pg.Client({ connectionString: url.href })
  await admin.connect()
  await admin.query('CREATE DATABASE waiting_builds')
  await admin.end()
  url.pathname = '/waiting_builds'
  client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await migrate(url.href, '20261116060000_fair_builds')
  await client.query(`
    INSERT INTO account (id, name, created_at) SELECT 'acc_' || n, n, now() FROM unnest('{a,b}'::text[]) n;
    INSERT INTO project (id, account_id, name, framework, repo, region, label, production_branch, spa_fallback,
      clean_urls, auto_deploy, created_at, updated_at)
    SELECT 'prj_' || n, 'acc_' || n, n, 'static', 'x/y', 'local-1', n, 'main', false, true, true, now(), now()
    FROM unnest('{a,b}'::text[]) n;
    INSERT INTO deployment (id, account_id, project_id, state, ref, commit, production, label, region, source, created_at)
    SELECT 'dpl_' || id, 'acc_' || who, 'prj_' || who, state, 'main', '', production, id, 'local-1', 'api', now()
    FROM (VALUES ('a0', 'a', 'BUILDING', false), ('a1', 'a', 'BUILDING', false), ('a2', 'a', 'BUILDING', true),
      ('a3', 'a', 'CANCELED', true), ('a4', 'a', 'ERROR', true), ('b1', 'b', 'BUILDING', false))
      AS d(id, who, state, production);
    INSERT INTO job (kind, key, payload, attempts, locked_by, locked_until, taken_run_at, failed_at)
    SELECT 'build', 'dpl_' || id, jsonb_build_object('deploymentId', 'dpl_' || id), attempts,
      CASE attempts WHEN 1 THEN 'old' END, CASE attempts WHEN 1 THEN now() + interval '1 hour' END,
      CASE WHEN attempts > 0 THEN now() END, CASE attempts WHEN 2 THEN now() END
    FROM (VALUES ('a0', 1), ('a1', 0), ('a2', 0), ('a3', 0), ('a4', 2), ('b1', 0), ('gone', 0)) AS j(id, attempts);
    INSERT INTO job (kind, key, payload) VALUES ('verify', 'dom_x', '{}')`)
  await migrate(url.href)
  db = openDatabase(url.href, 4)
})
afterAll(async () => {
  await closeDatabase(db)
  await client.end()
})

test('an upgrade keeps what waits, in turns, forgets what waits for nobody, and counts the rest', async () => {
  const keys = (await db.job.findMany({ orderBy: { id: 'asc' } })).map(({ key }) => key)
  expect(keys).toEqual(['dpl_a0', 'dpl_a1', 'dpl_a2', 'dpl_a4', 'dpl_b1', 'dom_x'])
  const counted = await client.query(
    `SELECT account_id, used::int FROM account_usage WHERE name = 'buildsQueued' ORDER BY 1`,
  )
  expect(counted.rows).toEqual([
    { account_id: 'acc_a', used: 3 },
    { account_id: 'acc_b', used: 1 },
  ])
  const positions = await queuePositions(db, ['dpl_a0', 'dpl_a1', 'dpl_a2', 'dpl_a3', 'dpl_b1'])
  // One of the first account runs already, and production goes first.
  expect([...positions].sort((one, other) => one[1] - other[1])).toEqual([
    ['dpl_b1', 1],
    ['dpl_a2', 2],
    ['dpl_a1', 3],
  ])
  const taken: string[] = []
  for (let i = 0; i < 4; i++) {
    const [job] = await takeBuild(db, { worker: 'new', slots: 10 })
    if (job) taken.push((job.payload as { deploymentId: string }).deploymentId)
  }
  expect(taken).toEqual(['dpl_b1', 'dpl_a2', 'dpl_a1'])
  // The build that ran meanwhile ends as it would have.
  await db.deployment.update({ where: { id: 'dpl_a0' }, data: { state: 'READY', finishedAt: new Date() } })
  const left = await client.query(
    `SELECT sum(used)::int AS used FROM account_usage WHERE name = 'buildsQueued' AND account_id = 'acc_a'`,
  )
  expect(left.rows).toEqual([{ used: 2 }])
  const { readyAt, startedAt } = await db.deployment.findUniqueOrThrow({ where: { id: 'dpl_a0' } })
  expect({ readyAt, startedAt }).toEqual({ readyAt: null, startedAt: null })
})
