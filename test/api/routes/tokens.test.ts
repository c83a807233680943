import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { isWellFormedToken, newToken } from '../../../src/platform/secrets/secrets.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { sharedApi, startApi, type TestApi } from '../../helpers/api.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
  await api.newProject('one')
  await api.newProject('two')
})
afterEach(() => vi.useRealTimers())
afterAll(() => api.stop())

const make = async (body: object, token?: string) =>
  await api.call('POST', '/tokens', { body: { name: 't', ...body }, ...(token && { token }) })

describe('a token', () => {
  test('has a prefix, 30 random characters and a checksum that finds a typo without a look-up', () => {
    const token = newToken()
    expect(token).toMatch(/^brt_[0-9A-Za-z]{36}$/)
    expect(isWellFormedToken(token)).toBe(true)
    for (let i = 4; i < token.length; i++) {
      const typo = token.slice(0, i) + (token[i] === 'x' ? 'y' : 'x') + token.slice(i + 1)
      expect(isWellFormedToken(typo)).toBe(false)
    }
  })

  test('shows its secret once, in the answer that made it, and is stored as a hash', async () => {
    const { status, body, headers } = await make({ scopes: ['projects:read'] })
    expect(status).toBe(201)
    expect(isWellFormedToken(body.token)).toBe(true)
    expect(body.prefix).toBe(body.token.slice(0, 8))
    expect(headers.location).toBe(`/api/tokens/${body.id}`)
    const list = await api.call('GET', '/tokens')
    expect(list.text).not.toContain(body.token)
    expect((await api.call('GET', `/tokens/${body.id}`)).text).not.toContain(body.token)
    const everything = JSON.stringify([
      await api.db.token.findMany(),
      await api.db.event.findMany({ omit: { seq: true } }),
    ])
    expect(everything).not.toContain(body.token)
  })

  test('can read itself with any scope', async () => {
    const { body } = await make({ scopes: ['dns:read'] })
    const current = await api.call('GET', '/tokens/current', { token: body.token })
    expect(current.body).toMatchObject({ id: body.id, scopes: ['dns:read'], projects: null })
    expect((await api.call('GET', '/tokens', { token: body.token })).body).toMatchObject({
      code: 'insufficient_scope',
      requiredScope: 'tokens:read',
    })
  })

  test('never grants more than it has', async () => {
    const { body: limited } = await make({ scopes: ['tokens:write', 'dns:write'] })
    expect((await make({ scopes: ['dns:read'] }, limited.token)).status).toBe(201)
    for (const scope of ['projects:read', '*', 'operator']) {
      expect(await make({ scopes: [scope] }, limited.token)).toMatchObject({
        status: 403,
        body: { code: 'insufficient_scope', requiredScope: scope },
      })
    }
    expect((await make({ scopes: ['operator'] })).status).toBe(403)
    expect((await make({}, limited.token)).body.scopes).toEqual(['tokens:write', 'dns:write'])
  })

  test('narrowed to projects sees those alone, makes only tokens as narrow, and no projects', async () => {
    const { body: narrow } = await make({ projects: ['one'] })
    expect(narrow.projects).toEqual(['one'])
    const { token } = narrow
    const list = await api.call('GET', '/projects', { token })
    expect(list.body.projects.map((project: { name: string }) => project.name)).toEqual(['one'])
    expect((await api.call('GET', '/projects/two', { token })).status).toBe(404)
    expect((await api.call('POST', '/deployments', { token, body: { project: 'two' } })).status).toBe(404)
    expect((await api.call('POST', '/projects', { token, body: { name: 'x', repo: 'a/b' } })).body.code).toBe(
      'token_limited_to_projects',
    )
    expect((await make({ projects: ['two'] }, token)).body.errors[0].pointer).toBe('#/projects/0')
    expect((await make({}, token)).body.projects).toEqual(['one'])
  })

  test('stays narrow when its project is deleted and another takes the name', async () => {
    await api.newProject('brief')
    const { body: narrow } = await make({ projects: ['brief'] })
    await api.call('DELETE', '/projects/brief')
    await api.call('POST', '/projects', { body: { name: 'brief', repo: 'a/b' } })
    expect((await api.call('GET', '/projects', { token: narrow.token })).body.projects).toEqual([])
  })

  test('ends when revoked, at once, and says so to its holder', async () => {
    const { body } = await make({})
    expect((await api.call('GET', '/projects', { token: body.token })).status).toBe(200)
    expect((await api.call('DELETE', `/tokens/${body.id}`)).status).toBe(204)
    const refused = await api.call('GET', '/projects', { token: body.token })
    expect(refused).toMatchObject({ status: 401, body: { code: 'token_revoked' } })
    expect(refused.headers['www-authenticate']).toBe('Bearer realm="berth", error="invalid_token"')
    expect((await api.call('DELETE', `/tokens/${body.id}`)).status).toBe(404)
  })

  test('revoked on another replica ends here, because it is told', async () => {
    // Otherwise it would be looked up again after a minute, and nobody waits so long here.
    const { body } = await make({})
    expect((await api.call('GET', '/projects', { token: body.token })).status).toBe(200)
    await api.db.$transaction(async (db) => {
      await db.token.update({ where: { id: body.id }, data: { revokedAt: new Date() } })
      const event = { id: 'evt_other', type: 'token.revoked', accountId: api.accountId, actor: 'x', subject: body.id }
      await db.event.create({ data: { ...event, data: {}, createdAt: new Date() } })
    })
    await until(async () => (await api.call('GET', '/projects', { token: body.token })).status === 401)
  })

  test('expires at its time', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { body } = await make({ expiresAt: expiresAt.toISOString() })
    vi.useFakeTimers({ toFake: ['Date'], now: expiresAt.getTime() - 1 })
    expect((await api.call('GET', '/projects', { token: body.token })).status).toBe(200)
    vi.setSystemTime(expiresAt)
    expect((await api.call('GET', '/projects', { token: body.token })).body.code).toBe('token_expired')
    expect((await make({ expiresAt: '2020-01-01T00:00:00Z' })).body.errors[0].pointer).toBe('#/expiresAt')
    expect((await make({ expiresAt: 'tomorrow' })).status).toBe(422)
  })

  test('rotates to a new secret with the same access; the old one works for the overlap only', async () => {
    const { body: old } = await make({ scopes: ['projects:read'], projects: ['one'] })
    const rotated = await api.call('POST', `/tokens/${old.id}/rotate`, { body: {} })
    expect(rotated).toMatchObject({ status: 201, body: { scopes: ['projects:read'], projects: ['one'] } })
    expect((await api.call('GET', '/projects', { token: old.token })).body.code).toBe('token_revoked')
    expect((await api.call('GET', '/projects', { token: rotated.body.token })).status).toBe(200)
    const again = await api.call('POST', `/tokens/${rotated.body.id}/rotate`, { body: { overlapSeconds: 60 } })
    for (const { token } of [rotated.body, again.body]) {
      expect((await api.call('GET', '/projects', { token })).status).toBe(200)
    }
  })

  test('notes when it was last used', async () => {
    const { body } = await make({})
    await api.call('GET', '/projects', { token: body.token })
    const mine = await startApi()
    await mine.call('GET', '/projects')
    await mine.deps.tokenDirectory.close()
    const [row] = await mine.db.token.findMany()
    expect(row!.lastUsedAt).not.toBeNull()
    await mine.stop()
  })
})

describe('a token made by another', () => {
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
  const works = async (token: string) => (await api.call('GET', '/tokens/current', { token })).status === 200
  const revoke = (id: string, token?: string) => api.call('DELETE', `/tokens/${id}`, token ? { token } : {})
  const rotate = (id: string, body: object, token?: string) =>
    api.call('POST', `/tokens/${id}/rotate`, { body, ...(token && { token }) })

  test('ends no later than its maker: with it if nothing is said, earlier if wanted', async () => {
    const expiresAt = inHours(2)
    const { body: maker } = await make({ expiresAt })
    const { body: silent } = await make({}, maker.token)
    expect(silent).toMatchObject({ expiresAt, parentId: maker.id })
    expect((await make({ expiresAt }, maker.token)).body.expiresAt).toBe(expiresAt)
    const sooner = inHours(1)
    expect((await make({ expiresAt: sooner }, maker.token)).body.expiresAt).toBe(sooner)
    const justLater = new Date(new Date(expiresAt).getTime() + 1).toISOString()
    for (const later of [null, justLater, inHours(3), '9999-12-31T23:59:59Z']) {
      const refused = await make({ expiresAt: later }, maker.token)
      expect(refused).toMatchObject({
        status: 422,
        body: { errors: [{ pointer: '#/expiresAt', code: 'outlives_parent' }] },
      })
      expect(refused.body.errors[0].detail).toContain(expiresAt)
    }
    expect((await make({ expiresAt: null })).body.expiresAt).toBeNull()
  })

  test('cannot be given more time by rotation, its own or that of another', async () => {
    const expiresAt = inHours(2)
    const { body: brief } = await make({ expiresAt })
    const { body: lasting } = await make({ scopes: ['dns:read'] })
    const own = await rotate(brief.id, { overlapSeconds: 60 }, brief.token)
    expect(own).toMatchObject({ status: 201, body: { expiresAt } })
    const again = await rotate(brief.id, {}, brief.token)
    expect(new Date(again.body.expiresAt).getTime()).toBeLessThan(Date.now() + 61_000)
    const other = await rotate(lasting.id, {}, own.body.token)
    expect(other).toMatchObject({ status: 403, body: { code: 'token_outlives_caller' } })
    expect(await works(lasting.token)).toBe(true)
  })

  test('is revoked with its maker, at once, and so is what it made; others live on', async () => {
    const { body: maker } = await make({})
    const { body: child } = await make({}, maker.token)
    const { body: grandchild } = await make({ scopes: ['dns:read'] }, child.token)
    const { body: sibling } = await make({})
    for (const { token } of [child, grandchild]) expect(await works(token)).toBe(true)
    expect((await revoke(maker.id)).status).toBe(204)
    for (const { token } of [maker, child, grandchild]) {
      const refused = await api.call('GET', '/tokens/current', { token })
      expect(refused).toMatchObject({ status: 401, body: { code: 'token_revoked' } })
    }
    expect(await works(sibling.token)).toBe(true)
    const subjects = [maker, child, grandchild].map(({ id }) => id)
    const events = await api.db.event.findMany({ where: { type: 'token.revoked', subject: { in: subjects } } })
    expect(events.map(({ subject }) => subject).sort()).toEqual(subjects.sort())
  })

  test('goes over to the new one when its maker is rotated, unless it is to be revoked', async () => {
    const { body: maker } = await make({})
    const { body: child } = await make({}, maker.token)
    const { body: next } = await rotate(maker.id, {})
    expect(next.parentId).toBe(maker.parentId)
    expect((await api.call('GET', '/tokens/current', { token: child.token })).body.parentId).toBe(next.id)
    const { body: last } = await rotate(next.id, { revokeChildren: true, overlapSeconds: 60 }, next.token)
    expect(await works(child.token)).toBe(false)
    expect([await works(next.token), await works(last.token)]).toEqual([true, true])
  })

  test('that is rotated by one that did not make it ends with that one too', async () => {
    const [{ body: thief }, { body: victim }] = [await make({}), await make({ scopes: ['dns:read'] })]
    const { body: child } = await make({ scopes: ['dns:read', 'tokens:write'] })
    const { body: stolen } = await rotate(victim.id, {}, thief.token)
    expect(stolen.parentId).toBe(thief.id)
    // It may also rotate one above itself, and still nothing goes in a circle.
    const { body: own } = await make({}, thief.token)
    const { body: above } = await rotate(thief.id, {}, own.token)
    expect(above.parentId).toBe(own.id)
    const { body: below } = await make({}, above.token)
    const refused = await rotate(above.id, { revokeChildren: true }, below.token)
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/revokeChildren' }] } })
    expect((await revoke(own.id)).status).toBe(204)
    for (const { token } of [above, below]) expect(await works(token)).toBe(false)
    expect(await works(child.token)).toBe(true)
  })

  test('is not left behind when it is made while its maker’s maker is revoked', async () => {
    for (let round = 0; round < 5; round++) {
      const { body: first } = await make({})
      const { body: second } = await make({}, first.token)
      const making = Array.from({ length: 6 }, () => make({}, second.token))
      const [revoked, ...made] = await Promise.all([revoke(first.id), ...making])
      expect(revoked.status).toBe(204)
      for (const { status } of made) expect([201, 401]).toContain(status)
      expect(await api.db.token.count({ where: { parentId: second.id, revokedAt: null } })).toBe(0)
    }
  })
})

test('a token that made more than a thousand is revoked with all of them', async () => {
  const { body: maker } = await make({})
  await api.db.$executeRaw`
    INSERT INTO token (id, account_id, name, scopes, project_ids, prefix, hash, created_at, parent_id)
    SELECT 'tok_many_' || i, ${api.accountId}, 't', '{*}', '{}', 'x', decode(md5(i::text), 'hex'), now(), ${maker.id}
    FROM generate_series(1, 1500) i`
  expect((await api.call('DELETE', `/tokens/${maker.id}`)).status).toBe(204)
  expect(await api.db.token.count({ where: { parentId: maker.id, revokedAt: null } })).toBe(0)
  const told = { type: 'token.revoked', OR: [{ subject: maker.id }, { subject: { startsWith: 'tok_many_' } }] }
  expect(await api.db.event.count({ where: told })).toBe(1_000)
  expect(await api.db.event.count({ where: { type: 'token.revoked', subject: maker.id } })).toBe(1)
})

test('an account with as many tokens as it may have can still rotate one at once', async () => {
  const { accountId, token } = await api.newAccount()
  await api.db.account.update({ where: { id: accountId }, data: { limits: { tokens: 2 } } })
  const { body: made } = await make({ scopes: ['dns:read'] }, token)
  expect((await make({}, token)).body.code).toBe('quota_exceeded')
  const rotated = await api.call('POST', `/tokens/${made.id}/rotate`, { token, body: {} })
  expect(rotated.status, rotated.text).toBe(201)
  const overlapping = await api.call('POST', `/tokens/${rotated.body.id}/rotate`, {
    token,
    body: { overlapSeconds: 9 },
  })
  expect(overlapping).toMatchObject({ status: 403, body: { code: 'quota_exceeded', limit: 'tokens' } })
})

describe('ending a token', () => {
  test.each([
    [['tokens:write'], ['*'], '*'],
    [['tokens:write'], ['tokens:write', 'dns:read'], 'dns:read'],
    [['tokens:write', 'dns:read'], ['dns:write'], 'dns:write'],
    [['*'], ['*', 'operator'], 'operator'],
  ])('takes its rights: %j can neither revoke nor rotate %j', async (held, scopes, requiredScope) => {
    const { accountId } = api
    const { body: caller } = await make({ scopes: held })
    const target = await insertToken(api.db, {
      accountId,
      name: 't',
      scopes: scopes as [],
      projectIds: [],
      expiresAt: null,
    })
    for (const [method, path] of [
      ['DELETE', `/tokens/${target.id}`],
      ['POST', `/tokens/${target.id}/rotate`],
    ] as const) {
      const refused = await api.call(method, path, { token: caller.token })
      expect(refused).toMatchObject({ status: 403, body: { code: 'insufficient_scope', requiredScope } })
    }
    expect((await api.call('GET', '/tokens/current', { token: target.secret })).status).toBe(200)
  })

  test('is done with as much and no more: of others, and of itself', async () => {
    const { body: caller } = await make({ scopes: ['tokens:write', 'dns:write'] })
    const { body: target } = await make({ scopes: ['dns:read', 'tokens:read'] })
    expect((await api.call('DELETE', `/tokens/${target.id}`, { token: caller.token })).status).toBe(204)
    expect((await api.call('DELETE', `/tokens/${caller.id}`, { token: caller.token })).status).toBe(204)
  })

  test('of a wider or another project is not possible with one narrowed to projects', async () => {
    const { body: narrow } = await make({ projects: ['one'] })
    for (const projects of [null, ['two'], ['one', 'two'], ['one']]) {
      const { body: target } = await make({ scopes: ['dns:read'], projects })
      for (const [method, path] of [
        ['DELETE', `/tokens/${target.id}`],
        ['POST', `/tokens/${target.id}/rotate`],
      ] as const) {
        expect((await api.call(method, path, { token: narrow.token })).status).toBe(404)
      }
    }
  })
})
