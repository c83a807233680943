// JSON bodies as they are written: no key twice, however it is spelt, and the right word for what is wrong.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const post = (path: string, body: string, type = 'application/json') =>
  api.call('POST', path, { body, headers: { 'content-type': type } })

describe('a key that appears twice', () => {
  test.each([
    ['{"name":"a","name":"b","repo":"a/b"}', '"name"'],
    ['{"name":"a","\\u006eame":"b","repo":"a/b"}', '"\\u006eame"'],
    ['{"name":"a","repo":"a/b","settings":{"hsts":true,"hsts" : false}}', '"hsts"'],
    ['{"name":"a","repo":"a/b","settings":[{"a":{}},{"b":1,"a":"}\\"","b":2}]}', '"b"'],
    ['{"__proto__":1,"__proto__":2}', '"__proto__"'],
    ['{"":1,"":2}', '""'],
  ])('%s is refused by name', async (body, key) => {
    const answer = await post('/projects', body)
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_json'])
    expect(answer.body.detail).toBe(`The body is not valid JSON: ${key} appears twice in one object.`)
  })

  test.each([
    '{"subject":"{\\"a\\":1,\\"a\\":2}","message":"x"}',
    '{"subject":"back\\\\","message":"\\\\\\":\\\\"}',
    '{ "subject"\n:\t"a: \\"b\\": c", "message":"x" }',
  ])('the same words inside of text, or in two objects, are not: %s', async (body) => {
    expect((await post('/tickets', body)).status).toBe(201)
    const settings = '{"name":"n1","repo":"a/b","settings":{"buildCommand":"a"}}'
    expect((await post('/projects', settings)).status).not.toBe(400)
  })
})

test('a byte order mark is passed over, also when the body is compared with that of an earlier request', async () => {
  const send = (body: string) =>
    api.call('POST', '/tickets', { body, headers: { 'content-type': 'application/json', 'idempotency-key': 'marked' } })
  expect((await send('\ufeff{"subject":"a","message":"b"}')).status).toBe(201)
  expect((await send('{"subject":"a","message":"b"}')).headers['idempotency-replayed']).toBe('true')
})

describe('another media type', () => {
  test('is told which one is wanted, and which one came', async () => {
    expect((await post('/projects', 'x', 'text/plain')).body).toMatchObject({
      status: 415,
      detail: 'Send the body as application/json; this one is text/plain.',
    })
    const none = await api.app.inject({
      method: 'POST',
      url: '/api/projects',
      headers: { authorization: `Bearer ${api.token}` },
      payload: Buffer.from('{}'),
    })
    expect(none.json().detail).toBe('Send the body as application/json; this one has no Content-Type.')
    const zone = await api.call('PUT', '/dns/x.example.com/zone', {
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    expect(zone.body.detail).toBe('Send the body as text/dns or text/plain; this one is application/json.')
  })
})

describe('a path that does not exist', () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is 404, whatever its body is', async (method) => {
    for (const [body, type] of [
      ['{"a":1}', 'application/json'],
      ['{', 'application/json'],
      ['x', 'text/plain'],
    ]) {
      const answer = await api.call(method, '/nothing', { body: body!, headers: { 'content-type': type! } })
      expect([answer.status, answer.body.code]).toEqual([404, 'route_not_found'])
      expect((await api.call(method, '/nothing', { body: body!, token: null })).status).toBe(401)
      const outside = await api.app.inject({
        method: method as 'PUT',
        url: '/nothing',
        payload: body!,
        headers: { 'content-type': type! },
      })
      expect([outside.statusCode, outside.json().code]).toEqual([404, 'route_not_found'])
    }
  })
})
