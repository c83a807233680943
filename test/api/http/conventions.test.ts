import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statuses } from '../../../src/api/http/responses/problem.ts'
import { faults } from '../../../src/platform/errors.ts'
import { type Answer, type CallOptions, sharedApi, startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

describe('every answer', () => {
  test('carries a request id: the caller’s own if it is sound, a new one otherwise', async () => {
    const own = await api.call('GET', '/projects', { headers: { 'x-request-id': 'my-id_1.2' } })
    expect(own.headers['x-request-id']).toBe('my-id_1.2')
    for (const bad of ['has space', 'x'.repeat(129), 'a/b', 'é']) {
      const { headers } = await api.call('GET', '/projects', { headers: { 'x-request-id': bad } })
      expect(headers['x-request-id']).toMatch(/^req_[0-9a-z]{20}$/)
    }
  })

  test('names the version it used; an unknown one is refused', async () => {
    expect((await api.call('GET', '/projects')).headers['api-version']).toBe('2026-11-19')
    const { status, body } = await api.call('GET', '/projects', { headers: { 'api-version': '2020-01-01' } })
    expect([status, body.code]).toEqual([400, 'unknown_api_version'])
    expect(body.detail).toBe('There is no version 2020-01-01. Supported: 2026-11-19 and 2026-11-14.')
  })

  test('tells what is left of the rate limits of the token and of the account', async () => {
    for (const path of ['/projects', '/projects/nope', '/nothing']) {
      const { headers } = await api.call('GET', path)
      expect(headers['ratelimit-policy']).toBe('"token";q=1000000;w=60, "account";q=3000000;w=60')
      expect(headers.ratelimit).toMatch(/^"token";r=9\d{5};t=\d+, "account";r=2\d{6};t=\d+$/)
    }
  })
})

describe('every refusal', () => {
  const left = /^"(token|address)";r=\d+;t=\d+/
  const expectWhole = ({ status, headers }: Pick<Answer, 'status' | 'headers'>, expected: number, what: string) => {
    expect([what, status]).toEqual([what, expected])
    expect(headers, what).toMatchObject({
      'content-type': 'application/problem+json',
      'x-request-id': expect.any(String),
      'api-version': '2026-11-19',
      'ratelimit-policy': expect.stringMatching(/^"(token|address)";q=\d+;w=60/),
      ratelimit: expect.stringMatching(left),
    })
  }

  test.each<[string, number, string, string, CallOptions]>([
    ['malformed JSON', 400, 'POST', '/projects', { body: '{', headers: { 'content-type': 'application/json' } }],
    ['another version', 400, 'GET', '/projects', { headers: { 'api-version': '2020-01-01' } }],
    ['a bad cursor', 400, 'GET', '/projects?cursor=x', {}],
    ['no token', 401, 'GET', '/projects', { token: null }],
    ['an unknown token', 401, 'GET', '/projects', { token: 'brt_unknown' }],
    ['no token for an unknown path', 401, 'GET', '/nothing', { token: null }],
    ['a forwarded request over HTTP', 403, 'GET', '/projects', { headers: { 'x-forwarded-proto': 'http' } }],
    ['an unknown path', 404, 'GET', '/nothing', {}],
    ['somebody else’s', 404, 'GET', '/deployments/dpl_none', {}],
    ['another method', 405, 'DELETE', '/projects', {}],
    [
      'a condition that fails',
      412,
      'PATCH',
      '/projects/there',
      { body: { framework: 'hugo' }, headers: { 'if-match': '"x"' } },
    ],
    ['a large body', 413, 'POST', '/projects', { body: { name: 'x'.repeat(66_000) } }],
    ['another type', 415, 'POST', '/projects', { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ['a bad field', 422, 'POST', '/projects', { body: { name: '-' } }],
    ['an unknown parameter', 422, 'GET', '/projects?x=1', {}],
    ['a malformed address', 400, 'GET', '/projects/%zz', {}],
  ])('carries the version and the limits: %s', async (what, status, method, path, options) => {
    if (path.endsWith('/there')) await api.newProject('there').catch(() => {})
    if (status === 403) {
      const plain = { remoteAddress: '203.0.113.9', method: 'GET' as const, url: `/api${path}` }
      const { statusCode, headers } = await api.app.inject(plain)
      return expectWhole({ status: statusCode, headers: headers as Answer['headers'] }, status, what)
    }
    expectWhole(await api.call(method, path, options), status, what)
  })

  test('carries them when a limit is reached, the server is full, or the token lacks a scope', async () => {
    const small = await startApi({ RATE_LIMIT_PER_MINUTE: '1', MAX_IN_FLIGHT: '1' })
    const { body } = await small.call('POST', '/tokens', { body: { name: 'narrow', scopes: ['events:read'] } })
    expectWhole(await small.call('GET', '/projects'), 429, 'over the limit')
    expectWhole(await small.call('GET', '/projects', { token: body.secret }), 403, 'no scope')
    for (let count = 0; count < 60; count++) await small.call('GET', '/projects', { token: null })
    expectWhole(await small.call('GET', '/projects', { token: null }), 429, 'over the limit of the address')
    await small.stop()
  })

  test.each([
    ['a head that is no HTTP', 400, 'invalid_request', 'nonsense\r\n\r\n'],
    [
      'a head that is too large',
      431,
      'headers_too_large',
      `GET /api/projects HTTP/1.1\r\nx: ${'x'.repeat(20_000)}\r\n`,
    ],
    ['a malformed address', 400, 'invalid_request', 'GET /api/%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
  ])('carries them where no route is reached: %s', async (what, status, code, bytes) => {
    const text = await rawText(new URL(await api.listen()), bytes)
    const [head, body] = text.split('\r\n\r\n') as [string, string]
    const headers = Object.fromEntries(
      head
        .toLowerCase()
        .split('\r\n')
        .slice(1)
        .map((line) => line.split(': ')),
    )
    expectWhole({ status: Number(head.split(' ')[1]), headers }, status, what)
    expect(JSON.parse(body)).toMatchObject({ status, code, requestId: headers['x-request-id'] })
  })
})

/** What a server sends until it closes. */
function rawText({ hostname, port }: URL, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

describe('a problem', () => {
  test('is problem+json with type, title, status, detail, code and the request id', async () => {
    const { status, headers, body } = await api.call('GET', '/projects/nope')
    expect(status).toBe(404)
    expect(headers['content-type']).toBe('application/problem+json')
    expect(body).toEqual({
      type: 'http://localhost:3000/errors/not_found',
      title: faults.not_found.title,
      status: 404,
      detail: 'There is no project nope.',
      code: 'not_found',
      requestId: headers['x-request-id'],
    })
  })

  test('has a page at its type that tells cause and cure, for every code there is', async () => {
    for (const code of Object.keys(faults) as (keyof typeof faults)[]) {
      const page = await api.app.inject({ url: `/errors/${code}` })
      expect(page.statusCode).toBe(200)
      const json = await api.app.inject({ url: `/errors/${code}`, headers: { accept: 'application/json' } })
      expect(json.json()).toMatchObject({ code, status: statuses[code], cure: faults[code].cure })
    }
    expect((await api.app.inject({ url: '/errors/constructor' })).statusCode).toBe(404)
  })

  test('never leaks what broke inside', async () => {
    const broken = await startApi()
    broken.deps.repositories.resolve = async () => {
      throw new Error('secret path /etc/shadow')
    }
    await broken.newProject('p')
    const { status, text, body } = await broken.call('POST', '/deployments', { body: { project: 'p' } })
    expect([status, body.code]).toEqual([500, 'internal_error'])
    expect(text).not.toContain('shadow')
    await broken.stop()
  })
})

describe('a body', () => {
  const post = (body: string | Buffer, type: string | null = 'application/json') =>
    api.call('POST', '/projects', { body, headers: type === null ? {} : { 'content-type': type } })

  test.each([
    ['text', 'name=x', 'text/plain', 415, 'unsupported_media_type'],
    ['a form', 'name=x', 'application/x-www-form-urlencoded', 415, 'unsupported_media_type'],
    ['no content type', '{}', null, 415, 'unsupported_media_type'],
    ['broken JSON', '{"name":', 'application/json', 400, 'invalid_json'],
    ['nothing', '', 'application/json', 422, 'validation_failed'],
    ['an array', '[]', 'application/json', 422, 'validation_failed'],
    ['null', 'null', 'application/json', 422, 'validation_failed'],
    ['65 KiB', JSON.stringify({ name: 'x'.repeat(66_000) }), 'application/json', 413, 'body_too_large'],
  ])('of %s is refused in our words', async (_what, body, type, status, code) => {
    const answer = await post(body, type)
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })

  test('that is not UTF-8 is refused', async () => {
    const answer = await post(Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]))
    expect(answer.body.code).toBe('invalid_json')
  })

  test('with text that cannot be stored is refused, naming the field', async () => {
    for (const text of ['a\\u0000b', '\\ud800']) {
      const { body } = await post(`{"name":"x","repo":"a/b","settings":{"buildCommand":"${text}"}}`)
      expect(body.errors).toMatchObject([{ pointer: '#/settings/buildCommand', code: 'bad_characters' }])
    }
  })

  test('is not coerced: "true" is not a boolean', async () => {
    const { body } = await post('{"name":"x","repo":"a/b","settings":{"autoDeploy":"true"}}')
    expect(body.errors).toMatchObject([{ pointer: '#/settings/autoDeploy', code: 'wrong_type' }])
  })

  test('is not taken where none belongs', async () => {
    const { status } = await api.call('POST', '/deployments/dpl_x/cancel', { body: { force: true } })
    expect(status).toBe(422)
  })
})

describe('paths and methods', () => {
  test('an unknown path is 404 with a token and 401 without', async () => {
    expect((await api.call('GET', '/nothing')).body.code).toBe('route_not_found')
    expect((await api.call('GET', '/nothing', { token: null })).body.code).toBe('missing_token')
  })

  test('a known path answers other methods with 405 and Allow, after the guard', async () => {
    const { status, headers, body } = await api.call('DELETE', '/projects')
    expect([status, body.code]).toEqual([405, 'method_not_allowed'])
    expect(headers.allow).toBe('GET, HEAD, POST')
    expect((await api.call('PUT', '/projects/x', { body: { a: 1 } })).headers.allow).toBe('DELETE, GET, HEAD, PATCH')
    expect((await api.call('DELETE', '/projects', { token: null })).status).toBe(401)
  })

  test('a malformed address is 400', async () => {
    const { statusCode, headers } = await api.app.inject({ url: '/api/projects/%zz' })
    expect(statusCode).toBe(400)
    expect(headers['content-type']).toBe('application/problem+json')
  })

  test('health, reference and openapi need no token', async () => {
    for (const url of ['/healthz', '/readyz', '/docs/', '/openapi.yaml', '/openapi.json', '/errors']) {
      expect((await api.app.inject({ url })).statusCode).toBe(200)
    }
  })

  test('the reference page loads nothing from elsewhere', async () => {
    const { body } = await api.app.inject({ url: '/docs/' })
    expect(body).not.toMatch(/(src|href)\s*=\s*["'](https?:)?\/\//)
  })
})
