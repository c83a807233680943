import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

test('an account shows its limits, and counts what it holds and nothing of others', async () => {
  const [mine, other] = [await api.newAccount(), await api.newAccount()]
  for (const [{ token }, name] of [
    [mine, 'mine'],
    [other, 'other'],
  ] as const) {
    const made = async (path: string, body: object) => {
      const { status, text, body: answer } = await api.call('POST', path, { token, body })
      expect(status, text).toBe(201)
      return answer
    }
    await made('/projects', { name, framework: 'static', repo: 'demo/hello' })
    await made('/domains', { name: `${name}.example.com`, project: name })
    await made(`/dns/${name}.example.com/records`, { type: 'A', name: 'www', value: '192.0.2.1', ttl: 300 })
    await made('/webhooks', { url: 'https://hooks.example.com/', events: ['*'] })
    await made('/tickets', { subject: 'open', message: 'it waits' })
    const closed = await made('/tickets', { subject: 'closed', message: 'it is done' })
    await api.call('PATCH', `/tickets/${closed.id}`, { token, body: { status: 'CLOSED' } })
    await made('/tokens', { name: 'kept' })
    const revoked = await made('/tokens', { name: 'revoked' })
    await api.call('DELETE', `/tokens/${revoked.id}`, { token })
  }
  const { status, body } = await api.call('GET', '/account', { token: mine.token })
  expect(status).toBe(200)
  expect(body).toEqual({
    id: mine.accountId,
    name: expect.any(String),
    createdAt: expect.any(String),
    limits: {
      requestsPerMinute: 1_000_000,
      accountRequestsPerMinute: 3_000_000,
      requestsAtOnce: 1000,
      bodyBytes: 65_536,
      zoneImportBytes: 16_777_216,
      ...api.config.quotas,
    },
    usage: {
      projects: 1,
      serverInstances: 0,
      deployments: 0,
      domains: 1,
      claimsPerMonth: 1,
      records: 1,
      recordBytes: 12,
      dnsKeys: 0,
      openTickets: 1,
      messagesPerMonth: 2,
      tokens: 2,
      members: 0,
      webhooks: 1,
      buildsAtOnce: 0,
      buildsQueued: 0,
      buildMinutesPerMonth: 0,
      storedBytes: 0,
      waits: 0,
      streams: 0,
    },
  })
})

test('shows a token narrowed to projects their share alone, and nothing of what belongs to the whole account', async () => {
  const { token } = await api.newAccount()
  const made = async (path: string, body: object) => {
    const { status, text, body: answer } = await api.call('POST', path, { token, body })
    expect(status, text).toBe(201)
    return answer
  }
  for (const [name, records] of [
    ['share', 2],
    ['rest', 3],
    ['more', 1],
  ] as const) {
    await api.newProject(name, { token })
    await made('/deployments', { project: name })
    await made('/domains', { name: `${name}-share.example.com`, project: name })
    for (let host = 0; host < records; host++) {
      await made(`/dns/${name}-share.example.com/records`, { type: 'A', name: `h${host}`, value: '192.0.2.1' })
    }
  }
  await made('/webhooks', { url: 'https://hooks.example.com/', events: ['*'] })
  await made('/tickets', { subject: 'open', message: 'it waits' })
  const builds = { buildsAtOnce: null, buildsQueued: null, buildMinutesPerMonth: null }
  const wide = {
    claimsPerMonth: null,
    openTickets: null,
    messagesPerMonth: null,
    tokens: null,
    members: null,
    webhooks: null,
    ...builds,
  }
  const usageOf = async (projects: string[]) => {
    const narrow = await made('/tokens', { name: 'narrow', scopes: ['dns:read'], projects })
    return (await api.call('GET', '/account', { token: narrow.token })).body.usage
  }
  await api.db.deployment.updateMany({ where: { project: { name: 'share' } }, data: { storedBytes: 5000n } })
  const share = {
    projects: 1,
    serverInstances: 0,
    deployments: 1,
    domains: 1,
    records: 2,
    recordBytes: 22,
    dnsKeys: 0,
    storedBytes: 5000,
  }
  expect(await usageOf(['share'])).toEqual({ ...share, ...wide, waits: 0, streams: 0 })
  expect(await usageOf(['share', 'rest'])).toMatchObject({
    projects: 2,
    deployments: 2,
    domains: 2,
    records: 5,
    ...wide,
  })
  // A project that is gone counts no more, and leaves the token as narrow as it was.
  const narrow = await made('/tokens', { name: 'narrow', projects: ['more'] })
  await api.call('DELETE', '/domains/more-share.example.com', { token })
  await api.call('DELETE', '/projects/more', { token })
  const { body } = await api.call('GET', '/account', { token: narrow.token })
  expect(body.usage).toMatchObject({ projects: 0, deployments: 0, domains: 0, records: 0, ...wide })
})
