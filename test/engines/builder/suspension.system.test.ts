// Builds of a suspended account: those under way and those that wait are canceled, and nothing new is taken.
import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { until } from '../../helpers/until.ts'
import { processesWith, uniqueSleep } from '../../sandbox/sandboxes.ts'
import { type Platform, scripts, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 90_000 })

let platform: Platform
let desk: string
const sleep = uniqueSleep()
beforeAll(async () => {
  platform = await startPlatform({ BUILD_CONCURRENCY: '1' })
  desk = (await createAccount(platform.api.db, 'the desk', ['operator'])).token
  const sleeps = scripts({ build: `echo begun && ${sleep}` })
  await platform.project('sleeper', { 'package.json': sleeps, 'index.html': 'x' }, { framework: 'vite' })
  await platform.project('site', { 'index.html': 'hello' }, { framework: 'static' })
})
afterAll(() => platform.stop())

const suspend = (suspended: boolean) =>
  platform.api.call('PATCH', `/operator/accounts/${platform.api.accountId}`, { token: desk, body: { suspended } })
const rows = (ids: string[]) =>
  platform.api.db.deployment.findMany({ where: { id: { in: ids } }, orderBy: { id: 'asc' } })
const jobs = () => platform.api.db.job.count({ where: { kind: 'build', failedAt: null } })

async function push(hook: { url: string; secret: string }, after: string) {
  const body = JSON.stringify({ ref: 'refs/heads/main', after, repository: { full_name: 'acme/site' } })
  const signature = createHmac('sha256', hook.secret).update(body).digest('hex')
  return platform.api.app.inject({
    method: 'POST',
    url: new URL(hook.url).pathname,
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-hub-signature-256': `sha256=${signature}`,
    },
    payload: body,
  })
}

test('a build under way and one that waits are canceled, say why, and stay so when the account is resumed', async () => {
  const { api } = platform
  const running = await platform.deploy('sleeper')
  await until(() => processesWith(sleep).length > 0)
  const waiting = await platform.deploy('site')
  await suspend(true)
  const [first, second] = await rows([running, waiting])
  for (const row of [first!, second!]) {
    expect(row).toMatchObject({ state: 'CANCELED', errorCode: 'account_suspended', finishedAt: expect.any(Date) })
  }
  await until(() => processesWith(sleep).length === 0)
  await until(async () => (await jobs()) === 0)
  const { body } = await api.call('GET', `/deployments/${running}`, { token: api.token })
  expect(body.code).toBe('account_suspended')
  await suspend(false)
  expect((await rows([running, waiting])).map(({ state }) => state)).toEqual(['CANCELED', 'CANCELED'])
  const shown = (await api.call('GET', `/deployments/${waiting}`)).body
  expect(shown).toMatchObject({ state: 'CANCELED', error: { code: 'account_suspended' } })
  expect(shown.error.message).toMatch(/^The account was suspended/)
  const events = (await api.call('GET', `/events?subject=${waiting}&type=deployment.canceled`)).body.events
  expect(events).toMatchObject([{ data: { state: 'CANCELED', error: { code: 'account_suspended' } } }])
  expect(await platform.settled(await platform.deploy('site'))).toMatchObject({ state: 'READY' })
})

test('a push is refused clearly and makes no deployment, and is taken when the account is resumed', async () => {
  const { api } = platform
  const hook = (await api.call('POST', '/projects/site/hook')).body
  const commit = (await api.db.deployment.findFirstOrThrow({ where: { state: 'READY' } })).commit
  const before = await api.db.deployment.count()
  await suspend(true)
  const refused = await push(hook, commit)
  expect([refused.statusCode, refused.json().code]).toEqual([403, 'account_suspended'])
  expect(await api.db.deployment.count()).toBe(before)
  await suspend(false)
  const taken = await push(hook, commit)
  expect(taken.json()).toMatchObject({ reason: 'deployed' })
  expect(await platform.settled(taken.json().deployment)).toMatchObject({ state: 'READY' })
})

test('a deployment that was written while the account was being suspended is not built', async () => {
  const { api } = platform
  const id = await platform.deploy('site')
  await platform.settled(id)
  await until(async () => (await api.db.job.count({ where: { kind: 'build', key: id } })) === 0)
  await suspend(true)
  // As if its transaction had begun before the suspension and committed after it.
  await api.db.deployment.update({ where: { id }, data: { state: 'BUILDING', finishedAt: null, readyAt: null } })
  await api.db.job.create({ data: { kind: 'build', key: id, payload: { deploymentId: id } } })
  await until(async () => (await rows([id]))[0]!.state === 'CANCELED')
  expect((await rows([id]))[0]!.errorCode).toBe('account_suspended')
  await suspend(false)
})

test('whatever else happens to its projects and builds at the same time, nothing locks anything for good', async () => {
  const { api } = platform
  const statuses = new Set<number>()
  const call = async (method: string, path: string, body?: object) => {
    const answer = await api.call(method, path, { body })
    statuses.add(answer.status)
    return answer.body
  }
  for (let round = 0; round < 4; round++) {
    const names = [`many-${round}-a`, `many-${round}-b`]
    for (const name of names) await call('POST', '/projects', { name, repo: 'acme/sleeper', framework: 'vite' })
    const made = await Promise.all(
      names.flatMap((project) => [1, 2, 3].map(() => call('POST', '/deployments', { project }))),
    )
    await Promise.all([
      ...made.map(({ id }) => call('POST', `/deployments/${id}/cancel`)),
      ...names.map((project) => call('POST', '/deployments', { project })),
      call('DELETE', `/projects/${names[0]}`),
      suspend(true).then(({ status }) => statuses.add(status)),
    ])
    const building = { accountId: api.accountId, state: 'BUILDING' }
    await until(async () => (await api.db.deployment.count({ where: building })) === 0)
    await suspend(false)
  }
  expect([...statuses].filter((status) => status >= 500)).toEqual([])
  await until(async () => (await jobs()) === 0)
})
