// What browsers need: CORS for pages of other origins, compressed answers, and a reference that is not loaded twice.
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { encodingFor } from '../../../src/api/http/responses/compression.ts'
import { loadConfig } from '../../../src/config.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let listed: TestApi
beforeAll(async () => {
  ;[api, listed] = await Promise.all([
    startApi({ MAX_STREAMS: '5' }),
    startApi({ CORS_ORIGINS: 'https://app.example.com, http://localhost:5173' }),
  ])
})
afterAll(() => Promise.all([api.stop(), listed.stop()]))

const origin = 'https://app.example.com'
const preflight = (app: TestApi, from: string, path = '/api/projects') =>
  app.app.inject({
    method: 'OPTIONS',
    url: path,
    headers: {
      origin: from,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'authorization',
    },
  })

describe('a page of another origin', () => {
  test('asks without a token whether it may, and may', async () => {
    for (const path of ['/api/projects', '/api/dns/x.example/zone', '/api/nothing']) {
      const { statusCode, headers, body } = await preflight(api, origin, path)
      expect([statusCode, body]).toEqual([204, ''])
      expect(headers['access-control-allow-origin']).toBe('*')
      expect(headers['access-control-allow-methods']).toContain('PATCH')
      for (const name of [
        'Authorization',
        'Content-Range',
        'Content-Type',
        'Idempotency-Key',
        'If-Match',
        'Last-Event-ID',
      ])
        expect(headers['access-control-allow-headers']).toContain(name)
      expect(headers['access-control-allow-credentials']).toBeUndefined()
    }
  })

  test('reads answers and their headers, refusals too', async () => {
    for (const token of [api.token, null]) {
      const { headers } = await api.call('GET', '/projects', { headers: { origin }, token })
      expect(headers['access-control-allow-origin']).toBe('*')
      expect(headers['access-control-expose-headers']).toMatch(
        /Content-Range.*ETag.*Link.*Location.*RateLimit.*Retry-After.*Upload-Offset.*X-Request-Id/,
      )
    }
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['PUT', '/projects'],
    ] as const) {
      const { headers } = await api.call(method, path, { headers: { origin } })
      expect(headers['access-control-allow-origin']).toBe('*')
    }
  })

  test('reads that its address is malformed, behind a preflight like every other', async () => {
    for (const path of ['/api/%ff', '/api/projects/%zz']) {
      const asked = await preflight(listed, origin, path)
      expect([asked.statusCode, asked.headers['access-control-allow-origin']]).toEqual([204, origin])
      expect(asked.headers['access-control-allow-methods']).toContain('PATCH')
      for (const [app, from, allowed] of [
        [api, origin, '*'],
        [api, undefined, undefined],
        [listed, origin, origin],
        [listed, 'https://evil.example', undefined],
      ] as const) {
        const refused = await app.app.inject({ url: path, headers: { ...(from && { origin: from }) } })
        expect([refused.statusCode, refused.headers['access-control-allow-origin']]).toEqual([400, allowed])
        expect(refused.headers['access-control-expose-headers'] ?? '').toMatch(allowed ? /X-Request-Id/ : /^$/)
      }
    }
  })

  test('reads that its headers are too large, unless origins are listed: its own is not known then', async () => {
    for (const [app, allowed] of [
      [api, '*'],
      [listed, null],
    ] as const) {
      const refused = await fetch(`${await app.listen()}/api/projects`, { headers: { origin, x: 'x'.repeat(20_000) } })
      expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([431, allowed])
      expect(refused.headers.get('access-control-expose-headers') ?? '').toMatch(allowed ? /X-Request-Id/ : /^$/)
      expect(await refused.json()).toMatchObject({ code: 'headers_too_large' })
    }
  })

  test('reads a stream', async () => {
    const aborted = new AbortController()
    await api.listen()
    const { port } = api.app.server.address() as { port: number }
    const answer = await fetch(`http://127.0.0.1:${port}/api/events`, {
      headers: {
        authorization: `Bearer ${api.token}`,
        accept: 'text/event-stream',
        origin,
        'accept-encoding': 'gzip, br',
      },
      signal: aborted.signal,
    })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('content-encoding')).toBeNull()
    // What is written at the start comes at once: nothing holds it back to compress it.
    const { value } = await answer.body!.getReader().read()
    expect(Buffer.from(value!).toString()).toContain('retry: 1000')
    aborted.abort()
  })

  test('OPTIONS that is not a preflight is refused as before', async () => {
    const { status, headers } = await api.call('OPTIONS', '/projects', { headers: { origin } })
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD, POST'])
  })

  test('where origins are listed, the others are not told that they may', async () => {
    const allowed = await preflight(listed, origin)
    expect([allowed.statusCode, allowed.headers['access-control-allow-origin']]).toEqual([204, origin])
    expect(allowed.headers.vary).toBe('Origin')
    for (const other of [
      'https://evil.example',
      'https://app.example.com.evil.example',
      'null',
      'http://app.example.com',
    ]) {
      const refused = await preflight(listed, other)
      expect(refused.statusCode).toBe(401)
      expect(refused.headers['access-control-allow-origin']).toBeUndefined()
      const { headers } = await listed.call('GET', '/projects', { headers: { origin: other } })
      expect([headers['access-control-allow-origin'], headers.vary]).toEqual([undefined, 'Origin'])
    }
  })

  test('the list is of origins, or none', () => {
    expect(loadConfig({}).corsOrigins).toEqual(['*'])
    expect(loadConfig({ CORS_ORIGINS: 'none' }).corsOrigins).toEqual([])
    for (const bad of ['app.example.com', 'https://app.example.com/', 'https://a.example/x', 'ftp://a.example', 'null'])
      expect(() => loadConfig({ CORS_ORIGINS: bad })).toThrow(/CORS_ORIGINS/)
  })
})

const get = (url: string, headers: Record<string, string> = {}) => api.app.inject({ url, headers })

describe('what is the same for everybody', () => {
  const unpack = { br: brotliDecompressSync, gzip: gunzipSync }

  test.each([
    ['/openapi.json', 'br'],
    ['/openapi.yaml', 'gzip'],
    ['/docs/', 'gzip'],
    ['/docs/js/scalar.js', 'br'],
  ] as const)('%s is compressed, and kept: %s', async (url, encoding) => {
    const plain = await get(url)
    const packed = await get(url, { 'accept-encoding': encoding })
    expect([plain.headers['content-encoding'], packed.headers['content-encoding']]).toEqual([undefined, encoding])
    expect(unpack[encoding](packed.rawPayload).equals(plain.rawPayload)).toBe(true)
    expect(packed.headers.etag).not.toBe(plain.headers.etag)
    for (const answer of [plain, packed]) {
      expect(answer.headers.vary).toBe('Accept-Encoding')
      expect(answer.headers['cache-control']).toMatch(/^public, (no-cache|max-age=31536000, immutable)$/)
      const again = await get(url, { 'accept-encoding': encoding, 'if-none-match': String(answer.headers.etag) })
      expect([again.statusCode, again.body]).toEqual([304, ''])
    }
    expect((await get(url, { 'if-none-match': '"other"' })).statusCode).toBe(200)
  })

  test('the page names its script by hash, which is why that may be kept for ever', async () => {
    const [, address] = /src="(js\/scalar\.js\?v=[\w-]+)"/.exec((await get('/docs/')).body) ?? []
    const script = await get(`/docs/${address}`)
    expect([script.statusCode, script.headers['cache-control']]).toEqual([200, 'public, max-age=31536000, immutable'])
  })

  test('GET / says what is where', async () => {
    const { body } = await get('/')
    expect(JSON.parse(body)).toMatchObject({
      name: 'Berth',
      docs: '/docs',
      openapi: '/openapi.yaml',
      apiVersion: '2026-11-19',
    })
    const page = await get('/', { accept: 'text/html,application/xhtml+xml' })
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(page.body).toContain('href="/docs"')
  })
})

describe('answers under /api', () => {
  test('are compressed where they are large and read, and are the same', async () => {
    for (let i = 0; i < 20; i++)
      await api.call('POST', '/tickets', { body: { subject: `question ${i}`, message: 'x' } })
    const read = (headers: Record<string, string>) =>
      get('/api/tickets', { authorization: `Bearer ${api.token}`, ...headers })
    const [plain, br, gz] = [
      await read({}),
      await read({ 'accept-encoding': 'br' }),
      await read({ 'accept-encoding': 'gzip' }),
    ]
    expect(brotliDecompressSync(br.rawPayload).toString()).toBe(plain.body)
    expect(gunzipSync(gz.rawPayload).toString()).toBe(plain.body)
    expect(br.rawPayload.length).toBeLessThan(plain.rawPayload.length / 3)
    expect(Number(gz.headers['content-length'])).toBe(gz.rawPayload.length)
    for (const answer of [plain, br, gz]) expect(answer.headers.vary).toBe('Accept-Encoding')
    const head = await api.app.inject({
      method: 'HEAD',
      url: '/api/tickets',
      headers: { authorization: `Bearer ${api.token}`, 'accept-encoding': 'br' },
    })
    expect([head.statusCode, head.headers['content-encoding']]).toEqual([200, undefined])
  })

  test('are not where they are small, a refusal, or hold a secret', async () => {
    const headers = { 'accept-encoding': 'br, gzip' }
    const name = 'x'.repeat(90)
    const made = await api.call('POST', '/tokens', { body: { name, scopes: ['tokens:read'] }, headers })
    expect([made.status, made.headers['content-encoding']]).toEqual([201, undefined])
    const small = await api.call('GET', `/tokens/${made.body.id}`, { headers })
    expect([small.status, small.headers['content-encoding']]).toEqual([200, undefined])
    const refused = await api.call('POST', '/projects', {
      body: Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`f${i}`, 1])),
      headers,
    })
    expect([refused.status, refused.headers['content-encoding']]).toEqual([422, undefined])
  })

  test('an ETag of a compressed answer stands for the same version', async () => {
    await api.newProject('zoned')
    await api.call('POST', '/domains', { body: { project: 'zoned', name: 'zoned.example.com' } })
    const create = Array.from({ length: 60 }, (_, i) => ({ type: 'A', name: `host-${i}`, value: '192.0.2.1' }))
    await api.call('POST', '/dns/zoned.example.com/records/batch', { body: { create } })
    const read = (headers: Record<string, string>) =>
      get('/api/dns/zoned.example.com/zone', { authorization: `Bearer ${api.token}`, ...headers })
    const [plain, br] = [await read({}), await read({ 'accept-encoding': 'br' })]
    expect(br.headers['content-encoding']).toBe('br')
    expect(br.headers.etag).toBe(String(plain.headers.etag).replace(/"$/, '.br"'))
    expect((await read({ 'if-none-match': String(br.headers.etag) })).statusCode).toBe(304)
    const body = plain.body.replace('host-0', 'host-0-moved')
    const put = await api.call('PUT', '/dns/zoned.example.com/zone', {
      body,
      headers: { 'content-type': 'text/dns', 'if-match': String(br.headers.etag) },
    })
    expect(put).toMatchObject({ status: 200, body: { created: 1, deleted: 1 } })
  })

  test.each([
    [undefined, null],
    ['', null],
    ['identity', null],
    ['gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0, gzip', 'gzip'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['*', 'br'],
    ['*;q=0', null],
    ['gzip;q=nonsense', null],
    ['identity;q=1, gzip;q=0.5', null],
    ['GZIP', 'gzip'],
  ] as const)('Accept-Encoding: %s → %s', (accepted, encoding) => {
    expect(encodingFor(accepted)).toBe(encoding)
  })
})
