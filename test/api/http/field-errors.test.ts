// A body that is refused: every bad field is named once, in the order of the schema, whether its form or its meaning is bad.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
const zone = 'fields.example.com'
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('site')
  await api.call('POST', '/domains', { body: { project: 'site', name: zone } })
})
afterAll(() => api.stop())

const named = ({ body }: Answer) =>
  (body.errors ?? []).map(({ pointer, code }: Record<string, string>) => [pointer, code])

const post = (path: string, body: unknown) => api.call('POST', path, { body })

describe('form and meaning together', () => {
  test('a record with a bad ttl and a bad value', async () => {
    const answer = await post(`/dns/${zone}/records`, { type: 'MX', name: '@', value: 'mail', ttl: 5 })
    expect(answer).toMatchObject({ status: 422, body: { code: 'validation_failed', detail: 'Invalid: value, ttl.' } })
    expect(named(answer)).toEqual([
      ['#/value', 'bad_format'],
      ['#/ttl', 'out_of_range'],
    ])
  })

  test('a change of a record, checked by the type it has', async () => {
    const { body: record } = await post(`/dns/${zone}/records`, { type: 'A', name: 'a', value: '192.0.2.1' })
    const path = `/dns/${zone}/records/${record.id}`
    const answer = await api.call('PATCH', path, { body: { name: 'a..b', value: 'mail', ttl: '300', foo: 1 } })
    expect(named(answer)).toEqual([
      ['#/name', 'bad_format'],
      ['#/value', 'bad_format'],
      ['#/ttl', 'wrong_type'],
      ['#/foo', 'unknown_field'],
    ])
  })

  test('a batch, by index', async () => {
    const { body: record } = await post(`/dns/${zone}/records`, { type: 'A', name: 'b', value: '192.0.2.1' })
    const answer = await post(`/dns/${zone}/records/batch`, {
      create: [
        { type: 'A', name: 'x', value: '192.0.2.1', ttl: 5 },
        { type: 'A', name: 'x', value: 'nonsense' },
        { type: 'MX', name: 'x..y', value: '10' },
        { type: 'NS', name: '@', value: 'ns1.example.net' },
        'text',
      ],
      update: [
        { id: record.id, value: 'mail', ttl: 1 },
        { id: 'rec_none', ttl: 60 },
      ],
      delete: [17, 'rec_gone'],
    })
    expect(answer.status).toBe(422)
    expect(named(answer)).toEqual([
      ['#/delete/0', 'wrong_type'],
      ['#/delete/1', 'not_found'],
      ['#/update/0/value', 'bad_format'],
      ['#/update/0/ttl', 'out_of_range'],
      ['#/update/1/id', 'not_found'],
      ['#/create/0/ttl', 'out_of_range'],
      ['#/create/1/value', 'bad_format'],
      ['#/create/2/name', 'bad_format'],
      ['#/create/2/value', 'bad_format'],
      ['#/create/3/name', 'ns_at_apex'],
      ['#/create/4', 'wrong_type'],
    ])
  })

  test.each([
    [
      '/webhooks',
      { url: 'http://10.0.0.1/', events: ['no.such', 5], active: 'yes' },
      ['url', 'events/0', 'events/1', 'active'],
    ],
    [
      '/projects',
      { name: 'UPPER', repo: 'a/b', settings: { productionBranch: 'a..b', instances: 0 } },
      ['name', 'settings/productionBranch', 'settings/instances'],
    ],
    ['/domains', { project: 'none', name: 'com', x: 1 }, ['project', 'name', 'x']],
    ['/deployments', { project: 'site', ref: 'no-such-branch', production: 1 }, ['ref', 'production']],
    ['/deployments', { project: 'none', production: 1 }, ['project', 'production']],
    ['/tickets', { subject: '', message: 'm', related: 'dpl_none' }, ['subject', 'related']],
    [
      '/tokens',
      { name: '', projects: ['none', 'site', 'gone'], expiresAt: '2020-01-01T00:00:00Z' },
      ['name', 'projects/0', 'projects/2', 'expiresAt'],
    ],
  ])('%s %j', async (path, body, fields) => {
    const answer = await post(path, body)
    expect(answer.status).toBe(422)
    expect(named(answer).map(([pointer]: string[]) => pointer!.slice(2))).toEqual(fields)
  })

  test('a change of a domain', async () => {
    const body = { project: 'none', redirectTo: 'gone.example.com', redirectStatus: 302, x: 1 }
    const answer = await api.call('PATCH', `/domains/${zone}`, { body })
    expect(named(answer)).toEqual([
      ['#/project', 'not_found'],
      ['#/redirectTo', 'not_found'],
      ['#/redirectStatus', 'not_allowed'],
      ['#/x', 'unknown_field'],
    ])
  })

  test('rules of meaning are all told, too, where every form is right', async () => {
    const body = { name: 'ci', projects: ['none', 'gone'], expiresAt: '2020-01-01T00:00:00Z' }
    const answer = await post('/tokens', body)
    expect(named(answer)).toEqual([
      ['#/projects/0', 'not_found'],
      ['#/projects/1', 'not_found'],
      ['#/expiresAt', 'in_the_past'],
    ])
  })

  test('text that cannot be stored is named beside the rest', async () => {
    const answer = await api.call('POST', '/projects', {
      body: '{"repo":"a\\u0000b","name":"UPPER","settings":{"buildCommand":"\\ud800","hsts":1}}',
      headers: { 'content-type': 'application/json' },
    })
    expect(named(answer)).toEqual([
      ['#/name', 'bad_format'],
      ['#/repo', 'bad_characters'],
      ['#/settings/buildCommand', 'bad_characters'],
      ['#/settings/hsts', 'wrong_type'],
    ])
  })

  test('what the path names comes first: a zone that is not there is 404, whatever the body is', async () => {
    const other = await api.newAccount()
    for (const body of [
      { ttl: 5 },
      { type: 'A', name: 'x', value: 'bad' },
      { type: 'A', name: 'x', value: 'bad', ttl: 5 },
    ]) {
      const answer = await api.call('POST', `/dns/${zone}/records`, { body, token: other.token })
      expect([answer.status, answer.body.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('bounds', () => {
  test('a list that is too long is one error, beside those of other fields', async () => {
    const create = Array.from({ length: 2_000 }, () => ({}))
    const answer = await post(`/dns/${zone}/records/batch`, { create, delete: [1], more: true })
    expect(named(answer).slice(0, 2)).toEqual([
      ['#/delete/0', 'wrong_type'],
      ['#/create', 'too_long'],
    ])
    expect(answer.body.errors).toHaveLength(100)
  })

  test('a thousand bad operations are a hundred errors, the first ones, each field once', async () => {
    const create = Array.from({ length: 1_000 }, () => ({ type: 'MX', name: '@', value: 'mail' }))
    const answer = await post(`/dns/${zone}/records/batch`, { create })
    const pointers = named(answer).map(([pointer]: string[]) => pointer)
    expect(pointers).toEqual(Array.from({ length: 100 }, (_, index) => `#/create/${index}/value`))
    expect(answer.body.detail).toMatch(/create\.99\.value and 900 more\.$/)
  })

  test('a field that breaks two rules is named once', async () => {
    const comment = `${'x'.repeat(300)}\n`
    const answer = await post(`/dns/${zone}/records`, { type: 'A', name: 'x', value: '192.0.2.1', comment })
    expect(named(answer)).toHaveLength(1)
  })
})

describe('names that are not known', () => {
  test.each([
    ['/projects?lmit=5', 'is not a supported parameter; did you mean limit?'],
    ['/projects/site?expand=all', 'is not a supported parameter; there are none'],
    ['/domains/fields.example.com?wiat=1', 'is not a supported parameter; did you mean wait?'],
    ['/dns/fields.example.com/zone?x=1', 'is not a supported parameter; there are none'],
    ['/account?full=1', 'is not a supported parameter; there are none'],
    ['/projects?zzzzzzzz=1', expect.stringMatching(/^is not a supported parameter; use limit, cursor, order/)],
  ])('GET %s is refused', async (path, detail) => {
    const answer = await api.call('GET', path)
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ in: 'query', code: 'unknown_field', detail }] } })
  })

  test('a field of a body gets the nearest name, too', async () => {
    const answer = await post('/projects', { name: 'x', repo: 'a/b', setings: {} })
    expect(answer.body.errors).toMatchObject([
      { pointer: '#/setings', detail: 'is not a supported field; did you mean settings?' },
    ])
  })
})
