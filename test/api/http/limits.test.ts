import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { finishDeployment } from '../../../src/services/deployments/states.ts'
import { startApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

describe('rate limits', () => {
  test('over the limit a token gets 429 with Retry-After, and another token is not touched', async () => {
    const api = await startApi({ RATE_LIMIT_PER_MINUTE: '3' })
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await api.call('GET', '/regions')).status)
    expect(statuses).toEqual([200, 200, 200, 429])
    const refused = await api.call('GET', '/regions')
    expect(refused.body.code).toBe('rate_limited')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    const other = await api.newAccount()
    expect((await api.call('GET', '/regions', { token: other.token })).status).toBe(200)
    await api.stop()
  })

  test('bad tokens are limited per address, so that guessing is slow', async () => {
    const api = await startApi()
    const guess = (remoteAddress: string) =>
      api.app.inject({ url: '/api/regions', headers: { authorization: 'Bearer guess' }, remoteAddress })
    for (let i = 0; i < 60; i++) expect((await guess('127.0.0.9')).statusCode).toBe(401)
    expect((await guess('127.0.0.9')).statusCode).toBe(429)
    expect((await guess('127.0.0.8')).statusCode).toBe(401)
    await api.stop()
  })
})

describe('HTTPS only', () => {
  test('plain HTTP from outside the machine is refused and never redirected, whatever the token', async () => {
    const api = await startApi()
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
    await api.newProject('p')
    const { body: deployment } = await api.call('POST', '/deployments', { body: { project: 'p' } })
    const waiting = [1, 2].map(() => api.call('GET', `/deployments/${deployment.id}?wait=60`))
    const shed = await until(async () => {
      const answer = await api.call('GET', '/regions')
      return answer.status === 503 && answer
    })
    expect(shed.body.code).toBe('overloaded')
    expect(shed.headers['retry-after']).toBe('1')
    expect((await api.app.inject({ url: '/healthz' })).statusCode).toBe(200)
    await finishDeployment(api.db, api.deps.urls, deployment.id, { by: 'system', to: 'READY' })
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200])
    expect((await api.call('GET', '/regions')).status).toBe(200)
    await api.stop()
  })

  test('a caller that hangs up gives its place back', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '1' })
    await api.newProject('p')
    const { body: deployment } = await api.call('POST', '/deployments', { body: { project: 'p' } })
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = api.app.server.address() as { port: number }
    for (let i = 0; i < 3; i++) {
      const socket = connect(port, '127.0.0.1')
      const head = `GET /api/deployments/${deployment.id}?wait=60 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n`
      socket.write(`${head}Authorization: Bearer ${api.token}\r\n\r\n`)
      // The server says so when it has the request, and takes its place in the same turn.
      expect(String((await once(socket, 'data'))[0])).toBe('HTTP/1.1 100 Continue\r\n\r\n')
      expect((await api.call('GET', '/regions')).status).toBe(503)
      socket.destroy()
      await until(async () => (await api.call('GET', '/regions')).status === 200)
    }
    await api.stop()
  })

  test('a stream that is open is not work under way', async () => {
    const api = await startApi({ MAX_IN_FLIGHT: '1' })
    await api.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = api.app.server.address() as { port: number }
    const headers = { authorization: `Bearer ${api.token}`, accept: 'text/event-stream' }
    const ended = new AbortController()
    for (let i = 0; i < 3; i++) {
      const stream = await fetch(`http://127.0.0.1:${port}/api/events`, { headers, signal: ended.signal })
      expect(stream.status).toBe(200)
    }
    expect((await api.call('GET', '/regions')).status).toBe(200)
    ended.abort()
    await api.stop()
  })
})
