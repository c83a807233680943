// A repository host that is down for a while: builds are put back and take no slot; then they go on, or tell which host it was.
import { createHmac } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { commitTo } from '../../helpers/repository.ts'
import { until } from '../../helpers/until.ts'
import { type Platform, startPlatform } from './host.ts'

vi.setConfig({ testTimeout: 60_000 })

let platform: Platform
const down = new Set<string>()
beforeAll(async () => {
  platform = await startPlatform({ BUILD_CONCURRENCY: '1' })
  platform.host.handlers.push((request, response) => {
    if (![...down].some((name) => request.url!.startsWith(`/acme/${name}.git`))) return false
    response.writeHead(503).end()
    return true
  })
})
afterAll(() => platform.stop())
afterEach(() => down.clear())

const files = { 'index.html': 'here' }
const jobOf = (id: string) => platform.api.db.job.findFirst({ where: { kind: 'build', key: id } })
const isPutBack = (id: string) =>
  until(async () => {
    const job = await jobOf(id)
    return job?.lockedBy === null && job.runAt > new Date()
  })
/** Has what was put back tried at once, as if it had failed since so many minutes. */
async function retry(id: string, minutes: number): Promise<void> {
  const since = new Date(Date.now() - minutes * 60_000).toISOString()
  const payload = { deploymentId: id, noHostSince: since }
  await platform.api.db.job.updateMany({ where: { kind: 'build', key: id }, data: { runAt: new Date(), payload } })
}
const hostName = () => new URL(platform.host.template.replace('{repo}', 'x')).host

test('a build waits without a slot, and goes on once the host is there again', async () => {
  await platform.project('far', files)
  await platform.project('near', files)
  down.add('far')
  const id = await platform.deploy('far')
  await isPutBack(id)
  expect(await platform.log(id)).toContain(`We couldn't reach ${hostName()}. We retry for five minutes.`)
  expect(await platform.settled(await platform.deploy('near'))).toMatchObject({ state: 'READY' })
  down.clear()
  await retry(id, 4)
  expect(await platform.settled(id)).toMatchObject({ state: 'READY', ref: 'main', warnings: [] })
})

test('a build whose commit is known waits for the host, too', async () => {
  await platform.project('known', files)
  const first = await platform.deploy('known')
  await platform.settled(first)
  down.add('known')
  const { body } = await platform.api.call('POST', `/deployments/${first}/redeploy`)
  await isPutBack(body.id)
  down.clear()
  await retry(body.id, 4)
  expect(await platform.settled(body.id)).toMatchObject({ state: 'READY' })
})

test('a host that stays away for five minutes is named', async () => {
  await platform.project('lost', files)
  down.add('lost')
  const id = await platform.deploy('lost')
  await isPutBack(id)
  await retry(id, 5)
  const { state, error } = await platform.settled(id)
  expect({ state, code: error.code }).toEqual({ state: 'ERROR', code: 'repository_unreachable' })
  expect(error.message).toContain(`We couldn't reach ${hostName()} for five minutes.`)
})

test('a push that the host could not confirm ends earlier builds only once its commit is fetched', async () => {
  const { api } = platform
  await platform.project('pushed', files)
  const { body: hook } = await api.call('POST', '/projects/pushed/hook')
  const push = async (after: string) => {
    const text = JSON.stringify({ ref: 'refs/heads/main', after, repository: { full_name: 'acme/pushed' } })
    const signature = createHmac('sha256', hook.secret).update(text).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` }
    const url = new URL(hook.url).pathname
    return (await api.app.inject({ method: 'POST', url, payload: text, headers })).json()
  }
  const newest = async () => {
    const found = await api.deps.repositories.resolve('acme/pushed', 'main', 20_000)
    return typeof found === 'object' ? found.found : ''
  }
  const stateOf = async (id: string) => (await api.call('GET', `/deployments/${id}`)).body.state
  down.add('pushed')
  const { deployment: earlier } = await push('a'.repeat(40))
  await isPutBack(earlier)
  const { deployment: bogus } = await push('d'.repeat(40))
  await isPutBack(bogus)
  expect(await stateOf(earlier)).toBe('BUILDING')
  down.clear()
  await retry(bogus, 1)
  expect(await platform.settled(bogus)).toMatchObject({ state: 'ERROR', error: { code: 'clone_failed' } })
  expect(await stateOf(earlier)).toBe('BUILDING')

  await commitTo(platform.repositories, 'acme/pushed', 'main', { 'index.html': 'newer' })
  const after = await newest()
  down.add('pushed')
  const real = await push(after)
  await isPutBack(real.deployment)
  expect((await api.call('GET', `/deployments/${real.deployment}`)).body.warnings).toMatchObject([
    { code: 'repository_unreachable' },
  ])
  down.clear()
  await retry(real.deployment, 1)
  expect(await platform.settled(real.deployment)).toMatchObject({ state: 'READY' })
  expect(await stateOf(earlier)).toBe('CANCELED')
})
