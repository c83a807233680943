import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let token: string
beforeAll(async () => {
  api = await sharedApi()
  token = (await createAccount(api.db, 'the desk', ['operator'])).token
})
afterAll(() => api.stop())

const ask = (method: string, path: string) => api.call(method, `/operator/jobs${path}`, { token })

test('an operator reads the jobs that were given up, the last first, runs one again and discards one', async () => {
  const job = { kind: 'verify', key: 'dom_1', payload: { domainId: 'dom_1' }, attempts: 5, lastError: 'no answer' }
  const failed = (day: number) => ({ ...job, failedAt: new Date(Date.UTC(2026, 0, day)) })
  // Two of the same millisecond are told apart by their ids.
  await api.db.job.createMany({ data: [failed(2), failed(3), failed(3), { kind: 'reap', payload: {} }] })
  const seen: string[] = []
  let next = ''
  for (let more = true; more; ) {
    const { body } = await ask('GET', `?limit=1${next}`)
    seen.push(...body.jobs.map(({ id }: { id: string }) => id))
    more = body.hasMore
    next = `&cursor=${body.nextCursor}`
  }
  const rows = await api.db.job.findMany({ where: { failedAt: { not: null } }, orderBy: { id: 'desc' } })
  expect(seen).toEqual(rows.map(({ id }) => String(id)))
  const [first, second, third] = seen
  expect((await ask('GET', `/${first}`)).body).toEqual({
    id: first,
    ...{ kind: 'verify', key: 'dom_1', attempts: 5, lastError: 'no answer', failedAt: '2026-01-03T00:00:00.000Z' },
  })

  const again = await ask('POST', `/${first}/retry`)
  expect(again).toMatchObject({ status: 202, body: { attempts: 0, lastError: null, failedAt: null } })
  expect(again.body.id).not.toBe(first)
  // The same work waits already: both are that one.
  expect((await ask('POST', `/${second}/retry`)).body.id).toBe(again.body.id)
  expect((await ask('DELETE', `/${third}`)).status).toBe(204)
  expect((await ask('GET', '')).body.jobs).toEqual([])
})

test('a job that has not failed is nobody’s to run again or discard', async () => {
  const { id } = await api.db.job.create({ data: { kind: 'reap', payload: {} } })
  for (const wanted of [String(id), '0', '9'.repeat(18), '9'.repeat(30), 'all', '1;DROP']) {
    const path = `/${encodeURIComponent(wanted)}`
    const answers = [await ask('GET', path), await ask('POST', `${path}/retry`), await ask('DELETE', path)]
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404])
  }
  expect(await api.db.job.count({ where: { id } })).toBe(1)
  const cursor = Buffer.from(JSON.stringify(['jobs', 'desc', 'yesterday', 'x'])).toString('base64url')
  expect((await ask('GET', `?cursor=${cursor}`)).body.code).toBe('invalid_cursor')
})
