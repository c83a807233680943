// What was asked of projects and zones, as their owner sees it, and nobody else.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { questionTypes } from '../../../src/schemas/traffic.ts'
import { dnsColumns, edgeAt, edgeColumns } from '../../../src/schemas/traffic-columns.ts'
import { recordStoredBytes } from '../../../src/services/accounts/month-usage.ts'
import { addDnsTraffic, addTraffic } from '../../../src/services/traffic/statements.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
const hourMs = 3_600_000
/** The start of the hour before this one. */
const hour = new Date(Math.floor(Date.now() / hourMs) * hourMs - hourMs)
/** The day up to now, also if the hour turns meanwhile. */
const lastDay = `to=${new Date(hour.getTime() + 2 * hourMs).toISOString()}`
const hoursAgo = (hours: number) => new Date(hour.getTime() - hours * hourMs)
let seq = 0

type Visits = { host?: string; ok?: number; missing?: number; bytes?: number; bucket?: number }

async function visited(
  project: string,
  at: Date,
  { host = 'a.test', ok = 0, missing = 0, bytes = 0, bucket = 0 }: Visits,
) {
  const { id: owner } = await api.db.project.findFirstOrThrow({ where: { name: project } })
  const counts: number[] = edgeColumns.map(() => 0)
  counts[edgeAt.status + 2] = ok
  counts[edgeAt.status + 4] = missing
  counts[edgeAt.bytes] = bytes
  counts[edgeAt.durations + bucket] = ok + missing
  counts[edgeAt.durationUs] = 2_000 * (ok + missing)
  const part = { source: 'test', seq: ++seq, at, steps: ['minute', 'hour'] as const }
  await addTraffic(api.db, { ...part, rows: [{ owner, host, counts }] })
}

const get = (path: string, token = api.token) => api.call('GET', path, { token })
const narrowed = async (project: string): Promise<string> => {
  const body = { name: 'narrow', scopes: ['projects:read', 'dns:read'], projects: [project] }
  return (await api.call('POST', '/tokens', { body })).body.secret
}
const sums = ({ body }: Answer) => body.buckets.map(({ requests }: { requests: number }) => requests)

beforeAll(async () => {
  api = await sharedApi()
  for (const name of ['busy', 'calm']) await api.newProject(name)
  await visited('busy', hour, { ok: 90, missing: 10, bytes: 5_000, bucket: 6 })
  await visited('busy', hour, { host: 'b.test', ok: 7, bytes: 70 })
  await visited('busy', hour, { host: '', ok: 1 })
  await visited('busy', hoursAgo(3), { ok: 5, bytes: 50 })
  await visited('busy', hoursAgo(30), { ok: 1_000 })
  await visited('calm', hoursAgo(1), { ok: 2 })
})
afterAll(() => api.stop())

describe('the traffic of a project', () => {
  test('is that of the last day by hours, with zeros where nothing was asked', async () => {
    const answer = await get(`/projects/busy/traffic?${lastDay}`)
    const { body } = answer
    expect(body).toMatchObject({ step: 'hour', from: hoursAgo(22).toISOString() })
    expect((await get('/projects/busy/traffic')).body).toMatchObject({ step: 'hour', buckets: { length: 24 } })
    expect(sums(answer)).toEqual([...Array(19).fill(0), 5, 0, 0, 108, 0])
    expect(body.buckets[22]).toEqual({
      at: hour.toISOString(),
      requests: 108,
      bytes: 5_070,
      status: { '1xx': 0, '2xx': 98, '3xx': 0, '4xx': 10, '5xx': 0 },
      durationMs: { mean: 2, p95: expect.any(Number) },
    })
    expect(body.buckets[22].durationMs.p95).toBeGreaterThan(9)
    expect(body.buckets[0]).toMatchObject({ requests: 0, bytes: 0, durationMs: { mean: null, p95: null } })
    expect(body.totals).toMatchObject({ requests: 113, bytes: 5_120 })
    expect(body.hosts).toEqual([
      { host: 'a.test', requests: 105, bytes: 5_050 },
      { host: 'b.test', requests: 7, bytes: 70 },
      { host: null, requests: 1, bytes: 0 },
    ])
  })

  test('can be that of one host, in any spelling, by minutes and by days', async () => {
    expect((await get(`/projects/busy/traffic?host=B.test.&${lastDay}`)).body.totals).toMatchObject({
      requests: 7,
      bytes: 70,
    })
    expect((await get('/projects/busy/traffic?host=c.test')).body.totals.requests).toBe(0)
    const minutes = `from=${hour.toISOString()}&to=${new Date(hour.getTime() + 90_000).toISOString()}&step=minute`
    expect(sums(await get(`/projects/busy/traffic?${minutes}`))).toEqual([108, 0])
    const days = await get('/projects/busy/traffic?step=day')
    expect(sums(days)).toHaveLength(30)
    expect(days.body.totals.requests).toBe(1_113)
  })

  test('is refused for ranges that make no sense, and says why', async () => {
    for (const [query, pointer] of [
      ['from=2026-11-14T09:00:00Z&to=2026-11-13T09:00:00Z', '#/from'],
      ['from=2026-99-99T09:00:00Z', '#/from'],
      ['to=9999-12-31T00:00:00Z', '#/to'],
      [`from=${hoursAgo(24 * 10).toISOString()}&step=minute`, '#/from'],
      [`from=${hoursAgo(24 * 130).toISOString()}`, '#/from'],
      ['step=second', '#/step'],
      ['from=yesterday', '#/from'],
      ['unknown=1', '#/unknown'],
    ]) {
      const { status, body } = await get(`/projects/busy/traffic?${query}`)
      expect([status, body.errors[0].in, body.errors[0].pointer]).toEqual([422, 'query', pointer])
    }
  })

  test('answers 304 to who has it', async () => {
    const path = `/projects/busy/traffic?${lastDay}`
    const { headers } = await get(path)
    const again = await api.call('GET', path, { headers: { 'if-none-match': headers.etag! } })
    expect(again.status).toBe(304)
  })
})

test('all projects are read at once, the busiest first, each with its series', async () => {
  const { body } = await get(`/traffic?${lastDay}`)
  expect(body.projects).toEqual([
    { project: 'busy', requests: 113, bytes: 5_120, series: [...Array(19).fill(0), 5, 0, 0, 108, 0] },
    { project: 'calm', requests: 2, bytes: 0, series: [...Array(21).fill(0), 2, 0, 0] },
  ])
  expect((await get(`/traffic?from=${hoursAgo(24 * 8).toISOString()}`)).status).toBe(422)
})

test('of zones, questions are shown by type and by code', async () => {
  await api.call('POST', '/domains', { body: { project: 'busy', name: 'asked.example.com' } })
  const { id: owner } = await api.db.domain.findFirstOrThrow({ where: { name: 'asked.example.com' } })
  const counts: number[] = dnsColumns.map(() => 0)
  counts[questionTypes.indexOf('AAAA')] = 3
  counts[questionTypes.indexOf('other')] = 1
  counts[questionTypes.length] = 2
  counts[questionTypes.length + 1] = 2
  const part = { source: 'dns', at: hour, steps: ['minute', 'hour'] as const, rows: [{ owner, host: '', counts }] }
  for (const seq of [1, 2]) await addDnsTraffic(api.db, { ...part, seq })
  const { body } = await get(`/dns/asked.example.com/traffic?${lastDay}`)
  expect(body.buckets[22]).toMatchObject({
    at: hour.toISOString(),
    questions: 8,
    types: { A: 0, AAAA: 6, other: 2 },
    rcodes: { NOERROR: 4, NXDOMAIN: 4, SERVFAIL: 0, other: 0 },
  })
  expect(body.buckets).toHaveLength(24)
  expect(body.totals.questions).toBe(8)
  await api.call('DELETE', '/domains/asked.example.com')
  expect(await api.db.dnsTraffic.count()).toBe(0)
})

test('nobody sees what is asked of others: neither accounts nor tokens narrowed to projects', async () => {
  const { token } = await api.newAccount()
  await api.call('POST', '/domains', { body: { project: 'busy', name: 'mine.example.com' } })
  for (const path of ['/projects/busy/traffic', '/dns/mine.example.com/traffic']) {
    expect((await get(path, token)).status).toBe(404)
    expect((await get(path, await narrowed('calm'))).status).toBe(404)
    expect((await get(path, await narrowed('busy'))).status).toBe(200)
  }
  expect((await get('/traffic', token)).body.projects).toEqual([])
  const { body } = await get('/traffic', await narrowed('calm'))
  expect(body.projects.map(({ project }: { project: string }) => project)).toEqual(['calm'])
  expect((await get('/account/usage', await narrowed('calm'))).body.code).toBe('token_limited_to_projects')
})

test('an account sees its build minutes and the most it stored, by month', async () => {
  const now = new Date()
  const month = (back: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back))
  const { accountId } = api
  const used = (value: number) =>
    api.db.accountUsage.upsert({
      where: { accountId_name_part: { accountId, name: 'storedBytes', part: 15 } },
      create: { accountId, name: 'storedBytes', part: 15, used: value },
      update: { used: value },
    })
  await api.db.buildTime.create({ data: { accountId, month: month(1), ms: 150_000 } })
  for (const value of [500, 2_000, 700]) {
    await used(value)
    await recordStoredBytes(api.db)
  }
  const { body } = await get('/account/usage')
  expect(body.months).toHaveLength(12)
  expect(body.months.slice(-2)).toEqual([
    { month: month(1).toISOString().slice(0, 7), buildMinutes: 2, storedBytes: null },
    { month: month(0).toISOString().slice(0, 7), buildMinutes: 0, storedBytes: 2_000 },
  ])
  const range = await get(`/account/usage?from=${month(1).toISOString()}&to=${month(0).toISOString()}`)
  expect(range.body).toMatchObject({ from: month(1).toISOString(), to: month(0).toISOString() })
  expect(range.body.months).toHaveLength(1)
  for (const query of ['from=2020-01-01T00:00:00Z', `from=${month(0).toISOString()}&to=${month(1).toISOString()}`]) {
    expect((await get(`/account/usage?${query}`)).status).toBe(422)
  }
})
