import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createDeliveryMetrics } from '../../src/engines/delivery/metrics.ts'
import { closeDatabase, openDatabase } from '../../src/platform/database/database.ts'
import { listen } from '../../src/platform/database/notifications.ts'
import { cachedFigure } from '../../src/platform/observe/cached-figure.ts'
import { createVault } from '../../src/platform/secrets/secrets.ts'
import { observePlatform, observeProcess } from '../../src/roles/metrics.ts'
import { countWaiting } from '../../src/services/webhooks/results.ts'
import { createDatabase } from '../helpers/database.ts'
import { openLink } from '../helpers/pausable-link.ts'
import { until } from '../helpers/until.ts'

const valueIn = (text: string, series: string) => {
  const line = text.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

test('metrics are answered while the database hangs or is away, without the figures that take a query', async () => {
  const database = await createDatabase()
  const link = await openLink(database.url)
  const db = openDatabase(link.url, 4)
  const notifications = await listen(link.url, pino({ level: 'silent' }))
  const registry = new Registry()
  observeProcess({ registry, db, workerDb: db, notifications, vault: createVault(Buffer.alloc(32)) }, ['worker'])
  observePlatform({ registry, db }, { ttlMs: 10, timeoutMs: 100 })
  createDeliveryMetrics(registry, { inFlight: () => 0, waiting: () => countWaiting(db) })
  const known = async (wanted: 0 | 1) =>
    until(async () => {
      const text = await registry.metrics()
      return valueIn(text, 'berth_figures_known') === wanted && text
    })

  await db.job.create({ data: { kind: 'build', key: 'a', payload: {}, runAt: new Date(Date.now() - 3_600_000) } })
  await db.job.create({ data: { kind: 'build', key: 'b', payload: {}, runAt: new Date(Date.now() + 3_600_000) } })
  await db.job.create({ data: { kind: 'issue', key: 'c', payload: {}, failedAt: new Date() } })
  const lockedUntil = new Date(Date.now() + 60_000)
  await db.job.create({ data: { kind: 'verify', key: 'd', payload: {}, lockedBy: 'w', lockedUntil } })
  const there = await known(1)
  expect(valueIn(there, 'berth_jobs_waiting{kind="build"}')).toBe(1)
  expect(valueIn(there, 'berth_jobs_oldest_seconds{kind="build"}')).toBeGreaterThanOrEqual(3600)
  expect(valueIn(there, 'berth_jobs_failed{kind="issue"}')).toBe(1)
  expect(valueIn(there, 'berth_jobs_waiting{kind="issue"}')).toBe(0)
  expect(valueIn(there, 'berth_jobs_running{kind="verify"}')).toBe(1)
  expect(valueIn(there, 'berth_jobs_waiting{kind="verify"}')).toBe(0)
  expect(there).not.toMatch(/^berth_certificates_earliest_expiry_days\{/m)

  for (const mode of ['hang', 'cut'] as const) {
    link.set(mode)
    const text = await known(0)
    expect(text).not.toMatch(/^berth_jobs_waiting\{/m)
    expect(text).not.toMatch(/^berth_certificates_failing\{/m)
  }
  await until(async () => valueIn(await registry.metrics(), 'berth_notifications_connected') === 0)
  link.set('pass')
  await known(1)
  await until(async () => valueIn(await registry.metrics(), 'berth_notifications_reconnections_total') === 1)
  expect(valueIn(await registry.metrics(), 'berth_notifications_connected')).toBe(1)

  await notifications.close()
  await closeDatabase(db)
  link.close()
  await database.drop()
})

test('a figure is read once for all who ask, kept, and given up when it takes too long', async () => {
  const answers: PromiseWithResolvers<number>[] = []
  const figure = cachedFigure(
    () => {
      answers.push(Promise.withResolvers())
      return answers.at(-1)!.promise
    },
    { ttlMs: 1_000_000, timeoutMs: 10 },
  )
  expect(await Promise.all([figure(), figure()])).toEqual([null, null])
  expect(await figure()).toBeNull()
  expect(answers).toHaveLength(1)
  answers[0]!.resolve(7)
  await until(async () => (await figure()) === 7)
  expect(await figure()).toBe(7)
  expect(answers).toHaveLength(1)
})

test('all who ask in one turn get one reading of a figure, though what was kept runs out in between', async () => {
  const ttlMs = 5
  let read = 0
  const figure = cachedFigure(async () => ++read, { ttlMs })
  await figure()
  await turn()
  const untilMs = performance.now() + 2 * ttlMs
  const before = figure()
  while (performance.now() < untilMs);
  expect([await before, await figure()]).toEqual([await before, await before])
})
