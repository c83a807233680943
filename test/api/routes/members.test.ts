import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { roles } from '../../../src/services/people/roles.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson } from '../../helpers/people.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const invite = (token: string, body: object) => api.call('POST', '/members/invitations', { token, body })
const newAccount = async () => {
  const { accountId, token } = await api.newAccount()
  const owner = await newPerson(api, { accountId })
  return { accountId, key: token, owner, token: await owner.browser.token() }
}
const eventsOf = async (token: string, type: string) =>
  (await api.call('GET', `/events?type=${type}`, { token })).body.events

test('GET /roles shows what each role stands for to any token', async () => {
  const { body } = await api.call('GET', '/roles')
  expect(body.roles.map(({ name }: { name: string }) => name)).toEqual(['owner', 'admin', 'developer', 'viewer'])
  expect(body.roles[0].scopes).toEqual(['*'])
  expect(body.roles[3].scopes).toContain('members:read')
  expect(body.roles[3].scopes.every((scope: string) => scope.endsWith(':read'))).toBe(true)
})

describe('nobody gives more than they have', () => {
  test('an admin makes, changes and removes no owner', async () => {
    const { accountId, owner } = await newAccount()
    const admin = await newPerson(api, { accountId, role: 'admin' })
    const token = await admin.browser.token()
    const refused = [
      await invite(token, { email: 'o@example.com', role: 'owner' }),
      await api.call('PATCH', `/members/${owner.member.id}`, { token, body: { role: 'viewer' } }),
      await api.call('DELETE', `/members/${owner.member.id}`, { token }),
      await api.call('PATCH', `/members/${admin.member.id}`, { token, body: { role: 'owner' } }),
    ]
    for (const { status, body } of refused) expect([status, body.code]).toEqual([403, 'owner_required'])
    // Nor by a token of theirs, nor by one that they took over by a rotation.
    const made = await api.call('POST', '/tokens', { token, body: { name: 'mine' } })
    const keys = (await api.call('GET', '/tokens', { token })).body.tokens
    const key = keys.find(({ name }: { name: string }) => name === 'test key')
    const taken = await api.call('POST', `/tokens/${key.id}/rotate`, { token })
    for (const { secret } of [made.body, taken.body]) {
      const answer = await api.call('DELETE', `/members/${owner.member.id}`, { token: secret })
      expect(answer.body.code).toBe('owner_required')
    }
  })

  test('a token gives no role whose scopes it lacks', async () => {
    const { key } = await newAccount()
    const body = { name: 'people', scopes: ['members:write'] }
    const { secret } = (await api.call('POST', '/tokens', { token: key, body })).body
    expect(await invite(secret, { email: 'x@example.com', role: 'viewer' })).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope' },
    })
    const all = { name: 'people', scopes: ['members:write', ...roles.viewer.scopes] }
    const able = (await api.call('POST', '/tokens', { token: key, body: all })).body.secret
    expect((await invite(able, { email: 'x@example.com', role: 'viewer' })).status).toBe(201)
    expect((await invite(able, { email: 'y@example.com', role: 'admin' })).body.requiredScope).toBe('*')
  })

  test('developers and viewers see who is there at most, and those narrowed to projects do not', async () => {
    const { accountId, token: ownerToken } = await newAccount()
    const project = await api.newProject('narrow', { token: ownerToken })
    await api.newProject('hidden', { token: ownerToken })
    const viewer = await newPerson(api, { accountId, role: 'viewer' })
    const narrowed = await newPerson(api, { accountId, role: 'developer', projectIds: [project.id] })
    const token = await viewer.browser.token()
    expect((await api.call('GET', '/members', { token })).body.members).toHaveLength(3)
    expect((await invite(token, { email: 'x@example.com', role: 'viewer' })).status).toBe(403)
    const own = await narrowed.browser.token()
    expect((await api.call('GET', '/members', { token: own })).status).toBe(403)
    const seen = (await api.call('GET', '/projects', { token: own })).body.projects
    expect(seen.map(({ name }: { name: string }) => name)).toEqual(['narrow'])
    expect((await api.call('GET', '/projects/hidden', { token: own })).status).toBe(404)
  })
})

describe('the last owner', () => {
  test('can neither leave nor take a lesser role', async () => {
    const { token, key, owner } = await newAccount()
    for (const by of [token, key]) {
      const { id } = owner.member
      expect((await api.call('DELETE', `/members/${id}`, { token: by })).body.code).toBe('last_owner')
      const lesser = await api.call('PATCH', `/members/${id}`, { token: by, body: { role: 'admin' } })
      expect(lesser).toMatchObject({ status: 409, body: { code: 'last_owner' } })
    }
  })

  test('is the only one who cannot leave by themselves', async () => {
    const { accountId, token, owner } = await newAccount()
    const viewer = await newPerson(api, { accountId, role: 'viewer' })
    const open = await viewer.browser.token()
    const leave = (person: typeof viewer) => person.browser.ask('DELETE', `/me/accounts/${accountId}`)
    expect((await leave(owner)).body.code).toBe('last_owner')
    expect((await leave(viewer)).status).toBe(204)
    expect((await api.call('GET', '/projects', { token: open })).status).toBe(401)
    expect((await leave(viewer)).status).toBe(404)
    const [event] = await eventsOf(token, 'member.removed')
    expect(event).toMatchObject({ actor: viewer.user.id, subject: viewer.user.id })
  })

  test('is left when two owners go at once', async () => {
    const { accountId, key, owner } = await newAccount()
    const second = await newPerson(api, { accountId })
    const leave = ({ member }: { member: { id: string } }) =>
      api.call('DELETE', `/members/${member.id}`, { token: key })
    const statuses = (await Promise.all([leave(owner), leave(second)])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([204, 409])
    expect(await api.db.membership.count({ where: { accountId, role: 'owner' } })).toBe(1)
  })
})

describe('a change of role', () => {
  test('narrows the console that is open and every token that was made with it', async () => {
    const { accountId, token } = await newAccount()
    const admin = await newPerson(api, { accountId, role: 'admin' })
    const console_ = await admin.browser.token()
    const { secret, id } = (await api.call('POST', '/tokens', { token: console_, body: { name: 'mine' } })).body
    await invite(console_, { email: 'late@example.com', role: 'admin' })
    const changed = await api.call('PATCH', `/members/${admin.member.id}`, { token, body: { role: 'viewer' } })
    expect(changed).toMatchObject({ status: 200, body: { role: 'viewer' } })
    for (const held of [console_, secret]) {
      expect((await api.call('GET', '/projects', { token: held })).status).toBe(200)
      const write = await api.call('POST', '/tickets', { token: held, body: { subject: 's', message: 'm' } })
      expect(write.body.code).toBe('insufficient_scope')
    }
    expect((await api.call('GET', `/tokens/${id}`, { token })).body.scopes).toEqual(roles.viewer.scopes)
    // What they could still give away is taken back too.
    expect((await api.call('GET', '/members/invitations', { token })).body.invitations).toEqual([])
    const told = await eventsOf(token, 'member.updated,token.updated')
    expect(told.map(({ type, subject }: { type: string; subject: string }) => [type, subject])).toEqual([
      ['member.updated', admin.user.id],
      ['token.updated', id],
    ])
  })

  test('to some projects, and back to a role that sees all', async () => {
    const { accountId, token } = await newAccount()
    await api.newProject('alone', { token })
    const { member, browser } = await newPerson(api, { accountId, role: 'developer' })
    const change = (body: object) => api.call('PATCH', `/members/${member.id}`, { token, body })
    const open = await browser.token()
    expect((await change({ projects: ['alone'] })).body.projects).toEqual(['alone'])
    expect((await api.call('GET', '/webhooks', { token: open })).body.code).toBe('token_limited_to_projects')
    expect((await browser.ask('POST', '/token', {})).body.projects).toEqual(['alone'])
    expect((await change({ role: 'viewer' })).body).toMatchObject({ role: 'viewer', projects: ['alone'] })
    expect((await change({ role: 'admin' })).body).toMatchObject({ role: 'admin', projects: null })
    expect((await browser.ask('POST', '/token', {})).body).toMatchObject({ scopes: ['*'], projects: null })
  })

  test('heeds If-Match', async () => {
    const { accountId, token } = await newAccount()
    const { member } = await newPerson(api, { accountId, role: 'viewer' })
    const path = `/members/${member.id}`
    const { etag } = (await api.call('GET', path, { token })).headers
    const headers = { 'if-match': etag! }
    expect((await api.call('PATCH', path, { token, headers, body: { role: 'developer' } })).status).toBe(200)
    expect((await api.call('DELETE', path, { token, headers })).status).toBe(412)
  })
})

test('a removed member has no token left, and their session has no account', async () => {
  const { accountId, token } = await newAccount()
  const { member, user, browser } = await newPerson(api, { accountId, role: 'admin' })
  const open = await browser.token()
  const { secret } = (await api.call('POST', '/tokens', { token: open, body: { name: 'mine' } })).body
  expect((await api.call('DELETE', `/members/${user.id}`, { token })).status).toBe(204)
  for (const held of [open, secret]) expect((await api.call('GET', '/projects', { token: held })).status).toBe(401)
  expect((await browser.ask('GET', '/me')).body.memberships).toEqual([])
  expect((await browser.ask('POST', '/token', {})).status).toBe(404)
  expect((await api.call('GET', `/members/${member.id}`, { token })).status).toBe(404)
})

test('members and open invitations are counted, within a quota', async () => {
  const { accountId, token } = await newAccount()
  await invite(token, { email: 'one@example.com', role: 'viewer' })
  await api.db.account.update({ where: { id: accountId }, data: { limits: { members: 2 } } })
  expect((await api.call('GET', '/account', { token })).body.usage.members).toBe(2)
  expect(await invite(token, { email: 'two@example.com', role: 'viewer' })).toMatchObject({
    status: 403,
    body: { code: 'quota_exceeded', limit: 'members', used: 2, max: 2 },
  })
})

describe('tokens of people', () => {
  test('say who made them, descend from the membership and outlive the console', async () => {
    const { accountId, key, token, owner } = await newAccount()
    const made = (await api.call('POST', '/tokens', { token, body: { name: 'ci', expiresAt: null } })).body
    expect(made).toMatchObject({ createdBy: owner.user.id, expiresAt: null, parentId: owner.member.tokenId })
    const second = (await api.call('POST', '/tokens', { token: made.secret, body: { name: 'child' } })).body
    expect(second).toMatchObject({ createdBy: owner.user.id, parentId: made.id })
    const again = (await api.call('POST', `/tokens/${second.id}/rotate`, { token: second.secret })).body
    expect(again.createdBy).toBe(owner.user.id)
    expect((await api.call('POST', '/tokens', { token: key, body: { name: 'x' } })).body.createdBy).toBeNull()
    const taken = await api.call('POST', `/tokens/${again.id}/rotate`, { token: key })
    expect(taken.body.createdBy).toBeNull()
    const told = (await eventsOf(token, 'token.created')).reverse()
    expect(told.slice(0, 2).map(({ actor }: { actor: string }) => actor)).toEqual([owner.user.id, made.id])
    const rotated = await api.call('POST', `/tokens/${made.id}/rotate`, { token })
    expect(rotated).toMatchObject({ status: 201, body: { createdBy: owner.user.id, expiresAt: null } })
    await owner.browser.ask('DELETE', '/session')
    expect((await api.call('GET', '/projects', { token: rotated.body.secret })).status).toBe(200)
    expect(await api.db.token.count({ where: { accountId, sessionId: { not: null } } })).toBe(0)
  })

  test('of the membership and the console are in no list, count for nothing, and cannot be reached', async () => {
    const { accountId, token, key, owner } = await newAccount()
    const before = (await api.call('GET', '/account', { token })).body.usage.tokens
    for (let count = 0; count < 3; count++) await owner.browser.token()
    expect((await api.call('GET', '/account', { token })).body.usage.tokens).toBe(before)
    const listed = (await api.call('GET', '/tokens', { token: key })).body.tokens
    expect(listed.map(({ name }: { name: string }) => name)).toEqual(['test key'])
    const current = await api.call('GET', '/tokens/current', { token })
    expect(current.body).toMatchObject({ createdBy: owner.user.id, scopes: ['*'] })
    for (const { id } of await api.db.token.findMany({ where: { accountId, hidden: true } })) {
      expect((await api.call('GET', `/tokens/${id}`, { token: key })).status).toBe(404)
      expect((await api.call('PATCH', `/tokens/${id}`, { token: key, body: { name: 'x' } })).status).toBe(404)
      expect((await api.call('DELETE', `/tokens/${id}`, { token: key })).status).toBe(404)
      expect((await api.call('POST', `/tokens/${id}/rotate`, { token: key })).status).toBe(404)
    }
    expect((await eventsOf(token, 'token.*')).length).toBe(0)
  })
})
