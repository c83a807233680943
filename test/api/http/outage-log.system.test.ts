// An outage of the database is two lines in the log, however many requests it fails.
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildApp } from '../../../src/api/app.ts'
import { closeDatabase, openDatabase } from '../../../src/platform/database/database.ts'
import { createHealth } from '../../../src/platform/observe/health.ts'
import { startApi } from '../../helpers/api.ts'
import { openLink } from '../../helpers/pausable-link.ts'
import { until } from '../../helpers/until.ts'

test('the first request that an outage fails is logged, and its end with the number of all', async () => {
  const api = await startApi()
  const link = await openLink(api.databaseUrl)
  const db = openDatabase(link.url, 2)
  let away = false
  const health = createHealth(['api'])
  health.add('database', () => (away ? 'The database does not answer.' : null))
  const lines: { level: number; msg: string; requests?: number; durationMs?: number }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const app = await buildApp({ ...api.deps, db, health, log })
  const ask = () => app.inject({ url: '/api/projects', headers: { authorization: `Bearer ${api.token}` } })
  expect((await ask()).statusCode).toBe(200)
  away = true
  link.set('cut')
  const failed = await Promise.all(Array.from({ length: 5 }, ask))
  expect(failed.map(({ statusCode }) => statusCode)).toEqual([503, 503, 503, 503, 503])
  expect(lines).toMatchObject([{ level: 50, msg: 'database_unavailable' }])
  link.set('pass')
  away = false
  await until(() => lines.length > 1)
  expect(lines.slice(1)).toMatchObject([{ level: 40, msg: 'the database is available again', requests: 5 }])
  expect((await ask()).statusCode).toBe(200)
  // The next outage is another one.
  link.set('cut')
  await ask()
  expect(lines).toHaveLength(3)
  await app.close()
  link.close()
  await closeDatabase(db)
  await api.stop()
})
