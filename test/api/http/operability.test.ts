import { Writable } from 'node:stream'
import pg from 'pg'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildApp } from '../../../src/api/app.ts'
import { sharedApi, startApi } from '../../helpers/api.ts'
import { createDatabase } from '../../helpers/database.ts'
import { openLink } from '../../helpers/link.ts'
import { until } from '../../helpers/until.ts'

test('every request leaves one JSON line with id, route, status, duration and token id, and never a secret', async () => {
  const lines: string[] = []
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const api = await sharedApi()
  const app = await buildApp({ ...api.deps, log: pino({ level: 'trace' }, sink) })
  const send = (method: 'GET' | 'POST', url: string, payload?: object) =>
    app.inject({ method, url, payload, headers: { authorization: `Bearer ${api.token}` } })
  await send('GET', '/api/projects?search=hush')
  const made = (await send('POST', '/api/tokens', { name: 'x' })).json()
  await send('POST', '/api/projects', { name: 'bad name', repo: 'x' })
  await app.inject({ url: '/api/projects', headers: { authorization: 'Bearer brt_wrong' } })
  const inPath = `brd_${'7'.repeat(40)}`
  await app.inject({ method: 'POST', url: `/hooks/deploy/${inPath}` })
  await app.inject({ method: 'POST', url: `/hooks/deploy/${inPath}/` })
  const text = lines.join('')
  for (const secret of [api.token, made.token, 'brt_wrong', 'hush', inPath]) expect(text).not.toContain(secret)
  const requests = lines.map((line) => JSON.parse(line)).filter((line) => line.msg === 'request')
  expect(requests).toHaveLength(6)
  expect(requests[0]).toMatchObject({ method: 'GET', route: '/api/projects', path: '/api/projects', status: 200 })
  expect(requests[0].requestId).toMatch(/^req_/)
  expect(requests[0].tokenId).toMatch(/^tok_/)
  expect(requests[0].durationMs).toBeGreaterThan(0)
  const metrics = await app.metrics.registry.metrics()
  expect(metrics).toContain(
    'berth_http_request_duration_seconds_count{method="GET",route="/api/projects",status="200"} 1',
  )
  expect(metrics).toContain('berth_http_problems_total{code="validation_failed"} 1')
  await app.close()
  await api.stop()
})

test('a database that takes no changes still answers reads, is ready for them, and says what it refuses', async () => {
  const api = await startApi()
  await api.newProject('p')
  const admin = new pg.Client(api.databaseUrl)
  await admin.connect()
  const { rows } = await admin.query('SELECT current_database() AS name')
  await admin.query(`ALTER DATABASE "${rows[0].name}" SET default_transaction_read_only = on`)
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`)
  await admin.end()
  const ready = await until(async () => {
    const answer = await api.app.inject({ url: '/readyz' })
    return answer.json().checks.changes !== 'ok' && answer.json().checks.notifications === 'ok' && answer
  })
  expect([ready.statusCode, ready.json().status]).toEqual([200, 'degraded'])
  expect(ready.json().checks).toMatchObject({ database: 'ok', changes: 'The database takes no changes.' })
  await until(async () => (await api.call('GET', '/projects/p')).status === 200)
  const change = () => api.call('POST', '/tickets', { body: { subject: 'one', message: 'two' } })
  const refused = await until(async () => {
    const answer = await change()
    return answer.text.includes('read-only') && answer
  })
  expect(refused).toMatchObject({ status: 503, body: { code: 'database_unavailable' } })
  expect(refused.body.detail).toContain('Nothing was stored')
  await api.stop()
})

test('a lost database is answered by 503 with Retry-After, and found again without a restart', async () => {
  const database = await createDatabase()
  const link = await openLink(database.url)
  const api = await startApi({ DATABASE_URL: link.url })
  await api.newProject('p')
  link.cut()
  const lost = await api.call('GET', '/projects/p')
  expect(lost).toMatchObject({ status: 503, body: { code: 'database_unavailable' } })
  expect(lost.headers['retry-after']).toBeDefined()
  // A GET stores nothing, so nothing is said of that.
  expect(lost.body.detail).toContain('Nothing was changed')
  expect((await api.app.inject({ url: '/healthz' })).statusCode).toBe(200)
  expect((await api.app.inject({ url: '/readyz' })).statusCode).toBe(503)
  await link.mend()
  await until(async () => (await api.app.inject({ url: '/readyz' })).statusCode === 200)
  expect((await api.call('GET', '/projects/p')).status).toBe(200)
  await api.stop()
  link.close()
  await database.drop()
})
