import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson, openBrowser } from '../../helpers/people.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const invite = (token: string, body: object) => api.call('POST', '/members/invitations', { token, body })
const newAccount = async () => {
  const { accountId } = await api.newAccount()
  const owner = await newPerson(api, { accountId })
  return { accountId, owner, token: await owner.browser.token() }
}
const eventsOf = async (token: string, type: string) =>
  (await api.call('GET', `/events?type=${type}`, { token })).body.events

describe('an invitation', () => {
  test('shows its link once, and makes whoever is invited a member with that role', async () => {
    const { accountId, token, owner } = await newAccount()
    const made = await invite(token, { email: 'Grace@Example.com', role: 'viewer' })
    expect(made).toMatchObject({ status: 201, body: { email: 'grace@example.com', invitedBy: owner.user.id } })
    const { url, secret, id } = made.body
    expect(url).toBe(`${api.config.baseUrl}/setup#${secret}`)
    const listed = await api.call('GET', '/members/invitations', { token })
    expect(listed.body.invitations).toHaveLength(1)
    expect(listed.text).not.toContain(secret)
    expect((await api.call('GET', `/members/invitations/${id}`, { token })).text).not.toContain(secret)

    const browser = openBrowser(api)
    expect((await browser.ask('POST', '/setup/look', { code: secret })).body).toMatchObject({
      kind: 'invitation',
      email: 'grace@example.com',
      role: 'viewer',
    })
    const joined = await browser.ask('POST', '/setup', { code: secret, name: 'Grace' })
    expect(joined).toMatchObject({ status: 200, body: { user: { name: 'Grace', operator: false } } })
    expect((await api.call('GET', '/members/invitations', { token })).body.invitations).toEqual([])
    const userId = joined.body.user.id
    expect((await api.call('GET', `/members/${userId}`, { token })).body).toMatchObject({ role: 'viewer', userId })
    expect(
      (await eventsOf(token, 'member.*')).map(({ type, actor, subject }: never) => [type, actor, subject]),
    ).toEqual([
      ['member.joined', userId, userId],
      ['member.invited', owner.user.id, id],
      ['member.joined', owner.user.id, owner.user.id],
    ])
    expect(await eventsOf(token, 'session.created')).toContainEqual(
      expect.objectContaining({ actor: userId, subject: userId, data: expect.objectContaining({ method: 'link' }) }),
    )
    expect((await eventsOf(token, 'session.created')).some((event: object) => 'address' in event)).toBe(false)
    expect(await openBrowser(api).ask('POST', '/setup', { code: secret })).toMatchObject({ status: 410 })
    expect(await api.db.membership.count({ where: { accountId } })).toBe(2)
  })

  test('does not sign in a person who is known already, but lets them join when they are signed in', async () => {
    const victim = await newPerson(api, { accountId: (await api.newAccount()).accountId })
    const { accountId, token } = await newAccount()
    const { secret: code } = (await invite(token, { email: victim.user.email, role: 'viewer' })).body
    expect(await openBrowser(api).ask('POST', '/setup', { code })).toMatchObject({
      status: 409,
      body: { code: 'sign_in_first' },
    })
    // Nor whoever is signed in as somebody else.
    const other = await newPerson(api)
    expect(await other.browser.ask('POST', '/setup', { code })).toMatchObject({ status: 409 })
    expect(await victim.browser.ask('POST', '/setup', { code })).toMatchObject({ status: 200 })
    expect(await api.db.membership.count({ where: { accountId, userId: victim.user.id } })).toBe(1)
  })

  test('is accepted by one of two at once, and by nobody after it was taken back or replaced, or has expired', async () => {
    const { accountId, token } = await newAccount()
    const codeOf = async (email: string) => (await invite(token, { email, role: 'viewer' })).body
    const raced = await codeOf('raced@example.com')
    const tries = [1, 2].map(() => openBrowser(api).ask('POST', '/setup', { code: raced.secret }))
    expect((await Promise.all(tries)).map(({ status }) => status).sort()).toEqual([200, 410])

    const gone = await codeOf('gone@example.com')
    expect((await api.call('DELETE', `/members/invitations/${gone.id}`, { token })).status).toBe(204)
    const replaced = await codeOf('again@example.com')
    await codeOf('again@example.com')
    const old = await codeOf('old@example.com')
    await api.db.invitation.update({ where: { id: old.id }, data: { expiresAt: new Date(0) } })
    for (const { secret: code } of [gone, replaced, old]) {
      expect((await openBrowser(api).ask('POST', '/setup', { code })).body.code).toBe('link_not_valid')
    }
    expect(await api.db.membership.count({ where: { accountId } })).toBe(2)
  })

  test('is refused for a member, and for projects with a role that sees all of them', async () => {
    const { token, owner } = await newAccount()
    expect((await invite(token, { email: owner.user.email, role: 'viewer' })).body.code).toBe('member_exists')
    const refused = await invite(token, { email: 'a@example.com', role: 'admin', projects: ['hello'] })
    expect(refused.body.errors).toMatchObject([{ pointer: '#/projects', code: 'not_allowed' }])
    const unknown = await invite(token, { email: 'a@example.com', role: 'viewer', projects: ['nothing'] })
    expect(unknown.body.errors).toMatchObject([{ pointer: '#/projects/0', code: 'not_found' }])
  })

  test('refuses addresses that are none, and names that change what stands beside them', async () => {
    const { token } = await newAccount()
    const bad = ['a', 'a@', '@b', 'a b@c.de', 'a@b\r\nBcc: x@y.z', 'a@b,c@d.e', '"<a>"@b.de', 'ä@b.de', 'a@-b.de']
    for (const email of bad) expect((await invite(token, { email, role: 'viewer' })).status, email).toBe(422)
    const { secret: code } = (await invite(token, { email: 'fine@example.com', role: 'viewer' })).body
    for (const name of ['', ' ', 'a\nb', 'a\u202eb', 'a\u0000b', ' a', 'x'.repeat(101)]) {
      expect((await openBrowser(api).ask('POST', '/setup', { code, name })).status, name).toBe(422)
    }
    const name = '<script>alert(1)</script>'
    const joined = await openBrowser(api).ask('POST', '/setup', { code, name })
    expect(joined.body.user.name).toBe(name)
  })
})
