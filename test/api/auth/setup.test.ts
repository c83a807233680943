import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLink } from '../../../src/services/people/links.ts'
import { createUser } from '../../../src/services/people/users.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson, openBrowser } from '../../helpers/people.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

describe('the first link of an account', () => {
  test('makes whoever opens it first its owner and an operator, once', async () => {
    const { accountId } = await api.newAccount('first-owner')
    const code = await createLink(api.db, { accountId })
    const browser = openBrowser(api)
    expect(await browser.ask('POST', '/setup/look', { code })).toMatchObject({
      status: 200,
      body: { kind: 'first-owner', email: null, account: 'first-owner', role: 'owner' },
    })
    const opened = await browser.ask('POST', '/setup', { code, email: 'Ada@Example.com', name: 'Ada' })
    expect(opened).toMatchObject({
      status: 200,
      body: { user: { email: 'ada@example.com', name: 'Ada', operator: true }, session: { method: 'link' } },
    })
    expect(opened.headers['set-cookie']).toMatch(/^__Host-berth=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict/)
    const me = await browser.ask('GET', '/me')
    expect(me.body.memberships).toEqual([
      { account: { id: accountId, name: 'first-owner' }, role: 'owner', projects: null },
    ])
    const token = await browser.token()
    expect(await api.call('GET', '/account', { token })).toMatchObject({ status: 200, body: { id: accountId } })
    expect(await api.call('GET', '/operator/accounts', { token })).toMatchObject({ status: 200 })
    expect(await openBrowser(api).ask('POST', '/setup', { code, email: 'eve@example.com' })).toMatchObject({
      status: 410,
      body: { code: 'link_not_valid' },
    })
  })

  test('is opened by one of two who try at once', async () => {
    const { accountId } = await api.newAccount()
    const code = await createLink(api.db, { accountId })
    const other = await createLink(api.db, { accountId })
    const tries = [code, code, other, other].map((code, index) =>
      openBrowser(api).ask('POST', '/setup', { code, email: `racer-${index}@example.com` }),
    )
    const statuses = (await Promise.all(tries)).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, 410, 410, 410])
    expect(await api.db.membership.count({ where: { accountId } })).toBe(1)
  })
})

test('a person who signs out has no token left', async () => {
  const { browser } = await newPerson(api)
  const token = await browser.token()
  expect((await api.call('GET', '/projects', { token })).status).toBe(200)
  expect((await browser.ask('DELETE', '/session')).status).toBe(204)
  expect((await api.call('GET', '/projects', { token })).status).toBe(401)
  expect((await browser.ask('GET', '/me')).status).toBe(401)
})

test('a link for a known person works once, and not after its time', async () => {
  const user = await createUser(api.db, { email: 'known@example.com' })
  const code = await createLink(api.db, { userId: user.id })
  const old = await createLink(api.db, { userId: user.id })
  await api.db.signInLink.updateMany({ where: { userId: user.id, usedAt: null }, data: { expiresAt: new Date(0) } })
  expect((await openBrowser(api).ask('POST', '/setup', { code: old })).status).toBe(410)
  expect((await openBrowser(api).ask('POST', '/setup', { code })).status).toBe(410)
  const fresh = await createLink(api.db, { userId: user.id })
  expect((await openBrowser(api).ask('POST', '/setup', { code: fresh })).status).toBe(200)
})
