import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createStatusHandler } from '../../../src/engines/statuses/handler.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { createDeployment } from '../../../src/services/deployments/deployments.ts'
import { startBuild } from '../../../src/services/deployments/queue.ts'
import { finishDeployment, type Outcome } from '../../../src/services/deployments/states.ts'
import { findProject } from '../../../src/services/projects/projects.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { type GitLab, startGitLab } from '../../helpers/gitlab.ts'

let api: TestApi
let worker: Worker
let gitlab: GitLab
beforeAll(async () => {
  gitlab = await startGitLab('group/sub/site', 'glpat-x')
  api = await startApi({ WEBHOOK_ALLOW_PRIVATE: 'true' })
  const { db, notifications, log, config, urls, vault } = api.deps
  worker = startWorker(db, notifications, log, { status: createStatusHandler({ db, config, urls, vault }) })
})
afterAll(async () => {
  await worker.stop()
  await api.stop()
  gitlab.close()
})

const patiently = { timeout: 30_000, interval: 20 }
let made = 0

async function newProject(token = 'glpat-x') {
  const name = `site-${++made}`
  const repo = 'https://gitlab.example.com/group/sub/site.git'
  await api.call('POST', '/projects', { body: { name, repo } })
  await api.call('POST', `/projects/${name}/hook`)
  const target = { provider: 'gitlab', apiUrl: gitlab.url, token }
  expect((await api.call('PUT', `/projects/${name}/hook/status`, { body: target })).status).toBe(200)
  const error = async () => (await api.call('GET', `/projects/${name}/hook`)).body.commitStatus.error
  return { name, error, commit: made.toString(16).padStart(40, 'a') }
}

async function deploy({ name, commit }: { name: string; commit: string }, source: 'push' | 'api' = 'push') {
  const actor = { accountId: api.accountId, tokenId: 'system', scopes: [], projectIds: null }
  const project = await findProject(api.db, actor, name)
  const plan = { project, ref: 'main', commit, production: false, region: api.config.region, source }
  const { id } = await createDeployment(api.db, api.deps.urls, actor, plan)
  const row = () => api.db.deployment.findUniqueOrThrow({ where: { id } })
  return {
    start: async () => startBuild(api.db, await row()),
    end: (outcome: Outcome) => finishDeployment(api.db, api.deps.urls, id, { ...outcome, by: 'system' }),
    told: () =>
      vi.waitFor(async () => expect(await api.db.job.count({ where: { kind: 'status', key: id } })).toBe(0), patiently),
  }
}

const taken = ({ name, commit }: { name: string; commit: string }) =>
  gitlab.taken.get(`${commit} berth/${name}/preview`) ?? []
const statesOf = (site: { name: string; commit: string }) => taken(site).map(({ state }) => state)

test('a pipeline shows that a build waits, runs and has ended, at the project of any depth', async () => {
  const site = await newProject()
  const deployment = await deploy(site)
  await deployment.told()
  await deployment.start()
  await deployment.told()
  await deployment.end({ to: 'READY' })
  await deployment.told()
  expect(statesOf(site)).toEqual(['pending', 'running', 'success'])
  expect(taken(site)[2]).toMatchObject({
    ref: 'main',
    target_url: expect.stringMatching(/^http/),
    description: expect.stringMatching(/^Deployed in \d+ s$/),
  })
  expect(await site.error()).toBeNull()
})

test.each([
  [{ to: 'ERROR', code: 'build_failed', message: 'it printed a secret' } as const, 'failed'],
  [{ to: 'ERROR', code: 'worker_lost', message: 'The worker was lost.' } as const, 'failed'],
  [{ to: 'CANCELED' } as const, 'canceled'],
])('a build that ends with %j is %s', async (outcome, state) => {
  const site = await newProject()
  const deployment = await deploy(site, 'api')
  await deployment.told()
  await deployment.end(outcome)
  await deployment.told()
  expect(statesOf(site)).toEqual(['pending', state])
  expect(taken(site)[1]).not.toHaveProperty('ref')
  expect(taken(site)[1]!.description).not.toContain('secret')
})

test('what GitLab has already is no error, and another deployment of the commit is shown again', async () => {
  const site = await newProject()
  const first = await deploy(site)
  await first.told()
  await first.end({ to: 'READY' })
  await first.told()
  const second = await deploy(site)
  await second.told()
  expect(gitlab.answered.at(-1)).toBe(400)
  expect(await site.error()).toBeNull()
  await second.start()
  await second.told()
  await second.end({ to: 'READY' })
  await second.told()
  expect(statesOf(site)).toEqual(['pending', 'success', 'running', 'success'])
})

test('a wrong token is told to the owner', async () => {
  const site = await newProject('glpat-y')
  const deployment = await deploy(site)
  await deployment.told()
  expect(await site.error()).toBe('The repository host answered 401: 401 Unauthorized')
})
