// The guard stands before everything under /api: unknown paths, wrong methods, and paths written to slip past it.
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { startApi } from '../helpers/api.ts'
import { operationsOf } from './operations.ts'
import { rawRequest } from './raw.ts'
import { createSend, expectSound, newAddress } from './send.ts'
import { createWorld } from './world.ts'

// Whoever is trusted to name the caller's address can give every request one of its own.
const api = await startApi({ TRUSTED_PROXIES: '127.0.0.1' })
afterAll(() => api.stop())
await api.listen()
const { port } = api.app.server.address() as AddressInfo
const send = createSend(api)
const world = await createWorld(api)
const operations = operationsOf(api.app)
const owner = await world.newOwner()

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

describe('a path that does not exist', () => {
  const paths = ['', '/', '/nothing', '/nothing/at/all', '/projects/a/b/c/d', '/v1/projects', '/%00', '/__proto__']

  test.each(paths)('/api%s is 401 without a token, and a 404 problem with one', async (path) => {
    for (const method of methods) {
      const anonymous = await send({ method, path })
      expect(anonymous.status).toBe(401)
      expect(anonymous.headers['www-authenticate']).toBe('Bearer realm="berth"')
      const known = await send({ method, path, token: owner.token })
      expect(known.status).toBe(404)
      expectSound(known, method)
      if (method !== 'HEAD') expect(known.body.code).toBe('route_not_found')
    }
  })

  test.each(['/nothing', '//', '/apix', '/errors/none', '/API', '/healthz/x', '/%00', '/.env', '/docs/../.env'])(
    '%s outside /api is a 404 problem',
    async (url) => {
      for (const method of methods) {
        const response = await api.app.inject({ method: method as 'GET', url, remoteAddress: newAddress() })
        expect(response.statusCode, `${method} ${response.body}`).toBe(404)
        expect(response.headers['content-type']).toMatch(/^application\/problem\+json/)
        expect(response.headers['x-request-id']).toBeDefined()
        if (method !== 'HEAD') expect(response.json().requestId).toBe(response.headers['x-request-id'])
      }
    },
  )
})

describe.each([...new Set(operations.map(({ template }) => template))])('%s', (template) => {
  const known = operations.filter((operation) => operation.template === template)
  const allowed = known.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).sort()
  const others = methods.filter((method) => !allowed.includes(method))

  test('answers 405 with the methods it takes, but only to those who may ask', async () => {
    const { path } = await world.targetOf({ ...known[0]!, body: null }, owner)
    const head = others.includes('HEAD') ? await rawRequest(port, 'HEAD', `/api${path}`) : null
    if (head) expect(head.text).toBe('')
    for (const method of others) {
      expect((await send({ method, path })).status).toBe(401)
      const answer = await send({ method, path, token: owner.token })
      expectSound(answer, method)
      expect(answer.status, `${method} ${answer.text}`).toBe(405)
      expect(answer.headers.allow!.split(', ').sort()).toEqual(allowed)
    }
  })
})

describe('a path written to slip past the guard', () => {
  const absolute = (path: string) => [
    `http://localhost${path}`,
    `http://127.0.0.1:${port}${path}`,
    `https://evil.test${path}`,
  ]
  const tricks = [
    ...['/api//projects', '//api/projects', '/api///projects', '/api/projects/', '/api/projects//', '/api/./projects'],
    ...['/API/projects', '/Api/projects', '/api/PROJECTS', '/api/%70rojects', '/%61pi/projects', '/api%2fprojects'],
    ...['/x/../api/projects', '/healthz/../api/projects', '/docs/../api/projects', '/api/../api/projects'],
    ...[
      '/api/projects/..',
      '/api/projects/%2e%2e',
      '/api/%2e/projects',
      '/api/projects/..%2f..',
      '/api/projects/.%2e/account',
    ],
    ...[
      '/api/projects;x',
      '/api;x/projects',
      '/api/projects%00',
      '/api/projects%20',
      '/api/projects%0a',
      '/api/projects%23',
    ],
    ...[
      '/api/projects?',
      '/api/projects??',
      '/api/projects?x=/healthz',
      '/api/projects#x',
      '/healthz?/../api/projects',
    ],
    ...['/api\\projects', '\\api\\projects', '/api/projects\\', '/healthz\\..\\api\\projects', '/api/%5cprojects'],
    ...['/api/%ff', '/api/%', '/api/%zz', '/api/projects/%c0%ae%c0%ae', '/api/\xff', '/api/%E0%A4%A'],
    ...[
      '/api/account',
      '/api/regions',
      '/api/tokens/current',
      '/api/deployments/states',
      '*',
      '/api/*',
      '/api/:project',
    ],
    ...absolute('/api/projects'),
    ...absolute('//api/projects'),
  ]
  // What is open to everybody may answer; nothing of it comes from /api.
  // `*` is the path /, which says what is where.
  const open = /^(\/(healthz|docs)|\*$)/

  test.each(tricks)('%j is never answered without a token', async (target) => {
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS']) {
      const { status, text } = await rawRequest(port, method, target)
      expect(status, `${method}: ${text}`).toBeGreaterThanOrEqual(open.test(target) ? 200 : 400)
      expect(status, `${method}: ${text}`).toBeLessThan(500)
      expect(text).not.toMatch(/"projects":|"nextCursor"|"usage"|"regions"/)
    }
  })

  test.each([
    { 'x-original-url': '/api/projects' },
    { 'x-rewrite-url': '/api/projects' },
    { 'x-http-method-override': 'GET' },
    { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.test' },
    { cookie: `token=${owner.token}; authorization=Bearer ${owner.token}` },
    { 'proxy-authorization': `Bearer ${owner.token}` },
    { 'x-api-key': owner.token },
    { upgrade: 'websocket', connection: 'upgrade' },
  ] as Record<string, string>[])('headers such as %j open nothing', async (headers) => {
    for (const path of ['/api/projects', '/healthz/api']) {
      const answer = await rawRequest(port, 'GET', path, { connection: 'close', ...headers }, (text) =>
        text.includes('}'),
      )
      expect([401, 404]).toContain(answer.status)
    }
  })

  test.each(['access_token', 'token', 'authorization', 'api_key'])(
    'a token in the query as %s opens nothing',
    async (name) => {
      const { status } = await rawRequest(port, 'GET', `/api/account?${name}=${owner.token}`)
      expect(status).toBe(401)
    },
  )

  test('two Authorization headers open nothing that the first alone would not', async () => {
    const bytes = await rawRequest(port, 'GET', '/api/account', {
      authorization: 'Bearer nothing',
      Authorization: `Bearer ${owner.token}`,
    })
    expect([400, 401]).toContain(bytes.status)
  })
})

test('too many bad tokens of one address are refused with 429, and a good token of that address never is', async () => {
  const from = async (remoteAddress: string, token: string) => {
    // An address that is not trusted cannot pass for another one either.
    const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': newAddress() }
    return api.app.inject({ url: '/api/account', headers, remoteAddress })
  }
  for (let n = 0; n < 60; n++) expect((await from('127.99.0.1', 'nothing')).statusCode).toBe(401)
  const late = await from('127.99.0.1', 'nothing')
  expect(late.statusCode).toBe(429)
  expect(Number(late.headers['retry-after'])).toBeGreaterThan(0)
  expect((await from('127.99.0.1', owner.token)).statusCode).toBe(200)
  expect((await from('127.99.0.2', 'nothing')).statusCode).toBe(401)
})

test('a token over plain HTTP from elsewhere is refused before it is looked at, and is never redirected', async () => {
  for (const token of [owner.token, 'nothing']) {
    const headers = { authorization: `Bearer ${token}` }
    const response = await api.app.inject({ url: '/api/account', headers, remoteAddress: '192.0.2.7' })
    expect(response.statusCode).toBe(403)
    expect(response.json().code).toBe('https_required')
    expect(response.headers.location).toBeUndefined()
  }
})
