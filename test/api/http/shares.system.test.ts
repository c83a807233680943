// Waits and streams: no place among the requests under way, bounds per account and per server, all given back.
import fc from 'fast-check'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { statuses, toFault } from '../../../src/api/http/responses/problem.ts'
import { boundOpenPerAddress, decorateShares } from '../../../src/api/http/shares/shares.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { sharedApi, startApi, type TestApi } from '../../helpers/api.ts'
import { blockProjects } from '../../helpers/block.ts'
import { type Connection, openConnection, requestOf } from '../../helpers/connection.ts'
import { until } from '../../helpers/until.ts'

const nothing = { requests: 0, waits: 0, streams: 0 }
const sse = { accept: 'text/event-stream' }

type Caller = { accountId: string; token: string }

async function newBuild(api: TestApi, { token }: Caller): Promise<string> {
  const name = `p${Math.random().toString(36).slice(2, 10)}`
  await api.newProject(name, { token })
  const { body } = await api.call('POST', '/deployments', { token, body: { project: name } })
  return body.id
}

const settle = (api: TestApi, id: string) => finishDeployment(api.db, api.deps.urls, id, { by: 'system', to: 'READY' })

async function openStream(api: TestApi, token: string, path = '/events'): Promise<Connection> {
  const connection = await openConnection(api)
  connection.send(requestOf(token, 'GET', path, sse))
  await connection.answers(1)
  return connection
}

describe('waits', () => {
  test('two tokens with hundreds of waits do not shut the API for others, nor for their own account', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '20', MAX_IN_FLIGHT_PER_ACCOUNT: '10', QUOTA_WAITS: '' })
    const mine = { accountId: api.accountId, token: api.token }
    const id = await newBuild(api, mine)
    const second = (await api.call('POST', '/tokens', { body: { name: 'second' } })).body.token
    const connections: Connection[] = []
    for (let n = 0; n < 300; n++) {
      const connection = await openConnection(api)
      connection.send(requestOf(n % 2 ? second : api.token, 'GET', `/deployments/${id}?wait=60`))
      connections.push(connection)
      // It waits, or it was refused.
      if (n < 50) await until(() => api.app.shares.open.waits === n + 1)
      else expect(await connection.answers(1)).toEqual([403])
    }
    const problem = JSON.parse(connections[299]!.text().split('\r\n\r\n')[1]!)
    expect(problem).toMatchObject({ code: 'quota_exceeded', limit: 'waits', used: 50, max: 50 })
    expect(problem.detail).toContain('Omit `wait`')
    const other = await api.newAccount()
    for (const token of [other.token, api.token, second]) {
      const { status, body } = await api.call('GET', '/account', { token })
      expect(status).toBe(200)
      expect(body.limits).toMatchObject({ waits: 50 })
      expect(body.usage).toMatchObject({ waits: token === other.token ? 0 : 50, streams: 0 })
    }
    // Others may wait meanwhile.
    const theirs = await newBuild(api, other)
    const waiting = api.call('GET', `/deployments/${theirs}?wait=60`, { token: other.token })
    await until(() => api.app.shares.open.waits === 51)
    await settle(api, theirs)
    expect((await waiting).body.state).toBe('READY')
    await settle(api, id)
    for (const connection of connections.slice(0, 50)) expect(await connection.answers(1)).toEqual([200])
    await until(() => api.app.shares.open.waits === 0)
    await api.stop()
  })

  test('what is settled already is answered, however many waits are open', async () => {
    const api = await startApi({ QUOTA_WAITS: '0' })
    const id = await newBuild(api, { accountId: api.accountId, token: api.token })
    expect(await api.call('GET', `/deployments/${id}?wait=1`)).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', limit: 'waits', used: 0, max: 0 },
    })
    expect((await api.call('GET', `/deployments/${id}`)).status).toBe(200)
    await settle(api, id)
    expect((await api.call('GET', `/deployments/${id}?wait=60`)).body.state).toBe('READY')
    await api.stop()
  })

  test('more than the server takes are refused with 503, whoever asks', async () => {
    const api = await startApi({ MAX_WAITS: '2', MAX_STREAMS: '1' })
    const owners: Caller[] = [await api.newAccount(), await api.newAccount(), await api.newAccount()]
    const builds: string[] = []
    for (const owner of owners) builds.push(await newBuild(api, owner))
    const wait = (n: number) => api.call('GET', `/deployments/${builds[n]}?wait=60`, { token: owners[n]!.token })
    const waiting = [wait(0), wait(1)]
    await until(() => api.app.shares.open.waits === 2)
    const refused = await wait(2)
    expect(refused).toMatchObject({ status: 503, body: { code: 'overloaded' } })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    const stream = await openStream(api, owners[0]!.token)
    expect(stream.statuses()).toEqual([200])
    expect((await openStream(api, owners[1]!.token)).statuses()).toEqual([503])
    await settle(api, builds[0]!)
    expect((await waiting[0]!).status).toBe(200)
    const third = wait(2)
    await until(() => api.app.shares.open.waits === 2)
    for (const id of builds.slice(1)) await settle(api, id)
    expect([(await waiting[1]!).status, (await third).status]).toEqual([200, 200])
    stream.socket.destroy()
    await until(() => api.app.shares.open.streams === 0)
    expect((await openStream(api, owners[1]!.token)).statuses()).toEqual([200])
    await api.stop()
  })

  test('end when their client is gone, long before their time', async () => {
    const api = await sharedApi()
    const id = await newBuild(api, { accountId: api.accountId, token: api.token })
    const listens = vi.spyOn(api.deps.notifications, 'nextEvent')
    const connection = await openConnection(api)
    connection.send(requestOf(api.token, 'GET', `/deployments/${id}?wait=60`))
    await until(() => api.app.shares.open.waits === 1)
    connection.socket.destroy()
    await until(() => api.app.shares.open.waits === 0)
    await Promise.all(listens.mock.results.map(({ value }) => (value as { done: Promise<void> }).done))
    expect(api.app.shares.open).toEqual(nothing)
    await api.stop()
  })

  test.each([
    ['their token is revoked', 401, 'token_revoked'],
    ['their account is suspended', 403, 'account_suspended'],
  ])('are refused when %s meanwhile', async (_name, status, code) => {
    const api = await sharedApi()
    const owner = await api.newAccount()
    // A suspension ends a build, and so the wait for it; it does nothing to a domain that is not verified.
    const id = await newBuild(api, owner)
    const { name: project } = await api.newProject('waits', { token: owner.token })
    const name = 'waits.example.com'
    await api.call('POST', '/domains', { token: owner.token, body: { name, project } })
    const { body: reader } = await api.call('POST', '/tokens', { token: owner.token, body: { name: 'reader' } })
    const waiting = [`/domains/${name}?wait=60`, `/deployments/${id}?wait=60`].map((path) =>
      api.call('GET', path, { token: reader.token }),
    )
    await until(() => api.app.shares.open.waits === 2)
    if (status === 401) await api.call('DELETE', `/tokens/${reader.id}`, { token: owner.token })
    else {
      const staff = await createAccount(api.db, 'staff', ['operator'])
      const body = { suspended: true }
      await api.call('PATCH', `/operator/accounts/${owner.accountId}`, { token: staff.token, body })
    }
    for (const wait of waiting) expect(await wait).toMatchObject({ status, body: { code } })
    expect(api.app.shares.open).toEqual(nothing)
    await api.stop()
  })

  test('are answered with what there is when the server closes, and streams end', async () => {
    const api = await startApi()
    const id = await newBuild(api, { accountId: api.accountId, token: api.token })
    const wait = await openConnection(api)
    wait.send(requestOf(api.token, 'GET', `/deployments/${id}?wait=60`))
    const stream = await openStream(api, api.token)
    await until(() => api.app.shares.open.waits === 1)
    await api.stop()
    expect(wait.statuses()).toEqual([200])
    expect(wait.text()).toContain('"state":"BUILDING"')
    expect(stream.text()).toMatch(/\r\n0\r\n\r\n$/)
    expect(api.app.shares.open).toEqual(nothing)
  })
})

describe('streams', () => {
  test('of one account are bounded and leave the API and the streams of others alone', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '5', QUOTA_STREAMS: '' })
    const second = (await api.call('POST', '/tokens', { body: { name: 'second' } })).body.token
    const streams: Connection[] = []
    for (let n = 0; n < 20; n++) streams.push(await openStream(api, n % 2 ? second : api.token))
    expect(streams.flatMap((stream) => stream.statuses())).toEqual(Array.from({ length: 20 }, () => 200))
    const refused = await api.call('GET', '/events', { headers: sse })
    expect(refused).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', limit: 'streams', used: 20, max: 20 },
    })
    expect((await api.call('GET', '/account')).body.usage).toMatchObject({ waits: 0, streams: 20 })
    expect((await api.call('GET', '/events')).status).toBe(200)
    const other = await api.newAccount()
    expect((await openStream(api, other.token)).statuses()).toEqual([200])
    streams[0]!.socket.destroy()
    await until(() => api.app.shares.usage(api.accountId).streams === 19)
    expect((await openStream(api, second)).statuses()).toEqual([200])
    await api.stop()
  })
})

test('a scope without tokens bounds what is open for each address, and for all of them', async () => {
  const app = Fastify()
  app.decorateRequest('inFlight', null)
  decorateShares(app)
  app.setErrorHandler((error, _request, reply) => reply.code(statuses[toFault(error).code]).send())
  boundOpenPerAddress(app, 2, 3)
  const held: (() => void)[] = []
  app.get('/', () => new Promise<string>((resolve) => held.push(() => resolve(''))))
  const ask = (remoteAddress: string) => app.inject({ url: '/', remoteAddress })
  const open = [ask('192.0.2.1'), ask('192.0.2.1'), ask('2001:db8::1')]
  await until(() => held.length === 3)
  expect((await ask('192.0.2.2')).statusCode).toBe(503)
  held[2]!()
  await open[2]
  expect((await ask('::ffff:192.0.2.1')).statusCode).toBe(429)
  open.push(ask('2001:db8::2'))
  await until(() => held.length === 4)
  for (const end of held) end()
  expect((await Promise.all(open)).map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200])
  open.push(ask('192.0.2.1'))
  await until(() => held.length === 5)
  held[4]!()
  await app.close()
})

describe('places are given back', () => {
  let api: TestApi
  beforeAll(async () => {
    api = await startApi({ QUOTA_WAITS: '6', QUOTA_STREAMS: '6', MAX_IN_FLIGHT: '40' })
  })
  afterAll(() => api.stop())

  const kinds = ['wait', 'head', 'short', 'events', 'logs', 'plain', 'body', 'absent', 'other method'] as const
  const ends = ['destroyed', 'reset', 'half closed', 'settled', 'revoked', 'left open'] as const
  const opening = fc.record({
    kind: fc.constantFrom(...kinds),
    /** On the connection of the opening before it, behind that one. */
    pipelined: fc.boolean(),
    end: fc.constantFrom(...ends),
  })

  async function play(openings: { kind: string; pipelined: boolean; end: string }[]): Promise<void> {
    const owner = await api.newAccount()
    const { body: reader } = await api.call('POST', '/tokens', { token: owner.token, body: { name: 'reader' } })
    const id = await newBuild(api, owner)
    const bytes: Record<string, string> = {
      wait: requestOf(reader.token, 'GET', `/deployments/${id}?wait=60`),
      head: requestOf(reader.token, 'HEAD', `/deployments/${id}?wait=60`),
      short: requestOf(reader.token, 'GET', `/deployments/${id}?wait=1`),
      events: requestOf(reader.token, 'GET', '/events', sse),
      logs: requestOf(reader.token, 'GET', `/deployments/${id}/logs`, sse),
      plain: requestOf(reader.token, 'GET', '/account'),
      body: requestOf(reader.token, 'POST', '/projects', {
        'content-type': 'application/json',
        'content-length': '50',
      }),
      absent: requestOf(reader.token, 'GET', '/deployments/dpl_none?wait=60'),
      'other method': requestOf(reader.token, 'OPTIONS', `/deployments/${id}?wait=60`),
    }
    const connections: Connection[] = []
    for (const { kind, pipelined } of openings) {
      const last = connections[connections.length - 1]
      const connection = pipelined && last ? last : await openConnection(api)
      connections.push(connection)
      connection.send(bytes[kind]!)
    }
    // Some end while they are still being opened, others after.
    for (const [index, { end }] of openings.entries()) {
      const { socket } = connections[index]!
      if (end === 'destroyed') socket.destroy()
      if (end === 'reset') socket.resetAndDestroy()
      if (end === 'half closed') socket.end()
      if (end === 'settled') await settle(api, id).catch(() => {})
      if (end === 'revoked') await api.call('DELETE', `/tokens/${reader.id}`, { token: owner.token })
    }
    const { waits, streams } = api.app.shares.usage(owner.accountId)
    expect(waits).toBeLessThanOrEqual(6)
    expect(streams).toBeLessThanOrEqual(6)
    for (const { socket } of connections) socket.destroy()
    await until(() => Object.values(api.app.shares.open).every((count) => count === 0))
    expect(api.app.shares.usage(owner.accountId)).toEqual({ waits: 0, streams: 0 })
  }

  test('however requests, waits and streams end', async () => {
    await fc.assert(fc.asyncProperty(fc.array(opening, { minLength: 1, maxLength: 12 }), play), {
      numRuns: 25,
      seed: 20261116,
      endOnFailure: true,
    })
    // Nothing was given back twice either: the whole allowance is there, and no more.
    const owner = await api.newAccount()
    const id = await newBuild(api, owner)
    const waits: Connection[] = []
    for (let n = 0; n < 6; n++) {
      const connection = await openConnection(api)
      connection.send(requestOf(owner.token, 'GET', `/deployments/${id}?wait=60`))
      waits.push(connection)
      expect((await openStream(api, owner.token)).statuses()).toEqual([200])
    }
    await until(() => api.app.shares.usage(owner.accountId).waits === 6)
    expect((await api.call('GET', `/deployments/${id}?wait=60`, { token: owner.token })).status).toBe(403)
    expect((await openStream(api, owner.token)).statuses()).toEqual([403])
    expect(api.app.shares.open).toEqual({ requests: 0, waits: 6, streams: 6 })
    await settle(api, id)
    for (const wait of waits) expect(await wait.answers(1)).toEqual([200])
    // So are all places among the requests under way.
    const release = await blockProjects(api)
    const blocked = Array.from({ length: 40 }, () => api.call('GET', '/projects', { token: owner.token }))
    await until(async () => (await api.call('GET', '/regions')).status === 503)
    await release()
    expect((await Promise.all(blocked)).map(({ status }) => status)).toEqual(blocked.map(() => 200))
  }, 120_000)
})
