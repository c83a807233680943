// PATCH /domains/{name}: another project, and redirects, by their owner and by others.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  for (const name of ['one', 'two']) await api.newProject(name)
  for (const name of ['shop.io', 'www.shop.io', 'old.io']) await attach({ name })
})
afterAll(() => api.stop())

const attach = (body: object) => api.call('POST', '/domains', { body: { project: 'one', ...body } })
const patch = (name: string, body: unknown, headers = {}) => api.call('PATCH', `/domains/${name}`, { body, headers })
const narrowed = async (...projects: string[]) =>
  (await api.call('POST', '/tokens', { body: { name: 'n', projects } })).body.token as string
const events = async (subject: string, token = api.token) =>
  (await api.call('GET', `/events?subject=${subject}`, { token })).body.events as {
    type: string
    data: { project: string; redirectTo: string | null }
  }[]
const typesOf = async (subject: string, token?: string) => (await events(subject, token)).map(({ type }) => type)

describe('another project', () => {
  test('gets the domain as it is: zone, certificate and verification stay, and events tell both projects', async () => {
    await attach({ name: 'moves.io' })
    await api.call('POST', '/dns/moves.io/records', { body: { type: 'A', name: '@', value: '192.0.2.1' } })
    const certificate = { issuer: 'x', serial: 'y', notBefore: null, notAfter: null, sans: ['moves.io'] }
    await api.db.domain.updateMany({
      where: { name: 'moves.io' },
      data: {
        verified: true,
        verifiedAt: new Date(),
        method: 'txt',
        ssl: 'ACTIVE',
        certificate: { ...certificate, lastError: null, nextAttemptAt: null },
      },
    })
    const { body: before } = await api.call('GET', '/domains/moves.io')
    const records = (await api.call('GET', '/dns/moves.io/records')).body.records
    const [ofOne, ofTwo] = [await narrowed('one'), await narrowed('two')]
    const moved = await patch('moves.io', { project: 'two' })
    expect(moved.status).toBe(200)
    expect(moved.body).toEqual({ ...before, project: 'two' })
    expect((await api.call('GET', '/dns/moves.io/records')).body.records).toEqual(records)
    expect((await events('moves.io')).slice(0, 2)).toMatchObject([
      { type: 'domain.updated', data: { project: 'two' } },
      { type: 'domain.moved', data: { project: 'one' } },
    ])
    expect(await typesOf('moves.io', ofTwo)).toEqual(['domain.updated'])
    expect((await events('moves.io', ofOne)).every(({ data }) => data.project === 'one')).toBe(true)
    expect((await typesOf('moves.io', ofOne))[0]).toBe('domain.moved')
    expect((await api.call('GET', '/domains/moves.io', { token: ofOne })).status).toBe(404)
    // The project that it has left can be deleted, and the one that has it cannot.
    expect((await api.call('DELETE', '/projects/two')).body.code).toBe('project_has_domains')
    // Nothing changes, and nothing is told.
    const told = (await events('moves.io')).length
    expect((await patch('moves.io', { project: 'two' })).status).toBe(200)
    expect(await events('moves.io')).toHaveLength(told)
  })

  test('must be the token’s, as the one that has it', async () => {
    const stranger = await api.newAccount()
    await api.newProject('theirs', { token: stranger.token })
    const theirs = (await api.call('GET', '/projects/theirs', { token: stranger.token })).body.id
    for (const project of ['theirs', theirs, 'nothing']) expect((await patch('old.io', { project })).status).toBe(404)
    for (const [token, project] of [
      [await narrowed('one'), 'two'],
      [await narrowed('two'), 'two'],
      [stranger.token, 'theirs'],
    ] as const) {
      const answer = await api.call('PATCH', '/domains/old.io', { token, body: { project } })
      expect(answer.status).toBe(404)
    }
    expect((await api.call('GET', '/domains/old.io')).body.project).toBe('one')
    const both = await narrowed('one', 'two')
    expect((await api.call('PATCH', '/domains/old.io', { token: both, body: { project: 'two' } })).status).toBe(200)
  })

  test('is not deleted while a domain moves there', async () => {
    await api.newProject('brief')
    await attach({ name: 'race.io' })
    const [moved, deleted] = await Promise.all([
      patch('race.io', { project: 'brief' }),
      api.call('DELETE', '/projects/brief'),
    ])
    expect([
      [200, 409],
      [404, 204],
    ]).toContainEqual([moved.status, deleted.status])
  })

  test('is refused with 412 if the domain is not as the caller knows it', async () => {
    const { headers } = await api.call('GET', '/domains/old.io')
    expect((await patch('old.io', { project: 'one' }, { 'if-match': '"other"' })).status).toBe(412)
    const changed = await patch('old.io', { project: 'one' }, { 'if-match': headers.etag! })
    expect(changed.status).toBe(200)
    expect(changed.headers.etag).toBe((await api.call('GET', '/domains/old.io')).headers.etag)
  })
})

describe('a redirect', () => {
  test('leads to another domain of the account, with 308 unless it is told otherwise', async () => {
    expect((await patch('www.shop.io', { redirectTo: 'SHOP.io.' })).body).toMatchObject({
      redirectTo: 'shop.io',
      redirectStatus: 308,
    })
    expect((await patch('www.shop.io', { redirectStatus: 301 })).body).toMatchObject({ redirectStatus: 301 })
    expect((await api.call('GET', '/domains?search=www.shop')).body.domains).toMatchObject([{ redirectTo: 'shop.io' }])
    expect((await typesOf('www.shop.io'))[0]).toBe('domain.updated')
    expect((await patch('www.shop.io', { redirectTo: null })).body).toMatchObject({
      redirectTo: null,
      redirectStatus: null,
    })
    const made = await attach({ name: 'new.shop.io', redirectTo: 'shop.io', redirectStatus: 301 })
    expect(made).toMatchObject({ status: 201, body: { redirectTo: 'shop.io', redirectStatus: 301 } })
  })

  test('never makes a loop, nor a second step', async () => {
    const fault = async (name: string, body: object) => {
      const { status, body: problem } = await patch(name, body)
      return [status, problem.errors?.[0].pointer ?? problem.code, problem.errors?.[0].code]
    }
    expect(await fault('shop.io', { redirectTo: 'shop.io' })).toEqual([422, '#/redirectTo', 'redirect_loop'])
    expect(await fault('old.io', { redirectTo: 'new.shop.io' })).toEqual([422, '#/redirectTo', 'redirect_loop'])
    expect(await fault('shop.io', { redirectTo: 'old.io' })).toEqual([409, 'domain_has_redirects', undefined])
    expect((await api.call('DELETE', '/domains/shop.io')).body.code).toBe('domain_has_redirects')
    for (const redirectTo of ['nothing.io', '*.shop.io', 'a b', '127.0.0.1', 'https://shop.io', 'shop.io/x', '']) {
      expect((await fault('old.io', { redirectTo }))[0], redirectTo).toBe(422)
    }
    expect(await fault('old.io', { redirectStatus: 301 })).toEqual([422, '#/redirectStatus', 'no_redirect'])
    for (const redirectStatus of [302, '301', null]) {
      expect((await fault('old.io', { redirectTo: 'shop.io', redirectStatus }))[0]).toBe(422)
    }
    expect((await patch('old.io', {})).status).toBe(422)
  })

  test('leads to nothing of another account, nor of a project that the token may not see', async () => {
    const stranger = await api.newAccount()
    await api.newProject('far', { token: stranger.token })
    const body = { project: 'far', name: 'far.io' }
    await api.call('POST', '/domains', { token: stranger.token, body })
    expect((await patch('old.io', { redirectTo: 'far.io' })).body.errors).toMatchObject([{ code: 'not_found' }])
    await attach({ name: 'hidden.io', project: 'two' })
    const token = await narrowed('one')
    const answer = await api.call('PATCH', '/domains/old.io', { token, body: { redirectTo: 'hidden.io' } })
    expect(answer.body.errors).toMatchObject([{ code: 'not_found' }])
  })

  test('is given to one of two that are to redirect to each other', async () => {
    for (const name of ['a.io', 'b.io']) await attach({ name })
    for (let round = 0; round < 5; round++) {
      const both = await Promise.all([patch('a.io', { redirectTo: 'b.io' }), patch('b.io', { redirectTo: 'a.io' })])
      expect(both.map(({ status }) => status).sort()).toEqual([200, expect.any(Number)])
      const left = await api.db.domain.count({ where: { name: { in: ['a.io', 'b.io'] }, redirectId: { not: null } } })
      expect(left).toBe(1)
      for (const name of ['a.io', 'b.io']) await patch(name, { redirectTo: null })
    }
  })
})

test('a token of other projects is not told which domains redirect to one of its own', async () => {
  await attach({ name: 'target.io', project: 'two' })
  await attach({ name: 'unseen.io', redirectTo: 'target.io' })
  const token = await narrowed('two')
  const removed = await api.call('DELETE', '/domains/target.io', { token })
  expect(removed).toMatchObject({ status: 409, body: { code: 'domain_has_redirects' } })
  const redirected = await api.call('PATCH', '/domains/target.io', { token, body: { redirectTo: 'target.io' } })
  for (const { text } of [removed, redirected]) expect(text).not.toContain('unseen')
  expect((await api.call('DELETE', '/domains/target.io')).body.detail).toBe(
    'Other domains redirect to target.io: unseen.io.',
  )
})

test('a new domain is refused with every bad field, its redirection among them', async () => {
  const named = async (body: object) =>
    (await attach(body)).body.errors.map(({ pointer, code }: Record<string, string>) => [pointer, code])
  expect(await named({ name: 'a..io', redirectTo: 'none.io' })).toEqual([
    ['#/name', 'bad_format'],
    ['#/redirectTo', 'not_found'],
  ])
  expect(await named({ project: 5, name: 'new.io', redirectTo: '*.shop.io', redirectStatus: 302 })).toEqual([
    ['#/project', 'wrong_type'],
    ['#/redirectTo', 'bad_format'],
    ['#/redirectStatus', 'not_allowed'],
  ])
  expect(await named({ project: 5, name: 'new.io', redirectTo: 'New.io' })).toEqual([
    ['#/project', 'wrong_type'],
    ['#/redirectTo', 'redirect_loop'],
  ])
})
