import { connect } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { createRateLimit } from '../../../src/api/http/shares/rate-limit.ts'
import { sharedApi, startApi } from '../../helpers/api.ts'
import { blockProjects } from '../../helpers/block.ts'
import { closed } from '../../helpers/closed.ts'
import { until } from '../../helpers/until.ts'

describe('rate limits', () => {
  test('over the limit a token gets 429 with Retry-After, and another token is not touched', async () => {
    const api = await startApi({ RATE_LIMIT_PER_MINUTE: '3', RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: '100' })
    const second = (await api.call('POST', '/tokens', { body: { name: 'second' } })).body.token
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await api.call('GET', '/regions')).status)
    expect(statuses).toEqual([200, 200, 429])
    const refused = await api.call('GET', '/regions')
    expect(refused.body.code).toBe('rate_limited')
    expect(refused.body.detail).toContain('with this token')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    // What was refused is not taken from the account either.
    expect(refused.headers.ratelimit).toMatch(/^"token";r=0;t=\d+, "account";r=97;t=\d+$/)
    const answered = await api.call('GET', '/regions', { token: second })
    expect(answered.status).toBe(200)
    expect(answered.headers['ratelimit-policy']).toBe('"token";q=3;w=60, "account";q=100;w=60')
    expect(answered.headers.ratelimit).toMatch(/^"token";r=2;t=\d+, "account";r=96;t=\d+$/)
    const other = await api.newAccount()
    expect((await api.call('GET', '/regions', { token: other.token })).status).toBe(200)
    await api.stop()
  })

  test('more tokens bring no more requests than the account has', async () => {
    const api = await startApi({ RATE_LIMIT_PER_MINUTE: '6', RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: '20' })
    const tokens = [api.token]
    for (let i = 0; i < 5; i++) tokens.push((await api.call('POST', '/tokens', { body: { name: `t${i}` } })).body.token)
    const answers = []
    for (const token of tokens) for (let i = 0; i < 6; i++) answers.push(await api.call('GET', '/regions', { token }))
    // Five requests made the tokens.
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(15)
    const last = answers[answers.length - 1]!
    expect(last).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(last.body.detail).toContain('with all tokens of the account')
    expect(last.headers.ratelimit).toMatch(/^"token";r=6;t=\d+, "account";r=0;t=\d+$/)
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(0)
    const other = await api.newAccount()
    expect((await api.call('GET', '/regions', { token: other.token })).status).toBe(200)
    await api.stop()
  })

  test('begin anew with the next minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const limit = createRateLimit(2)
      const take = async () => (await limit.take('key')).exceeded
      expect([await take(), limit.isUsedUp('key'), await take(), limit.isUsedUp('key'), await take()]).toEqual([
        ...[false, false, false, true, true],
      ])
      vi.setSystemTime(Date.now() + 60_000)
      expect([limit.isUsedUp('key'), await take(), await take(), await take()]).toEqual([false, false, false, true])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('HTTPS only', () => {
  test('plain HTTP from outside the machine is refused and never redirected, whatever the token', async () => {
    const api = await sharedApi()
    const { statusCode, headers, body } = await api.app.inject({
      url: '/api/projects',
      headers: { authorization: `Bearer ${api.token}` },
      remoteAddress: '203.0.113.7',
    })
    expect(statusCode).toBe(403)
    expect(JSON.parse(body).code).toBe('https_required')
    expect(headers.location).toBeUndefined()
    await api.stop()
  })

  test('a trusted proxy is believed, and nobody else is', async () => {
    const api = await startApi({ TRUSTED_PROXIES: '10.1.2.3' })
    const from = (remoteAddress: string, proto: string) =>
      api.app.inject({
        url: '/api/projects',
        remoteAddress,
        headers: {
          authorization: `Bearer ${api.token}`,
          'x-forwarded-proto': proto,
          'x-forwarded-for': '203.0.113.7',
        },
      })
    const secure = await from('10.1.2.3', 'https')
    expect(secure.statusCode).toBe(200)
    expect(secure.headers['strict-transport-security']).toMatch(/^max-age=\d+/)
    expect((await from('10.1.2.3', 'http')).statusCode).toBe(403)
    expect((await from('198.51.100.1', 'https')).statusCode).toBe(403)
    await api.stop()
  })
})

describe('overload', () => {
  test('more requests at once than allowed are shed with 503 and Retry-After, and the rest are answered', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '2' })
    const release = await blockProjects(api)
    const blocked = [1, 2].map(() => api.call('GET', '/projects'))
    const shed = await until(async () => {
      const answer = await api.call('GET', '/regions')
      return answer.status === 503 && answer
    })
    expect(shed.body.code).toBe('overloaded')
    expect(shed.headers['retry-after']).toBe('1')
    expect((await api.app.inject({ url: '/healthz' })).statusCode).toBe(200)
    await release()
    expect((await Promise.all(blocked)).map(({ status }) => status)).toEqual([200, 200])
    expect((await api.call('GET', '/regions')).status).toBe(200)
    await api.stop()
  })

  test('a caller that hangs up gives its place back when its work ends, also after its body was read', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '1' })
    await api.listen()
    const { port } = api.app.server.address() as { port: number }
    const body = JSON.stringify({ name: 'p', framework: 'static', repo: 'test/p' })
    const post = `POST /api/projects HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    for (const [head, payload] of [
      ['GET /api/projects HTTP/1.1', ''],
      [post, body],
    ]) {
      const release = await blockProjects(api)
      const socket = connect(port, '127.0.0.1')
      socket.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${api.token}\r\n\r\n${payload}`)
      await until(async () => (await api.call('GET', '/regions')).status === 503)
      const gone = closed(socket)
      socket.destroy()
      await gone
      // The work goes on, and counts.
      expect((await api.call('GET', '/regions')).status).toBe(503)
      expect(api.app.shares.open.requests).toBe(1)
      await release()
      await until(async () => (await api.call('GET', '/regions')).status === 200)
      expect(api.app.shares.open.requests).toBe(0)
    }
    await api.stop()
  })

  test('one account has a part of the places, and the others have the rest', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '10', MAX_IN_FLIGHT_PER_ACCOUNT: '3' })
    const release = await blockProjects(api)
    const blocked = [1, 2, 3].map(() => api.call('GET', '/projects'))
    await until(() => api.app.shares.open.requests === 3)
    const refused = await api.call('GET', '/regions')
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' }, headers: { 'retry-after': '1' } })
    expect(refused.body.detail).toContain('in progress')
    const other = await api.newAccount()
    expect((await api.call('GET', '/regions', { token: other.token })).status).toBe(200)
    await release()
    expect((await Promise.all(blocked)).map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await api.call('GET', '/regions')).status).toBe(200)
    expect(api.app.shares.open).toEqual({ requests: 0, waits: 0, streams: 0 })
    await api.stop()
  })
})
