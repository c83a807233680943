import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi()
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
    limits: { requestsPerMinute: expect.any(Number), bodyBytes: 65_536, zoneImportBytes: 16_777_216 },
    usage: { projects: 1, deployments: 0, domains: 1, records: 1, openTickets: 1, tokens: 2, webhooks: 1 },
  })
})
