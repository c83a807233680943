// The SDK against a running API: calls, lists, waiting, streams.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Berth, BerthError, createBerth, DeploymentFailed } from '../../sdk/src/index.ts'
import { finishDeployment } from '../../src/services/deployments/states.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { until } from '../helpers/until.ts'

let api: TestApi
let baseUrl: string
let berth: Berth
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('hello')
  baseUrl = `${await api.listen()}/api`
  berth = createBerth({ baseUrl, token: api.token })
})
afterAll(() => api.stop())

const deploy = () => berth.post('/deployments', { body: { project: 'hello' } })
const openTicket = (subject: string, using = berth) => using.post('/tickets', { body: { subject, message: 'Hello' } })
const failure = (promise: Promise<unknown>): Promise<BerthError> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error) => error,
  )

describe('a call', () => {
  test('resolves to the body of the answer', async () => {
    const project = await berth.get('/projects/{project}', { params: { path: { project: 'hello' } } })
    expect(project.repo).toBe('test/hello')
    const ticket = await openTicket('A call')
    expect(ticket.status).toBe('OPEN')
    const closed = await berth.patch('/tickets/{id}', {
      params: { path: { id: ticket.id } },
      body: { status: 'CLOSED' },
    })
    expect(closed.status).toBe('CLOSED')
    const token = await berth.post('/tokens', { body: { name: 'short-lived' } })
    expect(await berth.delete('/tokens/{id}', { params: { path: { id: token.id } } })).toBeUndefined()
  })

  test('throws what the problem says', async () => {
    const params = { path: { domain: 'sdk.test' } }
    await berth.post('/domains', { body: { project: 'hello', name: 'sdk.test' } })
    const body = { type: 'A', name: '@', value: 'nowhere' } as const
    const error = await failure(berth.post('/dns/{domain}/records', { params, body }))
    expect(error).toBeInstanceOf(BerthError)
    expect(error).toMatchObject({ status: 422, code: 'validation_failed', errors: [{ pointer: '#/value' }] })
    expect(error.requestId).toMatch(/^req_/)
    expect(error.message).toMatch(/^validation_failed: /)
  })

  test('is checked against the document by the compiler', () => {
    const never = () => {
      // @ts-expect-error There is no such path.
      void berth.get('/nothing')
      // @ts-expect-error A deployment is of a project.
      void berth.post('/deployments', { body: { ref: 'main' } })
      // @ts-expect-error The id is missing.
      void berth.get('/deployments/{id}')
      // @ts-expect-error Push hooks are not called with a token.
      void berth.post('/hooks/git/{project}', { params: { path: { project: 'hello' } } })
      // @ts-expect-error This is no list.
      void berth.list('/account')
    }
    expect(never).toBeTypeOf('function')
  })

  test('sends and reads zone files as text', async () => {
    const params = { path: { domain: 'zone.test' } }
    await berth.post('/domains', { body: { project: 'hello', name: 'zone.test' } })
    const imported = await berth.put('/dns/{domain}/zone', { params, body: '@ 300 IN TXT "by the SDK"\n' })
    expect(imported.created).toBe(1)
    const zone: string = await berth.get('/dns/{domain}/zone', { params })
    expect(zone).toContain('"by the SDK"')
  })

  test('asks a function for the token each time', async () => {
    const tokens = ['brt_wrong', api.token]
    const rotating = createBerth({ baseUrl, token: async () => tokens.shift()! })
    expect(await failure(rotating.get('/account'))).toMatchObject({ status: 401, code: 'invalid_token' })
    expect((await rotating.get('/account')).id).toBe(api.accountId)
  })

  test('raw gives the headers, so that a change can be made to depend on what was read', async () => {
    const params = { path: { project: 'hello' } }
    const { response } = await berth.raw.GET('/projects/{project}', { params })
    const change = (etag: string) =>
      berth.patch('/projects/{project}', {
        params: { ...params, header: { 'If-Match': etag } },
        body: { settings: { cleanUrls: false } },
      })
    expect((await change(response.headers.get('etag')!)).settings.cleanUrls).toBe(false)
    expect(await failure(change(response.headers.get('etag')!))).toMatchObject({ code: 'precondition_failed' })
  })
})

test('a POST whose answer is lost is done once', async () => {
  const { token } = await api.newAccount()
  let answers = 0
  const unlucky = createBerth({
    baseUrl,
    token,
    async fetch(request, init) {
      const response = await fetch(request, init)
      if (++answers < 3) throw new TypeError('fetch failed')
      return response
    },
  })
  const { data, response } = await unlucky.raw.POST('/tickets', { body: { subject: 'Once', message: 'Hello' } })
  expect(response.headers.get('idempotency-replayed')).toBe('true')
  expect((await unlucky.get('/tickets')).tickets).toEqual([data])
})

test('a list is read to its end, every item once', async () => {
  const { token } = await api.newAccount()
  const other = createBerth({ baseUrl, token })
  const made: string[] = []
  for (let number = 0; number < 5; number++) made.push((await openTicket(`Ticket ${number}`, other)).id)
  const found: string[] = []
  for await (const ticket of other.list('/tickets', { params: { query: { limit: 2, order: 'asc' } } })) {
    found.push(ticket.id)
  }
  expect(found).toEqual(made)
  const sizes: number[] = []
  for await (const page of other.pages('/tickets', { params: { query: { limit: 2 } } })) sizes.push(page.tickets.length)
  expect(sizes).toEqual([2, 2, 1])
  for await (const domain of other.list('/domains')) expect.unreachable(domain.name)
})

describe('waiting', () => {
  test('ends when the deployment is READY', async () => {
    const { id } = await deploy()
    const waiting = berth.waitUntilReady(id)
    await finishDeployment(api.db, api.deps.urls, id, { by: 'system', to: 'READY' })
    expect(await waiting).toMatchObject({ id, state: 'READY' })
  })

  test('throws the deployment that ended otherwise', async () => {
    const { id } = await deploy()
    const error = { code: 'build_failed', message: 'npm ended with 1' }
    await finishDeployment(api.db, api.deps.urls, id, { by: 'system', to: 'ERROR', ...error })
    const failed = await failure(berth.waitUntilReady(id))
    expect(failed).toBeInstanceOf(DeploymentFailed)
    expect(failed).toMatchObject({
      deployment: { id, error },
      message: `${id} is ERROR: build_failed: npm ended with 1`,
    })
  })

  test('looks now and then where others of the account wait already, as many as may', async () => {
    const { id } = await deploy()
    let refused = 0
    const crowded = createBerth({
      baseUrl,
      token: api.token,
      async fetch(request, init) {
        if (!request.url.includes('wait=')) return fetch(request, init)
        if (refused++ > 0) await finishDeployment(api.db, api.deps.urls, id, { by: 'system', to: 'READY' })
        return Response.json({ code: 'quota_exceeded', detail: 'Too many', limit: 'waits' }, { status: 403 })
      },
    })
    expect((await crowded.waitUntilReady(id)).state).toBe('READY')
    expect(refused).toBe(2)
  })

  test('is ended by the caller', async () => {
    const { id } = await deploy()
    const leaving = new AbortController()
    const waiting = failure(berth.waitUntilReady(id, { signal: leaving.signal }))
    leaving.abort(new Error('enough'))
    expect(await waiting).toMatchObject({ message: 'enough' })
  })
})

describe('the stream of events', () => {
  const cut = () => api.app.server.closeAllConnections()
  const isOpen = (count = 1) => until(() => api.app.shares.open.streams >= count)

  test('has no gap and no repeat when the connection breaks off', async () => {
    const { token } = await api.newAccount()
    const own = createBerth({ baseUrl, token })
    const subjects = ['first', 'second', 'third', 'fourth']
    const heard: string[] = []
    const following = (async () => {
      for await (const event of own.events({ type: ['ticket.created'] })) {
        heard.push((event.data as { subject: string }).subject)
        if (heard.length === subjects.length) return
      }
    })()
    await isOpen()
    // Nothing was heard yet: what happens before the stream is open again is not lost either.
    cut()
    await openTicket('first', own)
    await until(() => heard.length === 1)
    cut()
    await openTicket('second', own)
    await openTicket('third', own)
    await until(() => heard.length === 3)
    await openTicket('fourth', own)
    await following
    expect(heard).toEqual(subjects)
  })

  test('begins behind an event', async () => {
    const { token } = await api.newAccount()
    const own = createBerth({ baseUrl, token })
    for (const subject of ['one', 'two']) await openTicket(subject, own)
    const { events } = await own.get('/events', { params: { query: { order: 'asc' } } })
    const first = events.find(({ type }) => type === 'ticket.created')!
    for await (const event of own.events({}, { lastEventId: first.id })) {
      expect(event).toEqual(events[events.indexOf(first) + 1])
      break
    }
  })

  test('ends with the token, and when the caller says so', async () => {
    const { id, token } = await berth.post('/tokens', { body: { name: 'reader', scopes: ['events:read'] } })
    const reading = failure(
      createBerth({ baseUrl, token })
        .events({ type: ['ticket.created'] })
        .next(),
    )
    await isOpen()
    await berth.delete('/tokens/{id}', { params: { path: { id } } })
    expect(await reading).toMatchObject({ status: 401, code: 'token_revoked' })

    const leaving = new AbortController()
    const left = failure(berth.events({ type: ['ticket.created'] }, { signal: leaving.signal }).next())
    await isOpen()
    leaving.abort(new Error('enough'))
    expect(await left).toMatchObject({ message: 'enough' })
    await until(() => api.app.shares.open.streams === 0)
  })
})

test('the log of a deployment is followed to its end, also over a broken connection', async () => {
  const { id: deploymentId } = await deploy()
  const write = (seq: number) =>
    api.db.logLine.create({
      data: { deploymentId, seq, at: new Date(), stream: 'stdout', step: 'build', text: `line ${seq}` },
    })
  await write(1)
  const texts: string[] = []
  for await (const line of berth.logs(deploymentId)) {
    texts.push(line.text)
    if (line.seq === 3) await finishDeployment(api.db, api.deps.urls, deploymentId, { by: 'system', to: 'READY' })
    if (line.seq > 2) continue
    await write(line.seq + 1)
    api.app.server.closeAllConnections()
  }
  expect(texts).toEqual(['line 1', 'line 2', 'line 3'])
})
