import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createStatusHandler, retryDelayOf } from '../../../src/engines/statuses/handler.ts'
import { postJson, RefusedTarget } from '../../../src/engines/statuses/request.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { checkedLookup, createReach } from '../../../src/platform/http/checked-lookup.ts'
import { isPublicAddress } from '../../../src/platform/http/public-address.ts'
import { setCommit } from '../../../src/services/deployments/builds.ts'
import { createDeployment } from '../../../src/services/deployments/deployments.ts'
import { finishDeployment, type Outcome } from '../../../src/services/deployments/states.ts'
import { findProject } from '../../../src/services/projects/projects.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

type Posted = { url: string; headers: IncomingHttpHeaders; body: { state: string; [field: string]: unknown } }

let api: TestApi
let worker: Worker
let host: Server
let hostUrl: string
const posted: Posted[] = []
/** What the repository host answers next; 201 when there is nothing to say. */
const answers: { status: number; headers?: Record<string, string>; body?: string }[] = []

beforeAll(async () => {
  host = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString())
    posted.push({ url: request.url!, headers: request.headers, body })
    const { status, headers, body: text } = answers.shift() ?? { status: 201, body: '{}' }
    response.writeHead(status, headers).end(text)
  })
  host.listen(0, '127.0.0.1')
  await once(host, 'listening')
  hostUrl = `http://127.0.0.1:${(host.address() as AddressInfo).port}`
  api = await startApi({ WEBHOOK_ALLOW_PRIVATE: 'true' })
  const { db, notifications, log, config, urls, vault } = api.deps
  worker = startWorker(db, notifications, log, { status: createStatusHandler({ db, config, urls, vault }) })
})
afterAll(async () => {
  await worker.stop()
  await api.stop()
  host.close()
})
afterEach(() => {
  posted.length = 0
  answers.length = 0
})

let made = 0
const sha = () => (++made).toString(16).padStart(40, 'a')
const quickly = { timeout: 30_000, interval: 20 }

async function newProject(target: object | null = { provider: 'github', apiUrl: hostUrl, token: 'ghp_x' }) {
  const name = `site-${++made}`
  await api.call('POST', '/projects', { body: { name, repo: 'acme/Site' } })
  await api.call('POST', `/projects/${name}/hook`)
  if (target) await api.call('PUT', `/projects/${name}/hook/status`, { body: target })
  return name
}

async function deploy(name: string, commit: string, production = true) {
  const actor = { accountId: api.accountId, tokenId: 'system', scopes: [], projectIds: null }
  const project = await findProject(api.db, actor, name)
  return createDeployment(api.db, api.deps.urls, actor, {
    project,
    ref: 'main',
    commit,
    production,
    region: api.config.region,
    source: 'push',
  })
}

const finish = (id: string, outcome: Outcome) =>
  finishDeployment(api.db, api.deps.urls, id, { ...outcome, by: 'system' })
const states = () => posted.map(({ body }) => body.state)
const told = (count: number) => vi.waitFor(() => expect(posted).toHaveLength(count), quickly)
const jobOf = (id: string) => api.db.job.findFirst({ where: { kind: 'status', key: id } })
const done = (id: string) => vi.waitFor(async () => expect(await jobOf(id)).toBeNull(), quickly)
const commitStatus = async (name: string) => (await api.call('GET', `/projects/${name}/hook`)).body.commitStatus

describe('a commit gets the status of its deployment:', () => {
  test('pending when it is made, success with its address when it is READY', async () => {
    const name = await newProject()
    const commit = sha()
    const { id, url } = await deploy(name, commit)
    await told(1)
    await finish(id, { to: 'READY' })
    await told(2)
    expect(posted[0]).toMatchObject({
      url: `/repos/acme/Site/statuses/${commit}`,
      headers: { authorization: 'Bearer ghp_x', accept: 'application/vnd.github+json', 'user-agent': 'Berth' },
    })
    const context = `berth/${name}/production`
    expect(posted[0]!.body).toEqual({ state: 'pending', description: 'Building for production', context })
    const description = expect.stringMatching(/^Deployed in \d+ s$/)
    expect(posted[1]!.body).toEqual({ state: 'success', target_url: url, description, context })
    await done(id)
    expect(await commitStatus(name)).toMatchObject({ postedAt: expect.any(String), error: null })
  })

  test('failure with the reason in 140 characters, error where the commit is not to blame or nobody waits', async () => {
    const name = await newProject()
    const ends: Outcome[] = [
      { to: 'ERROR', code: 'output_missing', message: `npm run ${'x'.repeat(200)} wrote nothing.` },
      { to: 'ERROR', code: 'worker_lost', message: 'The worker was lost.' },
      { to: 'CANCELED' },
      {
        to: 'ERROR',
        code: 'server_unhealthy',
        message: 'The server exited with 1: not for everybody',
      },
    ]
    for (const [index, end] of ends.entries()) {
      const { id } = await deploy(name, sha(), false)
      await told(2 * index + 1)
      await finish(id, end)
      await told(2 * index + 2)
    }
    expect(states()).toEqual(['pending', 'failure', 'pending', 'error', 'pending', 'error', 'pending', 'failure'])
    expect(posted[7]!.body.description).toBe('The server is not healthy')
    expect(posted[1]!.body.context).toBe(`berth/${name}/preview`)
    expect(String(posted[1]!.body.description)).toMatch(/^npm run x+…$/)
    expect(String(posted[1]!.body.description)).toHaveLength(140)
  })

  test('at Gitea and Forgejo below /api/v1, with their kind of token', async () => {
    const name = await newProject({ provider: 'gitea', apiUrl: `${hostUrl}/git/`, token: 'abc' })
    const commit = sha()
    await deploy(name, commit)
    await told(1)
    expect(posted[0]).toMatchObject({
      url: `/git/api/v1/repos/acme/Site/statuses/${commit}`,
      headers: { authorization: 'token abc' },
    })
  })

  test('once the commit is known, when the repository did not tell it at first', async () => {
    const name = await newProject()
    const { id } = await deploy(name, '')
    await done(id)
    expect(posted).toEqual([])
    const commit = sha()
    await setCommit(api.db, api.deps.urls, {
      ...(await api.db.deployment.findUniqueOrThrow({ where: { id } })),
      commit,
    })
    await told(1)
    expect(posted[0]).toMatchObject({ url: expect.stringContaining(commit), body: { state: 'pending' } })
  })

  test('and never that of an older deployment of the same commit', async () => {
    const name = await newProject()
    const commit = sha()
    const old = await deploy(name, commit)
    await told(1)
    const fresh = await deploy(name, commit)
    await told(2)
    await finish(fresh.id, { to: 'READY' })
    await told(3)
    await finish(old.id, { to: 'CANCELED' })
    await done(old.id)
    expect(states()).toEqual(['pending', 'pending', 'success'])
  })

  test('and no job at all where no token was given', async () => {
    const { id } = await deploy(await newProject(null), sha())
    expect(await jobOf(id)).toBeNull()
  })
})

describe('a repository host that refuses', () => {
  test.each([
    [401, '{"message":"Bad credentials"}', 'The repository host answered 401: Bad credentials'],
    [404, 'nothing here', 'The repository host answered 404'],
    [422, '{"message":"No commit\\nfound"}', 'The repository host answered 422: No commit found'],
    [302, '', 'The repository host answered 302'],
  ])('with %i is asked once, and its owner is told why', async (status, body, error) => {
    const name = await newProject()
    answers.push({ status, body, headers: { location: `${hostUrl}/elsewhere` } })
    const { id } = await deploy(name, sha())
    await told(1)
    await done(id)
    expect(await commitStatus(name)).toMatchObject({ error, postedAt: null })
    await finish(id, { to: 'READY' })
    await vi.waitFor(async () => expect(await commitStatus(name)).toMatchObject({ error: null }), quickly)
    expect(posted.map(({ url }) => url)).not.toContain('/elsewhere')
  })

  test('is asked again when it says, and not before', async () => {
    const name = await newProject()
    answers.push({ status: 429, headers: { 'retry-after': '120' } })
    const { id } = await deploy(name, sha())
    await told(1)
    await vi.waitFor(async () => expect((await jobOf(id))!.lockedBy).toBeNull(), quickly)
    const waitMs = (await jobOf(id))!.runAt.getTime() - Date.now()
    expect(waitMs).toBeGreaterThan(100_000)
    expect(waitMs).toBeLessThan(125_000)
    await api.db.job.deleteMany({ where: { key: id } })
  })

  test('because it is down is asked again by the table, and blamed when that is over', async () => {
    const { db, config, urls, vault } = api.deps
    const handler = createStatusHandler({ db, config, urls, vault })
    const name = await newProject()
    answers.push({ status: 503, body: '{"message":"later"}' })
    const { id } = await deploy(name, sha())
    await told(1)
    await vi.waitFor(async () => expect((await jobOf(id))!.lastError).toContain('503: later'), quickly)
    expect(await jobOf(id)).toMatchObject({ attempts: 1, failedAt: null })
    await api.db.job.deleteMany({ where: { key: id } })
    await handler.giveUp({ deploymentId: id }, new Error('The repository host answered 503: later'), async () => {})
    expect(await commitStatus(name)).toMatchObject({ error: 'The repository host answered 503: later' })
  })

  test.each([
    [{ status: 429, headers: { 'retry-after': '7' } }, 7_000],
    [{ status: 403, headers: { 'retry-after': '0' } }, 1_000],
    [{ status: 503, headers: { 'retry-after': 'Thu, 01 Jan 1970 00:01:00 GMT' } }, 60_000],
    [{ status: 403, headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' } }, 30_000],
    [{ status: 429, headers: { 'retry-after': '999999999' } }, 3_600_000],
    [{ status: 403, headers: { 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '30' } }, null],
    [{ status: 429, headers: { 'retry-after': 'soon' } }, null],
    [{ status: 404, headers: { 'retry-after': '7' } }, null],
  ])('with %j is left alone for %s ms', (answer, waitMs) => {
    expect(retryDelayOf({ text: '', ...answer }, 0)).toBe(waitMs)
  })
})

describe('the token goes nowhere', () => {
  const rules = { production: false, webhookAllowPrivate: false }

  test('private, neither by an address nor by a name that leads there', async () => {
    const { db, urls, vault, config } = api.deps
    const handler = createStatusHandler({ db, urls, vault, config: { ...config, webhookAllowPrivate: false } })
    const name = await newProject()
    answers.push({ status: 404 })
    const { id } = await deploy(name, sha())
    await told(1)
    await done(id)
    await handler.run(
      { deploymentId: id },
      { attempt: 1, signal: new AbortController().signal, async requireHeld() {} },
    )
    expect(posted).toHaveLength(1)
    expect((await commitStatus(name)).error).toMatch(/^Not sent: .*private/)
  })

  test.each([
    [['10.0.0.1', '::1'], null],
    [['10.0.0.1', '8.8.8.8', '169.254.169.254'], ['8.8.8.8']],
  ])('of %j but %j', async (found, allowed) => {
    const addresses: LookupAddress[] = found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    const reach = { mayReach: isPublicAddress, resolve: async () => addresses }
    const answer = await new Promise<{ error: unknown; found: unknown }>((resolve) => {
      checkedLookup(reach)('git.example.com', { all: true }, (error, found) => resolve({ error, found }))
    })
    if (allowed === null) {
      const { signal } = new AbortController()
      const sent = postJson('https://git.example.com/', { headers: {}, body: {}, rules, reach, signal })
      await expect(sent).rejects.toBeInstanceOf(RefusedTarget)
    }
    if (allowed !== null) expect((answer.found as LookupAddress[]).map(({ address }) => address)).toEqual(allowed)
  })

  test('and an answer without an end is cut off', async () => {
    const endless = createServer((_request, response) => {
      const timer = setInterval(() => response.write('x'.repeat(8192)), 5)
      response.on('close', () => clearInterval(timer))
    })
    endless.listen(0, '127.0.0.1')
    await once(endless, 'listening')
    const url = `http://127.0.0.1:${(endless.address() as AddressInfo).port}/`
    const open = { production: false, webhookAllowPrivate: true }
    const answer = await postJson(url, {
      headers: {},
      body: {},
      rules: open,
      reach: createReach({ ...open, dnsResolvers: [] }),
      signal: new AbortController().signal,
    })
    expect(answer.status).toBe(200)
    expect(answer.text.length).toBeLessThan(100_000)
    endless.close()
  })
})
