import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { users } from '../../../src/commands/users.ts'
import { loadConfig } from '../../../src/config.ts'
import type { User } from '../../../src/generated/client.ts'
import type { Db } from '../../../src/platform/database/database.ts'
import { linkToDemo } from '../../../src/roles/opening/first-start.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import type { Actor, Scope } from '../../../src/services/identity/actor.ts'
import { createLink } from '../../../src/services/people/links.ts'
import { changeMember } from '../../../src/services/people/members.ts'
import { addMember } from '../../../src/services/people/memberships.ts'
import { provisionLink } from '../../../src/services/people/provision.ts'
import { roles } from '../../../src/services/people/roles.ts'
import { deleteExpiredSignIns } from '../../../src/services/people/sweep.ts'
import { createToken } from '../../../src/services/tokens/tokens.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newPerson, openBrowser } from '../../helpers/people.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())
afterEach(() => vi.restoreAllMocks())

test('what has ended is removed, and what is in use stays', async () => {
  const kept = await newPerson(api)
  const token = await kept.browser.token()
  const gone = await newPerson(api)
  await gone.browser.token()
  const past = new Date(Date.now() - 40 * 24 * 60 * 60_000)
  await api.db.session.updateMany({ where: { userId: gone.user.id }, data: { lastSeenAt: past } })
  const stale = await kept.browser.token()
  const current = (await api.call('GET', '/tokens/current', { token: stale })).body.id
  await api.db.token.update({ where: { id: current }, data: { expiresAt: past } })
  const open = await createLink(api.db, { userId: kept.user.id })
  const invite = (email: string) => api.call('POST', '/members/invitations', { body: { email, role: 'viewer' } })
  const [old] = [(await invite('old@example.com')).body, (await invite('new@example.com')).body]
  await api.db.invitation.update({ where: { id: old.id }, data: { expiresAt: past } })
  const step = { kind: 'totp', data: {}, expiresAt: past }
  await api.db.signInStep.create({ data: { ...step, hash: Uint8Array.of(1) } })

  // Two used links, one of each: session, token, invitation, step.
  expect(await deleteExpiredSignIns(api.db)).toBe(6)
  expect(await api.db.session.count()).toBe(1)
  expect(await api.db.token.count({ where: { sessionId: { not: null } } })).toBe(1)
  expect((await api.call('GET', '/projects', { token })).status).toBe(200)
  expect((await api.call('GET', '/members/invitations')).body.invitations).toHaveLength(1)
  expect((await openBrowser(api).ask('POST', '/setup/look', { code: open })).status).toBe(200)
  expect(await deleteExpiredSignIns(api.db)).toBe(0)
})

test('the link to the demo account is another one at each start, and none once it has a member', async () => {
  expect(await linkToDemo(api.db, 'http://localhost:3000')).toBeNull()
  await api.newAccount('demo')
  const first = await linkToDemo(api.db, 'http://localhost:3000/')
  const second = await linkToDemo(api.db, 'http://localhost:3000')
  expect(first).toMatch(/^http:\/\/localhost:3000\/setup#[\w-]{43}$/)
  expect(second).not.toBe(first)
  const code = second!.split('#')[1]
  expect((await openBrowser(api).ask('POST', '/setup', { code, email: 'o@example.com' })).status).toBe(200)
  expect(await linkToDemo(api.db, 'http://localhost:3000')).toBeNull()
  const unused = first!.split('#')[1]
  expect((await openBrowser(api).ask('POST', '/setup', { code: unused, email: 'p@example.com' })).status).toBe(410)
})

test('berth users makes people, puts them into accounts and gives them links', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-users-'))
  const config = loadConfig({ DATABASE_URL: api.databaseUrl, DATA_DIR: dataDir })
  const printed: string[] = []
  vi.spyOn(console, 'log').mockImplementation((line: string) => void printed.push(line))
  const run = async (...args: Parameters<typeof users> extends [unknown, ...infer Rest] ? Rest : never) => {
    printed.length = 0
    await users(config, ...args)
    return printed.join('\n')
  }
  try {
    await api.newAccount('customer')
    await expect(run('link', 'Cleo@example.com', {})).rejects.toThrow('choose an account with --account')
    await expect(run('link', 'cleo', {})).rejects.toThrow('is not an email address')
    await expect(run('link', 'usr_nobody', {})).rejects.toThrow('There is no person usr_nobody')
    await expect(run('link', 'cleo@example.com', { role: 'king' })).rejects.toThrow('There is no role king')
    await expect(run('link', 'cleo@example.com', { account: 'nobody' })).rejects.toThrow('There is no account nobody')
    const made = await run('link', 'Cleo@example.com', { account: 'customer', role: 'developer', operator: true })
    expect(made).toMatch(
      /^Person {5}usr_\w{24} {2}cleo@example\.com {2}\(new, operator\)\nAccounts {3}customer \(developer\)\n/,
    )
    const link = /^Link {7}(\S+)/m.exec(made)![1]!
    expect(link).toMatch(/^http:\/\/localhost:3000\/setup#/)
    const browser = openBrowser(api)
    expect((await browser.ask('POST', '/setup', { code: link.split('#')[1] })).status).toBe(200)
    const token = await browser.token()
    expect((await api.call('GET', '/operator/accounts', { token })).status).toBe(200)
    // Somebody who is there is told so; an operator who is one no more loses that at once.
    expect(await run('link', 'cleo@example.com', { operator: false })).toMatch(/known since \d{4}-\d\d-\d\d\)/)
    const after = await browser.token()
    expect((await api.call('GET', '/operator/accounts', { token: after })).status).toBe(403)
    const { scopes } = await api.db.token.findFirstOrThrow({ where: { sessionId: { not: null }, name: 'console' } })
    expect(scopes).not.toContain('operator')
    expect(await run('list', '', {})).toMatch(/cleo@example\.com +cleo +customer \(developer\)/)
    expect(JSON.parse(await run('list', '', { json: true }))).toContainEqual(
      expect.objectContaining({ email: 'cleo@example.com', operator: false }),
    )
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})

test('an address that nobody has proved brings no rights to who wrote it: the operator names the person', async () => {
  const { user, browser } = await newPerson(api, { email: 'squatter@example.com' })
  await browser.ask('PATCH', '/me', { email: 'root@example.com' })
  const { account } = await createAccount(api.db, 'of the operator')
  const wanted = { who: 'root@example.com', account: null, role: 'owner' as const }
  await expect(provisionLink(api.db, { ...wanted, operator: true })).rejects.toThrow(user.id)
  await expect(provisionLink(api.db, { ...wanted, account })).rejects.toThrow('has not verified')
  expect((await api.call('GET', '/operator/accounts', { token: await browser.token() })).status).toBe(403)
  // A link gives no rights, and the one who is meant can be named by what only one person has.
  expect((await provisionLink(api.db, wanted)).user.id).toBe(user.id)
  const named = await provisionLink(api.db, { ...wanted, who: user.id, account, operator: true })
  expect(named).toMatchObject({ user: { id: user.id, operator: true }, isNew: false })
})

/** Runs `work` and does not commit before `other` waits for it, or is done. */
async function during(work: (db: Db) => Promise<unknown>, other: () => Promise<unknown>): Promise<void> {
  let running: Promise<unknown> = Promise.resolve()
  await api.db.$transaction(async (db) => {
    await work(db)
    let done = false
    running = other().finally(() => {
      done = true
    })
    const waiting = () => api.db.$queryRaw<unknown[]>`SELECT 1 FROM pg_locks WHERE NOT granted`
    await until(async () => done || (await waiting()).length > 0)
  })
  await running
}

describe('who is an operator no more', () => {
  const demote = ({ id }: User) => provisionLink(api.db, { who: id, account: null, role: 'owner', operator: false })
  const ofOperators = (userId: string) =>
    api.db.token.count({ where: { userId, revokedAt: null, scopes: { has: 'operator' } } })

  test('keeps no token of one that was being made', async () => {
    const { user, member } = await newPerson(api, { operator: true })
    const actor: Actor = { accountId: api.accountId, tokenId: member.tokenId, scopes: ['*'], projectIds: null }
    const scopes: Scope[] = ['operator', 'projects:read']
    await during(
      (db) => createToken(db, actor, { name: 'kept', scopes }),
      () => demote(user),
    )
    expect(await ofOperators(user.id)).toBe(0)
  })

  test('is none in an account that they were about to join', async () => {
    const { user } = await newPerson(api, { operator: true })
    const { accountId } = await api.newAccount()
    await during(
      (db) => addMember(db, { accountId, user, role: 'viewer', projectIds: [] }),
      () => demote(user),
    )
    expect(await ofOperators(user.id)).toBe(0)
    const other = await api.newAccount()
    await api.db.$transaction((db) =>
      addMember(db, { accountId: other.accountId, user, role: 'viewer', projectIds: [] }),
    )
    expect(await ofOperators(user.id)).toBe(0)
  })

  test('keeps the role that they were being given', async () => {
    const { user, member } = await newPerson(api, { operator: true })
    const owner = await newPerson(api)
    const actor: Actor = { accountId: api.accountId, tokenId: owner.member.tokenId, scopes: ['*'], projectIds: null }
    const change = { id: member.id, input: { role: 'viewer' as const }, precondition: () => {} }
    await during(
      (db) => changeMember(db, actor, change),
      () => demote(user),
    )
    const { scopes } = await api.db.token.findUniqueOrThrow({ where: { id: member.tokenId } })
    expect(scopes).toEqual(roles.viewer.scopes)
  })
})
