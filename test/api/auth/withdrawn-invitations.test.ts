// Invitations that somebody sent while they could: none lets anybody in once the sender could not send it any more.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lockAccount } from '../../../src/services/identity/statements.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson, openBrowser } from '../../helpers/people.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

type Sent = { id: string; secret: string }
let guests = 0

async function invite(token: string, role: string): Promise<Sent> {
  const body = { email: `guest-${++guests}@example.com`, role }
  const made = await api.call('POST', '/members/invitations', { token, body })
  expect(made.status, made.text).toBe(201)
  return made.body
}

const accept = async ({ secret: code }: Sent) => (await openBrowser(api).ask('POST', '/setup', { code })).status

async function newToken(token: string): Promise<{ id: string; secret: string }> {
  return (await api.call('POST', '/tokens', { token, body: { name: 'mine' } })).body
}

/** An account with the token of its owner, and another member with a console and a token. */
async function newAccount(role: 'owner' | 'admin') {
  const { accountId, token: key } = await api.newAccount()
  const owner = await newPerson(api, { accountId })
  const other = await newPerson(api, { accountId, role })
  const console_ = await other.browser.token()
  const path = `/members/${other.member.id}`
  return { key, token: await owner.browser.token(), path, console: console_, own: await newToken(console_) }
}

describe('an invitation ends', () => {
  test('as owner, when an owner who sent it becomes an admin; what an admin may send stays', async () => {
    const { token, path, console: console_, own } = await newAccount('owner')
    const owners = [await invite(console_, 'owner'), await invite(own.secret, 'owner')]
    const [kept] = [await invite(console_, 'admin')]
    await api.call('PATCH', path, { token, body: { role: 'admin' } })
    for (const sent of owners) expect(await accept(sent)).toBe(410)
    expect(await accept(kept)).toBe(200)
  })

  test.each([
    ['is removed', (path: string, token: string) => api.call('DELETE', path, { token })],
    ['becomes a viewer', (path: string, token: string) => api.call('PATCH', path, { token, body: { role: 'viewer' } })],
  ])('when who sent it %s, though by a token, its child, or one that was rotated since', async (_what, change) => {
    const { token, path, console: console_, own } = await newAccount('admin')
    const child = await newToken(own.secret)
    const sent = [
      await invite(console_, 'viewer'),
      await invite(own.secret, 'admin'),
      await invite(child.secret, 'admin'),
    ]
    await api.call('POST', `/tokens/${child.id}/rotate`, { token: own.secret })
    expect((await change(path, token)).status).toBeLessThan(300)
    for (const one of sent) expect(await accept(one)).toBe(410)
    expect((await api.call('GET', '/members/invitations', { token })).body.invitations).toEqual([])
  })

  test('with the token that sent it, or an ancestor, when it is revoked or narrowed', async () => {
    const { key, token } = await newAccount('admin')
    const [revoked, narrowed] = [await newToken(key), await newToken(key)]
    const sent = [
      await invite((await newToken(revoked.secret)).secret, 'viewer'),
      await invite(narrowed.secret, 'viewer'),
    ]
    const kept = [await invite(key, 'viewer'), await invite(token, 'viewer')]
    await api.call('DELETE', `/tokens/${revoked.id}`, { token: key })
    await api.call('PATCH', `/tokens/${narrowed.id}`, { token: key, body: { scopes: ['projects:read'] } })
    for (const one of sent) expect(await accept(one)).toBe(410)
    for (const one of kept) expect(await accept(one)).toBe(200)
  })

  test('with what the sender made, when it is rotated because somebody else had it, and with the one in its place', async () => {
    const { key } = await newAccount('admin')
    const [stolen, replaced] = [await newToken(key), await newToken(key)]
    const sent = [await invite(stolen.secret, 'admin'), await invite(replaced.secret, 'admin')]
    await api.call('POST', `/tokens/${stolen.id}/rotate`, { token: key, body: { revokeChildren: true } })
    const { body: heir } = await api.call('POST', `/tokens/${replaced.id}/rotate`, { token: key })
    await api.call('DELETE', `/tokens/${heir.id}`, { token: key })
    for (const one of sent) expect(await accept(one)).toBe(410)
  })

  test('though somebody is about to accept it, by the link or as the owner of the address', async () => {
    const { key } = await newAccount('admin')
    const { user, browser } = await newPerson(api)
    await api.db.user.update({ where: { id: user.id }, data: { emailProvedAt: new Date() } })
    const own = await api.call('POST', '/members/invitations', {
      token: key,
      body: { email: user.email, role: 'admin' },
    })
    const byLink = await invite(key, 'admin')
    const tries = [
      { id: byLink.id, status: 410, take: () => accept(byLink) },
      {
        id: own.body.id,
        status: 404,
        take: async () => (await browser.ask('POST', `/me/invitations/${own.body.id}`)).status,
      },
    ]
    for (const { id, status, take } of tries) {
      const { accountId } = await api.db.invitation.findUniqueOrThrow({ where: { id } })
      let taking: Promise<number> | undefined
      // As whoever removes the sender does, who holds the account first.
      await api.db.$transaction(async (db) => {
        await lockAccount(db, { id: accountId })
        taking = take()
        await until(async () => (await api.db.$queryRaw<[]>`SELECT 1 FROM pg_locks WHERE NOT granted`).length > 0)
        await db.invitation.deleteMany({ where: { id } })
      })
      expect(await taking).toBe(status)
    }
  })

  test('not by a rotation or another name', async () => {
    const { key } = await newAccount('admin')
    const sender = await newToken(key)
    const sent = await invite(sender.secret, 'viewer')
    await api.call('PATCH', `/tokens/${sender.id}`, { token: key, body: { name: 'other' } })
    await api.call('POST', `/tokens/${sender.id}/rotate`, { token: key })
    expect(await accept(sent)).toBe(200)
  })
})
