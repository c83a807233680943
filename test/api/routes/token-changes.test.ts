// PATCH /tokens/{id}: a name, an earlier end, fewer scopes and projects, and never more.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { readStream } from '../../helpers/stream.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.listen()
  for (const name of ['one', 'two', 'three']) await api.newProject(name)
})
afterAll(() => api.stop())

type Made = { id: string; token: string; expiresAt: string | null }
const make = async (body: object, token = api.token): Promise<Made> => {
  const answer = await api.call('POST', '/tokens', { token, body: { name: 'made', ...body } })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}
const patch = (id: string, body: object, token = api.token, headers = {}) =>
  api.call('PATCH', `/tokens/${id}`, { token, body, headers })
const read = async ({ id }: Made) => (await api.call('GET', `/tokens/${id}`)).body
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()

describe('a token', () => {
  test('gets another name, an earlier end, fewer scopes and projects, in effect at once, with an event', async () => {
    const made = await make({ scopes: ['projects:write', 'tickets:read'], projects: ['one', 'two'] })
    expect((await api.call('GET', '/projects/two', { token: made.token })).status).toBe(200)
    const expiresAt = inHours(1)
    const changed = await patch(made.id, { name: 'new', expiresAt, scopes: ['projects:read'], projects: ['one'] })
    expect(changed.status).toBe(200)
    expect(changed.body).toMatchObject({ name: 'new', expiresAt, scopes: ['projects:read'], projects: ['one'] })
    expect(changed.text).not.toContain(made.token)
    // It is being used meanwhile.
    expect({ ...changed.body, lastUsedAt: null }).toEqual({ ...(await read(made)), lastUsedAt: null })
    expect((await api.call('GET', '/projects/two', { token: made.token })).status).toBe(404)
    const body = { framework: 'vue' }
    expect((await api.call('PATCH', '/projects/one', { token: made.token, body })).status).toBe(403)
    const { body: log } = await api.call('GET', `/events?subject=${made.id}&type=token.updated`)
    expect(log.events).toMatchObject([{ data: { name: 'new', scopes: ['projects:read'] } }])
  })

  test('never gets more than it has, and each field that would is named', async () => {
    const made = await make({ scopes: ['projects:read'], projects: ['one'], expiresAt: inHours(2) })
    const { status, body } = await patch(made.id, {
      scopes: ['projects:read', 'projects:write', '*'],
      projects: ['one', 'two'],
      expiresAt: inHours(3),
    })
    expect(status).toBe(422)
    expect(body.errors.map((one: { pointer: string; code: string }) => [one.pointer, one.code])).toEqual([
      ['#/scopes/1', 'widens'],
      ['#/scopes/2', 'widens'],
      ['#/projects/1', 'widens'],
      ['#/expiresAt', 'widens'],
    ])
    for (const bad of [
      {},
      { scopes: [] },
      { projects: [] },
      { projects: null },
      { expiresAt: null },
      { expiresAt: inHours(-1) },
      { scopes: ['operator'] },
      { projects: ['nothing'] },
      { name: '' },
      { prefix: 'x' },
    ]) {
      expect((await patch(made.id, bad)).status, JSON.stringify(bad)).toBe(422)
    }
    expect(await read(made)).toMatchObject({ scopes: ['projects:read'], projects: ['one'], expiresAt: made.expiresAt })
  })

  test('is changed by one that has all that it has, of its own account', async () => {
    const made = await make({ scopes: ['projects:write'] })
    const weak = await make({ scopes: ['tokens:write'] })
    expect((await patch(made.id, { name: 'x' }, weak.token)).body).toMatchObject({
      code: 'insufficient_scope',
      requiredScope: 'projects:write',
    })
    const narrowed = await make({ projects: ['one'] })
    expect((await patch(made.id, { name: 'x' }, narrowed.token)).status).toBeGreaterThanOrEqual(403)
    const { token } = await api.newAccount()
    expect((await patch(made.id, { name: 'x' }, token)).status).toBe(404)
    expect((await patch(made.id, { name: 'x' }, api.token, { 'if-match': '"old"' })).status).toBe(412)
    expect((await read(made)).name).toBe('made')
  })

  test('takes from those that it made what it has no more, and revokes those that are left with nothing', async () => {
    const parent = await make({ projects: ['one', 'two'] })
    const all = await make({}, parent.token)
    const two = await make({ projects: ['two'] }, parent.token)
    const tickets = await make({ scopes: ['tickets:read'] }, all.token)
    const writer = await make({ scopes: ['projects:write', 'tokens:write'], expiresAt: inHours(9) }, all.token)
    const grandchild = await make({ scopes: ['projects:write'] }, writer.token)
    const expiresAt = inHours(1)
    await patch(parent.id, { scopes: ['projects:read', 'deployments:write'], projects: ['one'], expiresAt })
    expect(await read(all)).toMatchObject({
      scopes: ['projects:read', 'deployments:write'],
      projects: ['one'],
      expiresAt,
    })
    for (const left of [writer, grandchild]) {
      expect(await read(left)).toMatchObject({ scopes: ['projects:read'], projects: ['one'], expiresAt })
    }
    for (const gone of [two, tickets]) {
      expect((await api.call('GET', '/projects', { token: gone.token })).body.code).toBe('token_revoked')
    }
    const { body } = await api.call('GET', `/events?subject=${two.id},${writer.id}&type=token.*`)
    const types = body.events.map(({ type }: { type: string }) => type).sort()
    expect(types).toEqual(['token.created', 'token.created', 'token.revoked', 'token.updated'])
    expect((await read(parent)).scopes).toEqual(['projects:read', 'deployments:write'])
  })

  test('made while its parent is narrowed has no more than that', async () => {
    for (let round = 0; round < 5; round++) {
      const parent = await make({ scopes: ['projects:write', 'tokens:write'] })
      const [made] = await Promise.all([
        api.call('POST', '/tokens', { token: parent.token, body: { name: 'child' } }),
        patch(parent.id, { scopes: ['projects:read'] }),
      ])
      if (made.status === 201) expect(await read(made.body)).toMatchObject({ scopes: ['projects:read'] })
    }
  })

  test('that is narrowed has its streams ended', async () => {
    const made = await make({ scopes: ['events:read', 'projects:read'] })
    const stream = await readStream(api, '/events', { authorization: `Bearer ${made.token}` })
    await patch(made.id, { scopes: ['projects:read'] })
    let frame = await stream.next()
    while (frame) frame = await stream.next()
    expect((await api.call('GET', '/events', { token: made.token })).status).toBe(403)
  })
})

test('the version of a token does not change by its use', async () => {
  const made = await make({ scopes: ['projects:read'] })
  const { etag } = (await api.call('GET', `/tokens/${made.id}`)).headers
  await api.db.token.update({ where: { id: made.id }, data: { lastUsedAt: new Date() } })
  const changed = await patch(made.id, { name: 'busy' }, api.token, { 'if-match': etag })
  expect([changed.status, changed.body.name]).toEqual([200, 'busy'])
  expect((await patch(made.id, { name: 'lost' }, api.token, { 'if-match': etag })).status).toBe(412)
  // Nor for who reads it again: a copy is current until something else of the token changes.
  await api.db.token.update({ where: { id: made.id }, data: { lastUsedAt: new Date() } })
  const headers = { 'if-none-match': changed.headers.etag! }
  expect((await api.call('GET', `/tokens/${made.id}`, { headers })).status).toBe(304)
  const removed = { headers: { 'if-match': changed.headers.etag! } }
  expect((await api.call('DELETE', `/tokens/${made.id}`, removed)).status).toBe(204)
})

test('every field that is refused is named at once, whether its form or its meaning is bad', async () => {
  const made = await make({ scopes: ['projects:read'], projects: ['one'], expiresAt: inHours(1) })
  const named = async (body: object) =>
    (await patch(made.id, body)).body.errors.map(({ pointer, code }: Record<string, string>) => [pointer, code])
  const meaning = { scopes: ['projects:read', 'dns:write'], projects: ['none', 'one', 'two'], expiresAt: inHours(2) }
  const refused = [
    ['#/scopes/1', 'widens'],
    ['#/projects/0', 'not_found'],
    ['#/projects/2', 'widens'],
    ['#/expiresAt', 'widens'],
  ]
  expect(await named(meaning)).toEqual(refused)
  expect(await named({ name: '', ...meaning })).toEqual([['#/name', 'too_short'], ...refused])
  const mixed = { scopes: ['all', 'dns:write'], projects: [5, 'two'], expiresAt: '2020-01-01T00:00:00Z' }
  expect(await named(mixed)).toEqual([
    ['#/scopes/0', 'not_allowed'],
    ['#/scopes/1', 'widens'],
    ['#/projects/0', 'wrong_type'],
    ['#/projects/1', 'widens'],
    ['#/expiresAt', 'in_the_past'],
  ])
})
