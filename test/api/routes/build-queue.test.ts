import { createHmac, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { announceWaiting, describeStart, describeWait, startBuild } from '../../../src/services/deployments/queue.ts'
import { finishDeployment, type Outcome } from '../../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { endBuild, limit, newTenant, type Tenant, takeAll, takeNext } from '../../helpers/builds.ts'
import { commitHash, writeCommits } from '../../helpers/commits.ts'
import { createRepository } from '../../helpers/repository.ts'
import { readStream } from '../../helpers/stream.ts'

let api: TestApi
let one: Tenant
let other: Tenant
beforeAll(async () => {
  api = await sharedApi()
  one = await newTenant(api)
  other = await newTenant(api)
  for (const { projectId } of [one, other]) {
    const { repo } = await api.db.project.findUniqueOrThrow({ where: { id: projectId } })
    await createRepository(`${api.config.dataDir}/repos`, repo)
  }
})
afterAll(() => api.stop())
beforeEach(async () => {
  await api.db.deployment.deleteMany()
  await api.db.job.deleteMany()
  await api.db.buildTime.deleteMany()
  await api.db.account.updateMany({ data: { limits: {} } })
})

const read = async ({ token }: Tenant, id: string) => (await api.call('GET', `/deployments/${id}`, { token })).body
const cancel = ({ token }: Tenant, id: string) => api.call('POST', `/deployments/${id}/cancel`, { token })
const deploy = ({ token, projectId }: Tenant, headers: Record<string, string> = {}) =>
  api.call('POST', '/deployments', { token, headers, body: { project: projectId } })
const finish = (id: string, outcome: Outcome = { to: 'READY' }) =>
  finishDeployment(api.db, api.deps.urls, id, { ...outcome, by: 'system' })
const start = async (id: string) => startBuild(api.db, await api.db.deployment.findUniqueOrThrow({ where: { id } }))
const queued = async ({ accountId }: Tenant) => {
  const parts = await api.db.accountUsage.findMany({ where: { accountId, name: 'buildsQueued' } })
  return parts.reduce((sum, { used }) => sum + Number(used), 0)
}

describe('a deployment that waits', () => {
  test('shows its place, alone and in lists, until it starts', async () => {
    const [a1, a2] = [await one.ask(), await one.ask()]
    const b1 = await other.ask()
    expect(await read(one, a1)).toMatchObject({ state: 'BUILDING', startedAt: null, queuePosition: 1 })
    expect(await read(other, b1)).toMatchObject({ startedAt: null, queuePosition: 2 })
    const list = async () =>
      (await api.call('GET', '/deployments', { token: one.token })).body.deployments.map(
        ({ id, queuePosition }: { id: string; queuePosition: number | null }) => [id, queuePosition],
      )
    expect(await list()).toEqual([
      [a2, 3],
      [a1, 1],
    ])
    expect(await takeNext(api.db)).toBe(a1)
    await start(a1)
    const started = await read(one, a1)
    expect(started).toMatchObject({ state: 'BUILDING', queuePosition: null })
    expect(Date.parse(started.startedAt)).toBeGreaterThanOrEqual(Date.parse(started.createdAt))
    expect(await list()).toEqual([
      [a2, 2],
      [a1, null],
    ])
    await finish(a1)
    expect(await read(one, a1)).toMatchObject({ state: 'READY', startedAt: started.startedAt, queuePosition: null })
    await endBuild(api.db, a1)
  })

  test('is answered and announced without a place, which the next moment changes', async () => {
    const { body } = await deploy(one)
    expect(body).toMatchObject({ startedAt: null, queuePosition: null })
    const event = await api.db.event.findFirstOrThrow({ where: { subject: body.id } })
    expect(event.data).toMatchObject({ startedAt: null, queuePosition: null })
  })

  test('cannot be deleted, also by whoever has its present version', async () => {
    const id = await one.ask()
    const { headers } = await api.call('GET', `/deployments/${id}`, { token: one.token })
    const options = { token: one.token, headers: { 'if-match': headers.etag! } }
    expect((await api.call('DELETE', `/deployments/${id}`, options)).body.code).toBe('deployment_building')
    await one.ask(true)
    expect((await api.call('DELETE', `/deployments/${id}`, options)).body.code).toBe('precondition_failed')
  })

  test('and is canceled ends at once and leaves the queue', async () => {
    const [first, second] = [await one.ask(), await one.ask()]
    expect(await cancel(one, first)).toMatchObject({ status: 202, body: { state: 'CANCELED', startedAt: null } })
    expect((await read(one, second)).queuePosition).toBe(1)
    expect(await takeAll(api.db)).toEqual([second])
    expect(await api.db.job.count({ where: { key: first } })).toBe(0)
  })

  test('goes with its project', async () => {
    const project = await api.newProject('passing', { token: other.token })
    const { body: made } = await api.call('POST', '/deployments', {
      token: other.token,
      body: { project: project.id },
    })
    const mine = await one.ask()
    expect(await queued(other)).toBe(1)
    expect((await api.call('DELETE', '/projects/passing', { token: other.token })).status).toBe(204)
    expect(await api.db.job.count({ where: { key: made.id } })).toBe(0)
    expect(await queued(other)).toBe(0)
    expect(await takeAll(api.db)).toEqual([mine])
  })

  test('of another account is never counted by name: a reader sees nothing but the number', async () => {
    const id = await one.ask()
    expect((await api.call('GET', `/deployments/${id}`, { token: other.token })).status).toBe(404)
  })
})

describe('the first line of the log', () => {
  const aged = () => api.db.job.updateMany({ data: { createdAt: new Date(Date.now() - 5_000) } })

  test('says at once, to streams too, what is waited for, and is written once', async () => {
    await other.ask()
    await one.ask()
    const id = await one.ask()
    const stream = await readStream(api, `/deployments/${id}/logs`, {}, one.token)
    await announceWaiting(api.db, null)
    expect((await api.call('GET', `/deployments/${id}/logs`, { token: one.token })).body.lines).toEqual([])
    await aged()
    await Promise.all(Array.from({ length: 5 }, () => announceWaiting(api.db, 60_000)))
    const text = 'Waiting for a free build slot: 1 build of other accounts and 1 of yours are ahead.'
    expect(await stream.next()).toMatchObject({ id: '1', data: { step: 'queue', stream: 'system', text } })
    stream.close()
    const { body } = await api.call('GET', `/deployments/${id}/logs`, { token: one.token })
    expect(body.lines).toHaveLength(1)
  })

  test('is not written for what has started or ended', async () => {
    const [started, canceled] = [await one.ask(), await one.ask()]
    await aged()
    await takeNext(api.db)
    await start(started)
    await cancel(one, canceled)
    await announceWaiting(api.db, null)
    expect(await api.db.logLine.count({ where: { deploymentId: { in: [started, canceled] } } })).toBe(0)
  })

  test.each([
    [{ position: 1, place: 1, running: 0, allowed: null }, 'Waiting for a free build slot: this build is next.'],
    [
      { position: 4, place: 1, running: 0, allowed: 2 },
      'Waiting for a free build slot: 3 builds of other accounts are ahead.',
    ],
    [{ position: 2, place: 2, running: 0, allowed: 2 }, 'Waiting for a free build slot: 1 build of yours is ahead.'],
    [
      { position: 5, place: 2, running: 1, allowed: 2 },
      'Waiting for a free build slot: 3 builds of other accounts and 1 of yours are ahead.',
    ],
    [
      { position: 9, place: 1, running: 2, allowed: 2 },
      'Waiting for another of your builds to finish: 2 builds are running, the limit of the account.',
    ],
    [
      { position: 9, place: 3, running: 1, allowed: 1 },
      'Waiting for another of your builds to finish: 1 build is running, the limit of the account, and 2 builds of yours are ahead.',
    ],
    [{ position: 9, place: 3, running: 0, allowed: 0 }, 'Waiting: the account may not run builds at the moment.'],
  ])('%j: %s', (place, text) => {
    expect(describeWait(place)).toBe(text)
  })

  test('is followed by how long it took, if it took long enough to be noticed', () => {
    expect([999, 12_300, 150_000].map(describeStart)).toEqual([
      null,
      'Build started after 12 s.',
      'Build started after 3 min.',
    ])
  })
})

describe('the quota of waiting builds', () => {
  test('holds when fifty requests come at once, and says what is used up', async () => {
    await limit(api.db, one.accountId, { buildsQueued: 7 })
    await one.ask()
    const answers = await Promise.all(Array.from({ length: 50 }, () => deploy(one)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(6)
    for (const refused of answers.filter(({ status }) => status !== 201)) {
      expect(refused).toMatchObject({
        status: 403,
        body: { code: 'quota_exceeded', limit: 'buildsQueued', used: 7, max: 7 },
      })
    }
    expect(await api.db.deployment.count({ where: { accountId: one.accountId } })).toBe(7)
    expect(await queued(one)).toBe(7)
    expect((await deploy(other)).status).toBe(201)
  })

  test('has room again when one starts, ends or is canceled', async () => {
    await limit(api.db, one.accountId, { buildsQueued: 2 })
    const [first, second] = [await one.ask(), await one.ask()]
    expect((await deploy(one)).status).toBe(403)
    await takeNext(api.db)
    await start(first)
    const third = await deploy(one)
    expect(third.status).toBe(201)
    expect((await deploy(one)).status).toBe(403)
    await cancel(one, second)
    expect((await deploy(one)).status).toBe(201)
    // What had started gives no place a second time.
    await finish(first)
    await endBuild(api.db, first)
    expect((await deploy(one)).status).toBe(403)
    expect(await queued(one)).toBe(2)
  })

  test('refuses with an Idempotency-Key only as long as it has to', async () => {
    await limit(api.db, one.accountId, { buildsQueued: 1 })
    const id = await one.ask()
    const key = { 'idempotency-key': randomUUID() }
    expect((await deploy(one, key)).body.code).toBe('quota_exceeded')
    await cancel(one, id)
    const made = await deploy(one, key)
    expect(made.status).toBe(201)
    expect((await deploy(one, key)).body.id).toBe(made.body.id)
  })
})

describe('a push', () => {
  async function hook(): Promise<(branch: string, digit: string) => Promise<{ status: number; body: PushBody }>> {
    const { body } = await api.call('POST', `/projects/${one.projectId}/hook`, { token: one.token })
    const { repo } = await api.db.project.findUniqueOrThrow({ where: { id: one.projectId } })
    writeCommits(`${api.config.dataDir}/repos/${repo}.git`, [...'abcdef'])
    return async (branch, digit) => {
      const push = { ref: `refs/heads/${branch}`, after: commitHash(digit), repository: { full_name: repo } }
      const payload = JSON.stringify(push)
      const headers = {
        'content-type': 'application/json',
        'x-github-event': 'push',
        'x-github-delivery': randomUUID(),
        'x-hub-signature-256': `sha256=${createHmac('sha256', body.secret).update(payload).digest('hex')}`,
      }
      const url = new URL(body.url).pathname
      const answer = await api.app.inject({ method: 'POST', url, payload, headers })
      return { status: answer.statusCode, body: answer.json() }
    }
  }
  type PushBody = { deployment: string | null; reason: string; detail: string }

  test('over the quota makes no deployment, says so, and is taken when it is sent again later', async () => {
    await limit(api.db, one.accountId, { buildsQueued: 1 })
    const push = await hook()
    const first = await push('one', 'a')
    expect(first.body.reason).toBe('deployed')
    const refused = await push('two', 'b')
    expect(refused).toMatchObject({ status: 202, body: { deployment: null, reason: 'quota_exceeded' } })
    expect(refused.body.detail).toContain('1 of 1')
    expect(await queued(one)).toBe(1)
    // A newer push to the branch takes the place of the one before it.
    expect((await push('one', 'c')).body.reason).toBe('deployed')
    expect((await read(one, first.body.deployment!)).state).toBe('CANCELED')
    await limit(api.db, one.accountId, { buildsQueued: 2 })
    expect((await push('two', 'b')).body.reason).toBe('deployed')
  })

  test('that is refused supersedes nothing', async () => {
    const push = await hook()
    const first = await push('main', 'd')
    await start(first.body.deployment!)
    await limit(api.db, one.accountId, { buildsQueued: 0 })
    expect((await push('main', 'e')).body.reason).toBe('quota_exceeded')
    expect((await read(one, first.body.deployment!)).state).toBe('BUILDING')
  })
})

describe('build minutes', () => {
  const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const ran = (id: string, minutes: number) =>
    api.db.deployment.update({ where: { id }, data: { startedAt: minutesAgo(minutes) } })
  const used = async ({ accountId }: Tenant) => {
    const [month] = await api.db.buildTime.findMany({ where: { accountId } })
    return Math.round(Number(month?.ms ?? 0) / 60_000)
  }

  test('are counted when a build ends, is canceled or goes with its project, from its start and not from its wait', async () => {
    const ids = [await one.ask(), await one.ask(), await one.ask()]
    await ran(ids[0]!, 5)
    await finish(ids[0]!)
    expect(await used(one)).toBe(5)
    await ran(ids[1]!, 3)
    await cancel(one, ids[1]!)
    expect(await used(one)).toBe(8)
    await cancel(one, ids[2]!)
    expect(await used(one)).toBe(8)
    const project = await api.newProject('brief', { token: one.token })
    const { body: made } = await api.call('POST', '/deployments', { token: one.token, body: { project: project.id } })
    await ran(made.id, 4)
    await api.call('DELETE', '/projects/brief', { token: one.token })
    expect(await used(one)).toBe(12)
    expect(await used(other)).toBe(0)
  })

  test('that are used up refuse new deployments until the month is over', async () => {
    await limit(api.db, one.accountId, { buildMinutesPerMonth: 10 })
    const id = await one.ask()
    await ran(id, 11)
    expect((await deploy(one)).status).toBe(201)
    await finish(id)
    expect(await deploy(one)).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', limit: 'buildMinutesPerMonth', used: 11, max: 10 },
    })
    const month = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 1, 1))
    await api.db.buildTime.updateMany({ data: { month } })
    expect((await deploy(one)).status).toBe(201)
  })
})

test('deleting projects while their builds wait, end and are asked for anew never fails', async () => {
  for (let round = 0; round < 6; round++) {
    const name = `churn-${round}`
    const project = await api.newProject(name, { token: one.token })
    const make = () => api.call('POST', '/deployments', { token: one.token, body: { project: project.id } })
    const made = await Promise.all(Array.from({ length: 8 }, make))
    const ids = made.map(({ body }) => body.id as string)
    await Promise.all(ids.slice(0, 3).map(start))
    const answers = await Promise.all([
      ...ids.slice(0, 3).map((id) => finish(id).then(() => ({ status: 200, text: '' }))),
      ...ids.slice(3, 6).map((id) => cancel(one, id)),
      api.call('DELETE', `/projects/${name}`, { token: one.token }),
      make(),
      make(),
      deploy(one),
    ])
    const broken = answers.filter(({ status }) => status >= 500)
    expect(broken.map(({ text }) => text)).toEqual([])
    expect(await api.db.project.count({ where: { id: project.id } })).toBe(0)
  }
  const waiting = await api.db.deployment.count({ where: { accountId: one.accountId, state: 'BUILDING' } })
  expect(await queued(one)).toBe(waiting)
  expect(await api.db.job.count({ where: { kind: 'build' } })).toBe(waiting)
}, 60_000)
