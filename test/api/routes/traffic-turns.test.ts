// Reads of traffic may be of very many rows: they hold up nobody else, and an account has one at a time.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

/** Reads of traffic stand still while `work` runs. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  const [locked, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const lock = api.db.$transaction(async (db) => {
    await db.$executeRaw`LOCK TABLE traffic IN ACCESS EXCLUSIVE MODE`
    locked.resolve()
    await held.promise
  })
  await locked.promise
  await work().finally(held.resolve)
  await lock
}

const waits = async () =>
  (
    await api.db.$queryRaw<{ pid: number }[]>`SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`
  ).length

test('an account reads one at a time, a few wait, more are refused, and all that waited are answered', async () => {
  await api.newProject('wide')
  const read = () => api.call('GET', '/projects/wide/traffic')
  let all: ReturnType<typeof read>[] = []
  await whileLocked(async () => {
    all = Array.from({ length: 15 }, read)
    let refused = 0
    for (const one of all) void one.then(({ status }) => status === 429 && refused++)
    await until(() => refused === 4)
    // The sums and the hosts of one read.
    expect(await waits()).toBeLessThanOrEqual(2)
  })
  const statuses = (await Promise.all(all)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(11)
  const [refusal] = (await Promise.all(all)).filter(({ status }) => status === 429)
  expect(refusal).toMatchObject({ body: { code: 'rate_limited' }, headers: { 'retry-after': '1' } })
  expect((await read()).status).toBe(200)
})

test('reads of many accounts leave connections for all else that projects are asked for', async () => {
  const accounts = await Promise.all(Array.from({ length: 8 }, () => api.newAccount()))
  for (const [n, { token }] of accounts.entries()) await api.newProject(`site-${n}`, { token })
  let all: Promise<{ status: number }>[] = []
  await whileLocked(async () => {
    all = accounts.map(({ token }, n) => api.call('GET', `/projects/site-${n}/traffic`, { token }))
    // As many as may have a connection at once.
    await until(async () => (await waits()) >= 5)
    const { token } = accounts[0]!
    expect((await api.call('GET', '/projects/site-0', { token })).status).toBe(200)
  })
  await Promise.all(all)
})
