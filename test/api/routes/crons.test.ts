import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteOldRuns, requeueForgottenCrons } from '../../../src/services/crons/runs.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

let made = 0

async function newProject(crons: object[]): Promise<{ id: string; name: string }> {
  const name = `site-${++made}`
  const { body } = await api.call('POST', '/projects', { body: { name, repo: 'a/b', settings: { crons } } })
  return body
}

const cronsOf = async (name: string) => (await api.call('GET', `/projects/${name}/crons`)).body.crons
const set = (name: string, crons: unknown) => api.call('PATCH', `/projects/${name}`, { body: { settings: { crons } } })

const nightly = { path: '/api/cleanup?all=1', schedule: '0  3 * * *' }
const often = { path: '/tick', schedule: '*/5 * * * MON-FRI' }

describe('the crons of a project', () => {
  test('are its settings, and each waits for its time', async () => {
    const { id, name } = await newProject([nightly, often])
    const { body } = await api.call('GET', `/projects/${name}`)
    expect(body.settings.crons).toEqual([nightly, often])
    expect((await api.call('GET', '/projects')).body.projects[0].settings.crons).toBeInstanceOf(Array)
    const crons = await cronsOf(name)
    expect(crons).toMatchObject([
      { ...nightly, lastRun: null },
      { ...often, lastRun: null },
    ])
    expect(crons[0].nextRunAt).toMatch(/T03:00:00.000Z$/)
    for (const cron of crons) {
      const job = await api.db.job.findFirstOrThrow({ where: { kind: 'cron', key: cron.id } })
      expect(job.runAt.toISOString()).toBe(cron.nextRunAt)
    }
    await api.call('DELETE', `/projects/${name}`)
    expect(await api.db.cron.count({ where: { projectId: id } })).toBe(0)
  })

  test('keep their time and their runs while they stay, in the order of the settings', async () => {
    const { name } = await newProject([nightly])
    const [before] = await cronsOf(name)
    await set(name, [often, nightly])
    const after = await cronsOf(name)
    expect(after).toMatchObject([often, before])
    await set(name, [often])
    expect((await cronsOf(name)).map(({ id }: { id: string }) => id)).toEqual([after[0].id])
    await api.call('PATCH', `/projects/${name}`, { body: { settings: { hsts: true } } })
    expect(await cronsOf(name)).toHaveLength(1)
    await set(name, [])
    expect(await cronsOf(name)).toEqual([])
  })

  test.each([
    ['four fields', { path: '/', schedule: '* * * *' }, 'schedule'],
    ['an hour that there is not', { path: '/', schedule: '0 24 * * *' }, 'schedule'],
    ['a day that never comes', { path: '/', schedule: '0 0 31 2 *' }, 'schedule'],
    ['no schedule', { path: '/' }, 'schedule'],
    ['a host', { path: '//example.com/', schedule: '* * * * *' }, 'path'],
    ['an address', { path: 'https://example.com/', schedule: '* * * * *' }, 'path'],
    ['a host behind a backslash', { path: '/\\example.com/', schedule: '* * * * *' }, 'path'],
    ['a blank', { path: '/a b', schedule: '* * * * *' }, 'path'],
    ['a line of its own', { path: '/a\r\nx: y', schedule: '* * * * *' }, 'path'],
    ['a fragment', { path: '/a#b', schedule: '* * * * *' }, 'path'],
    ['a field that there is not', { path: '/', schedule: '* * * * *', method: 'POST' }, 'method'],
  ])('are refused with %s, by the name of the field', async (_what, bad, field) => {
    const { name } = await newProject([])
    const { status, body } = await set(name, [nightly, bad])
    expect(status).toBe(422)
    expect(body.errors).toMatchObject([{ pointer: `#/settings/crons/1/${field}` }])
    const made = await api.call('POST', '/projects', { body: { name: 'bad', repo: 'a/b', settings: { crons: [bad] } } })
    expect(made.status).toBe(422)
  })

  test('are refused twice, and more than 20', async () => {
    const { name } = await newProject([])
    expect((await set(name, [nightly, nightly])).body.errors).toMatchObject([
      { pointer: '#/settings/crons/1', code: 'repeated' },
    ])
    const many = Array.from({ length: 21 }, (_, index) => ({ path: `/${index}`, schedule: '* * * * *' }))
    expect((await set(name, many)).status).toBe(422)
    expect((await set(name, many.slice(1))).status).toBe(200)
  })
})

describe('runs', () => {
  test('are listed newest first, the last 50 of each cron', async () => {
    const { name } = await newProject([nightly, often])
    const [cron, other] = await cronsOf(name)
    const rows = (cronId: string, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        id: `crr_${String(index).padStart(4, '0')}${cronId.slice(8)}`,
        cronId,
        dueAt: new Date(index * 60_000),
        startedAt: new Date(index * 60_000),
        outcome: 'ok',
        status: 200,
        durationMs: index,
      }))
    await api.db.cronRun.createMany({ data: [...rows(cron.id, 61), ...rows(other.id, 3)] })
    expect(await deleteOldRuns(api.db)).toBe(11)
    const page = (cursor = '') => api.call('GET', `/projects/${name}/crons/${cron.id}/runs?limit=30${cursor}`)
    const { body: first } = await page()
    const { body: second } = await page(`&cursor=${first.nextCursor}`)
    const durations = [...first.runs, ...second.runs].map(({ durationMs }: { durationMs: number }) => durationMs)
    expect(durations).toEqual(Array.from({ length: 50 }, (_, index) => 60 - index))
    expect((await cronsOf(name))[0].lastRun).toMatchObject({ outcome: 'ok', status: 200, durationMs: 60 })
  })

  test('whose job was given up are queued again, and those whose worker is gone are ended', async () => {
    const { name } = await newProject([nightly])
    const [cron] = await cronsOf(name)
    const long = new Date(Date.now() - 3_600_000)
    await api.db.job.deleteMany({ where: { kind: 'cron', key: cron.id } })
    await api.db.cron.update({ where: { id: cron.id }, data: { nextAt: long } })
    const run = { id: `crr_${'0'.repeat(24)}`, cronId: cron.id, dueAt: long, startedAt: long, outcome: 'running' }
    await api.db.cronRun.create({ data: run })
    expect(await requeueForgottenCrons(api.db)).toBe(1)
    expect(await requeueForgottenCrons(api.db)).toBe(0)
    expect(await api.db.job.count({ where: { kind: 'cron', key: cron.id } })).toBe(1)
    expect((await cronsOf(name))[0].lastRun).toMatchObject({
      outcome: 'failed',
      error: expect.stringContaining('lost'),
    })
  })
})
