// PostgreSQL ends connections at any moment, also inside a transaction: that is 503, never 500.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Operation, operationsOf } from '../../access/operations.ts'
import { createWorld, type Target, wireOf } from '../../access/world.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

type Aimed = { operation: Operation; target: Target }

let api: TestApi
let admin: pg.Client
beforeAll(async () => {
  api = await sharedApi()
  admin = new pg.Client(api.databaseUrl)
  await admin.connect()
})
afterAll(async () => {
  await admin.end()
  await api.stop()
})

const terminate = () =>
  admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5`)

test('every operation is answered, by 503 with Retry-After where its connection was ended', async () => {
  const world = await createWorld(api)
  const owner = await world.newOwner()
  const targets: Aimed[] = []
  for (const operation of operationsOf(api.app)) {
    targets.push({ operation, target: await world.targetOf(operation, owner) })
  }
  const failed: string[] = []
  const refused: (string | undefined)[] = []
  async function send({ operation, target }: Aimed, key: string): Promise<void> {
    const { payload, headers } = wireOf(operation, target.body)
    const answer = await api.app.inject({
      method: operation.method as 'GET',
      url: `/api${target.path}`,
      headers: { authorization: `Bearer ${owner.token}`, 'idempotency-key': key, ...headers },
      ...(payload !== undefined && { payload }),
    })
    if (answer.statusCode === 503) refused.push(answer.headers['retry-after'])
    else if (answer.statusCode >= 500) failed.push(`${operation.name}: ${answer.body}`)
  }
  let ending = true
  const ended = (async () => {
    for (; ending; await sleep(Math.random() * 20)) await terminate()
  })()
  // Some find their work done or half of it gone, and are refused: what matters here is how a failure is told.
  for (let round = 0; round < 2 || refused.length < 200; round++) {
    await Promise.all(targets.map((one, index) => send(one, `key-${round}-${index}`)))
  }
  ending = false
  await ended
  expect(failed).toEqual([])
  expect(refused.every((seconds) => Number(seconds) > 0)).toBe(true)
  await until(async () => (await api.app.inject({ url: '/readyz' })).statusCode === 200)
  expect((await api.call('GET', '/projects', { token: owner.token })).status).toBe(200)
})

test('a transaction whose connection ends before the commit is 503, and leaves nothing', async () => {
  await admin.query(`CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
    CREATE TRIGGER trip BEFORE INSERT ON idempotency_key FOR EACH ROW EXECUTE FUNCTION trip()`)
  const headers = { 'idempotency-key': 'one' }
  const body = { subject: 'interrupted', message: 'Why?' }
  const lost = await api.call('POST', '/tickets', { body, headers })
  expect(lost).toMatchObject({ status: 503, body: { code: 'database_unavailable' } })
  await admin.query('DROP TRIGGER trip ON idempotency_key; DROP FUNCTION trip()')
  expect((await api.call('POST', '/tickets', { body, headers })).status).toBe(201)
  expect(await api.db.ticket.count({ where: { subject: 'interrupted' } })).toBe(1)
})
