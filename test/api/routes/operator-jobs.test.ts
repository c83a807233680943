import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId, timeOf } from '../../../src/platform/ids.ts'
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
  for (let next: string | null = ''; next !== null; ) {
    const { body } = await ask('GET', `?limit=1${next && `&cursor=${next}`}`)
    seen.push(...body.jobs.map(({ id }: { id: string }) => id))
    next = body.nextCursor
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

test('a build that was given up is retried as a new deployment of the same commit, unless there is a newer one', async () => {
  await api.newProject('lost')
  const { id, projectId } = await api.db.deployment.create({ data: await builtAndLost() })
  const fail = () =>
    api.db.job.create({
      data: {
        kind: 'build',
        key: id,
        payload: { deploymentId: id },
        attempts: 1,
        failedAt: new Date(),
        lastError: 'the worker was lost',
      },
    })
  const answer = await ask('POST', `/${(await fail()).id}/retry`)
  expect(answer).toMatchObject({ status: 202, body: { kind: 'build', attempts: 0, failedAt: null } })
  const made = await api.db.deployment.findUniqueOrThrow({ where: { id: answer.body.key } })
  const failed = await api.db.deployment.findUniqueOrThrow({ where: { id } })
  const same = ({ projectId, ref, commit, production, source }: typeof made) => ({
    projectId,
    ref,
    commit,
    production,
    source,
  })
  expect(same(made)).toEqual(same(failed))
  expect([made.state, failed.state]).toEqual(['BUILDING', 'ERROR'])
  expect(await api.db.event.count({ where: { subject: made.id, type: 'deployment.created' } })).toBe(1)
  expect(
    await api.db.sourceFile.findMany({ where: { deploymentId: made.id }, select: { path: true, present: true } }),
  ).toEqual([{ path: 'index.html', present: true }])
  expect(await api.db.job.count({ where: { failedAt: { not: null }, key: id } })).toBe(0)
  const again = await ask('POST', `/${(await fail()).id}/retry`)
  expect(again).toMatchObject({ status: 409, body: { code: 'deployment_finished' } })
  expect(again.body.detail).toContain(made.id)
  expect(await api.db.deployment.count({ where: { projectId } })).toBe(2)
})

test('a build of a fork that was given up is retried as one of a fork', async () => {
  await api.newProject('lost-fork')
  const { id: projectId, accountId } = await api.db.project.findFirstOrThrow({ where: { name: 'lost-fork' } })
  const id = newId('dpl')
  const of = { ref: 'refs/pull/7/head', commit: 'c'.repeat(40), production: false, source: 'pull_request' }
  const ended = { state: 'ERROR', errorCode: 'worker_lost', errorMessage: '' }
  const row = { ...of, ...ended, id, accountId, projectId, label: 'lost-fork-abc', region: api.config.region }
  await api.db.deployment.create({ data: { ...row, createdAt: timeOf(id), untrusted: true } })
  const job = { kind: 'build', key: id, payload: { deploymentId: id }, attempts: 1, failedAt: new Date() }
  const answer = await ask('POST', `/${(await api.db.job.create({ data: job })).id}/retry`)
  const made = await api.db.deployment.findUniqueOrThrow({ where: { id: answer.body.key } })
  expect(made).toMatchObject({ ...of, untrusted: true })
})

/** An uploaded deployment whose workers were lost. */
async function builtAndLost() {
  const { id: projectId, accountId } = await api.db.project.findFirstOrThrow({ where: { name: 'lost' } })
  const file = {
    path: 'index.html',
    accountId,
    projectId,
    sha256: 'a'.repeat(64),
    size: 4,
    mode: 0o100644,
    present: true,
  }
  const id = newId('dpl')
  return {
    ...{
      id,
      accountId,
      projectId,
      label: 'lost-abc',
      ref: 'main',
      commit: 'c'.repeat(40),
      production: true,
      createdAt: timeOf(id),
    },
    ...{ state: 'ERROR', errorCode: 'worker_lost', errorMessage: '', region: api.config.region, source: 'upload' },
    upload: { create: { accountId, projectId, prebuilt: false, missing: 0, newBytes: 4, files: { create: [file] } } },
  }
}

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
