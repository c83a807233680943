import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { findBuild } from '../../../src/services/deployments/builds.ts'
import { appendLines } from '../../../src/services/deployments/logs/deployment-logs.ts'
import { finishDeployment, type Outcome } from '../../../src/services/deployments/states.ts'
import { sharedApi, startApi, type TestApi } from '../../helpers/api.ts'
import { createRepository } from '../../helpers/repository.ts'
import { checkMessage } from '../../helpers/responses.ts'
import { readStream } from '../../helpers/stream.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
let commit: string
beforeAll(async () => {
  api = await sharedApi()
  commit = await createRepository(`${api.config.dataDir}/repos`, 'acme/site')
  await api.call('POST', '/projects', { body: { name: 'site', framework: 'static', repo: 'acme/site' } })
})
afterAll(() => api.stop())

const deploy = async (body: object = {}) =>
  (await api.call('POST', '/deployments', { body: { project: 'site', ...body } })).body
const finish = (id: string, outcome: Outcome = { to: 'READY' }) =>
  finishDeployment(api.db, api.deps.urls, id, { ...outcome, by: 'system' })

describe('creating a deployment', () => {
  test('needs the project only, and answers the planned fields first, in order, in state BUILDING', async () => {
    const { status, headers, body } = await api.call('POST', '/deployments', { body: { project: 'site' } })
    expect(status).toBe(201)
    expect(headers.location).toBe(`/api/deployments/${body.id}`)
    const planned = ['id', 'project', 'state', 'ref', 'commit', 'production', 'url', 'region', 'createdAt']
    expect(Object.keys(body).slice(0, 9)).toEqual(planned)
    const further = ['readyAt', 'finishedAt', 'error', 'source', 'current', 'pinned', 'startedAt', 'queuePosition']
    const figures = ['branchUrl', 'commitSha', 'commitMessage', 'files', 'bytes', 'steps', 'detected', 'warnings']
    expect(Object.keys(body).slice(9)).toEqual([...further, ...figures, 'untrusted'])
    expect(body.id).toMatch(/^dpl_[0-9a-z]{24}$/)
    expect(body).toMatchObject({ project: 'site', state: 'BUILDING', ref: 'main', production: false, source: 'api' })
    expect([body.commit, body.commitSha]).toEqual([commit.slice(0, 7), commit])
    expect(body.url).toMatch(/^http:\/\/site-[0-9a-z]{9}\.localhost:8080$/)
    expect(body.branchUrl).toBe('http://site-git-main.localhost:8080')
    expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  test('writes the row, its event and its job together', async () => {
    const { id } = await deploy({ production: true })
    const event = await api.db.event.findFirstOrThrow({ where: { subject: id } })
    expect(event).toMatchObject({ type: 'deployment.created', accountId: api.accountId })
    expect(event.data).toMatchObject({ id, production: true })
    expect(await api.db.job.findFirstOrThrow({ where: { kind: 'build', key: id } })).toMatchObject({
      payload: { deploymentId: id },
    })
  })

  test('takes a branch, a commit and a short commit as ref', async () => {
    for (const ref of ['main', commit, commit.slice(0, 8)])
      expect((await deploy({ ref })).commit).toBe(commit.slice(0, 7))
  })

  test.each(['nope', '-x', '--upload-pack=touch', 'a..b', '../../etc/passwd', 'main^', 'x y', 'HEAD~1', '@{-1}'])(
    'refuses the ref %j with 422 ref_not_found, naming the field',
    async (ref) => {
      const { status, body } = await api.call('POST', '/deployments', { body: { project: 'site', ref } })
      expect(status).toBe(422)
      expect(body).toMatchObject({ code: 'ref_not_found', errors: [{ pointer: '#/ref' }] })
    },
  )

  test('answers 404 for a project that is not there', async () => {
    expect(await api.call('POST', '/deployments', { body: { project: 'nope' } })).toMatchObject({
      status: 404,
      body: { code: 'not_found' },
    })
  })

  test('is accepted with an empty commit when the repository host does not answer', async () => {
    // Nothing listens on port 1, so git fails at once.
    const lonely = await startApi({ GIT_URL_TEMPLATE: 'http://127.0.0.1:1/{repo}.git' })
    await lonely.call('POST', '/projects', { body: { name: 'far', repo: 'far/away' } })
    const { status, body } = await lonely.call('POST', '/deployments', { body: { project: 'far' } })
    expect(status).toBe(201)
    expect(body).toMatchObject({ state: 'BUILDING', ref: 'HEAD', commit: '' })
    const message = "We couldn't reach 127.0.0.1:1. The build retries for five minutes."
    expect(body.warnings).toEqual([{ code: 'repository_unreachable', message }])
    expect((await lonely.call('GET', `/deployments/${body.id}`)).body.warnings).toEqual(body.warnings)
    await lonely.stop()
  })
})

describe('reading deployments', () => {
  test('newest first, filtered by project, state, production and ref', async () => {
    await api.newProject('other')
    const { body: made } = await api.call('POST', '/deployments', { body: { project: 'other', production: true } })
    await finish(made.id)
    const ids = async (query: string) =>
      (await api.call('GET', `/deployments?${query}`)).body.deployments.map(
        (deployment: { id: string }) => deployment.id,
      )
    expect((await ids('limit=1'))[0]).toBe(made.id)
    expect(await ids('project=other')).toEqual([made.id])
    expect(await ids('state=READY&production=true&ref=main&project=other')).toEqual([made.id])
    expect(await ids('state=READY&production=false&project=other')).toEqual([])
    expect(await ids('project=absent')).toEqual([])
    expect(await ids('ref=&project=other')).toEqual([made.id])
    expect((await api.call('GET', '/deployments?state=DONE')).status).toBe(422)
    expect((await api.call('GET', '/deployments?production=maybe')).status).toBe(422)
  })

  test('without those whose project is deleted while the list is read', async () => {
    await api.newProject('going')
    const { body: made } = await api.call('POST', '/deployments', { body: { project: 'going' } })
    // Projects are read after deployments. What a deletion in between leaves to see is a deployment without a project.
    await api.db.$transaction([
      api.db.$executeRaw`SET LOCAL session_replication_role = replica`,
      api.db.project.delete({ where: { label: 'going' } }),
    ])
    const { status, body } = await api.call('GET', '/deployments?limit=1')
    expect({ status, body }).toMatchObject({ status: 200, body: { deployments: [], nextCursor: expect.any(String) } })
    expect(await findBuild(api.db, made.id)).toBeNull()
    await api.db.deployment.delete({ where: { id: made.id } })
  })

  test('the state machine is served as a table', async () => {
    const { body } = await api.call('GET', '/deployments/states')
    expect(body.initial).toBe('BUILDING')
    expect(body.transitions.map(({ from, to }: { from: string; to: string }) => `${from}→${to}`)).toEqual([
      'BUILDING→READY',
      'BUILDING→ERROR',
      'BUILDING→CANCELED',
    ])
  })

  test('?wait= answers as soon as the state changes, and at the latest when the seconds are over', async () => {
    const { id } = await deploy()
    // Longer than this test may take: it is over because the state changed.
    const listening = vi.spyOn(api.deps.notifications, 'nextEvent')
    const waiting = api.call('GET', `/deployments/${id}?wait=60`)
    await until(() => listening.mock.calls.length > 0)
    listening.mockRestore()
    await finish(id, { to: 'ERROR', code: 'build_failed', message: 'exit 1' })
    const { body } = await waiting
    expect(body).toMatchObject({ state: 'ERROR', error: { code: 'build_failed', message: 'exit 1' } })
    const { id: idle } = await deploy()
    expect((await api.call('GET', `/deployments/${idle}?wait=1`)).body.state).toBe('BUILDING')
    expect((await api.call('GET', `/deployments/${idle}?wait=61`)).status).toBe(422)
  })
})

describe('states', () => {
  test('a deployment leaves BUILDING once: of several outcomes at the same time one wins, with one event', async () => {
    const { id } = await deploy()
    const outcomes = await Promise.all([
      finish(id),
      finish(id, { to: 'ERROR', code: 'build_failed', message: '' }),
      finish(id, { to: 'CANCELED' }),
    ])
    expect(outcomes.filter((outcome) => outcome !== null)).toHaveLength(1)
    expect(await api.db.event.count({ where: { subject: id, type: { not: 'deployment.created' } } })).toBe(1)
  })

  test('cancel ends a build, and is refused with 409 when it has finished', async () => {
    const { id } = await deploy()
    const canceled = await api.call('POST', `/deployments/${id}/cancel`)
    expect(canceled).toMatchObject({ status: 202, body: { state: 'CANCELED' } })
    expect(canceled.body.finishedAt).not.toBeNull()
    const again = await api.call('POST', `/deployments/${id}/cancel`)
    expect(again).toMatchObject({ status: 409, body: { code: 'deployment_finished' } })
  })

  test('a production deployment serves production when READY, but an older build that finishes late never wins', async () => {
    await api.newProject('race')
    const make = async () =>
      (await api.call('POST', '/deployments', { body: { project: 'race', production: true } })).body
    const older = await make()
    const newer = await make()
    await finish(newer.id)
    await finish(older.id)
    const read = async (id: string) => (await api.call('GET', `/deployments/${id}`)).body
    expect(await read(newer.id)).toMatchObject({ state: 'READY', current: true })
    expect(await read(older.id)).toMatchObject({ state: 'READY', current: false })
  })

  test('promote rolls back and forward at once, makes a preview production, and needs READY', async () => {
    await api.newProject('promo')
    const make = async (production: boolean) =>
      (await api.call('POST', '/deployments', { body: { project: 'promo', production } })).body
    const [first, second, preview, building] = [
      await make(true),
      await make(true),
      await make(false),
      await make(false),
    ]
    for (const { id } of [first, second, preview]) await finish(id)
    const promote = (id: string) => api.call('POST', `/deployments/${id}/promote`)
    expect(await promote(first.id)).toMatchObject({ status: 202, body: { current: true } })
    expect((await api.call('GET', `/deployments/${second.id}`)).body.current).toBe(false)
    expect((await promote(second.id)).body.current).toBe(true)
    expect((await promote(preview.id)).body).toMatchObject({ current: true, production: true, source: 'promote' })
    expect(await promote(building.id)).toMatchObject({ status: 409, body: { code: 'deployment_not_ready' } })
    // A build newer than all that ever served takes over, also after a roll-back.
    await promote(first.id)
    const newest = await make(true)
    await finish(newest.id)
    expect((await api.call('GET', `/deployments/${newest.id}`)).body.current).toBe(true)
  })

  test('delete is refused while it serves production or builds, and final otherwise', async () => {
    await api.newProject('del')
    const { body: live } = await api.call('POST', '/deployments', { body: { project: 'del', production: true } })
    expect(await api.call('DELETE', `/deployments/${live.id}`)).toMatchObject({ body: { code: 'deployment_building' } })
    await finish(live.id)
    expect(await api.call('DELETE', `/deployments/${live.id}`)).toMatchObject({
      status: 409,
      body: { code: 'deployment_in_production' },
    })
    const { body: preview } = await api.call('POST', '/deployments', { body: { project: 'del' } })
    await finish(preview.id)
    expect((await api.call('DELETE', `/deployments/${preview.id}`)).status).toBe(204)
    expect((await api.call('GET', `/deployments/${preview.id}`)).status).toBe(404)
  })
})

describe('logs', () => {
  const line = (text: string) => ({ stream: 'stdout' as const, step: 'build', text, at: new Date() })

  test('come in pages, oldest first', async () => {
    const { id } = await deploy()
    await appendLines(api.db, id, [line('one'), line('two')])
    await appendLines(api.db, id, [line('three')])
    const first = await api.call('GET', `/deployments/${id}/logs?limit=2`)
    expect(first.body.lines.map(({ seq, text }: { seq: number; text: string }) => [seq, text])).toEqual([
      [1, 'one'],
      [2, 'two'],
    ])
    const rest = await api.call('GET', `/deployments/${id}/logs?limit=2&cursor=${first.body.nextCursor}`)
    expect(rest.body).toMatchObject({ lines: [{ text: 'three' }], hasMore: false })
    const next = `</api/deployments/${id}/logs?limit=2&cursor=${first.body.nextCursor}>; rel="next"`
    expect([first.headers.link, rest.headers.link]).toEqual([next, undefined])
  })

  test('stream as they come, resume behind Last-Event-ID, and end with the final state', async () => {
    const { id } = await deploy()
    await appendLines(api.db, id, [line('one'), line('two')])
    const stream = await readStream(api, `/deployments/${id}/logs`, { 'last-event-id': '1' })
    const line2 = await stream.next()
    expect(line2).toMatchObject({ id: '2', data: { text: 'two' } })
    await appendLines(api.db, id, [line('three')])
    expect(await stream.next()).toMatchObject({ id: '3', data: { text: 'three' } })
    await finish(id)
    const end = await stream.next()
    expect(end).toMatchObject({ event: 'end', data: { state: 'READY' } })
    for (const message of [line2!, end!]) checkMessage(api.app, `/deployments/${id}/logs`, message)
    expect(await stream.next()).toBeNull()
  })
})
