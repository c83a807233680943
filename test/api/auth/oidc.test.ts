// Sign-in by an identity provider: who may come in, and what an attacker sends instead.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../src/platform/ids.ts'
import { createIdentityProvider } from '../../../src/platform/secrets/identity-provider.ts'
import { addMember } from '../../../src/services/people/memberships.ts'
import { findOrAdmitUser } from '../../../src/services/people/sign-in/oidc.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { type AuthAnswer, Browser, openPerson } from '../../helpers/auth.ts'
import { type Claims, startProvider, type TestProvider } from '../../helpers/identity-provider.ts'
import { until } from '../../helpers/until.ts'

const origin = 'http://localhost:3000'

let provider: TestProvider
let api: TestApi
beforeAll(async () => {
  provider = await startProvider(`${origin}/auth/oidc/callback`)
  api = await startApi({
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: provider.client.id,
    OIDC_CLIENT_SECRET: provider.client.secret,
    OIDC_NAME: 'Example',
  })
})
afterAll(async () => {
  await api.stop()
  await provider.stop()
})

let subjects = 0
const newSubject = () => `subject-${++subjects}`

/** Comes back from the provider, which is another site. */
const comeBack = (browser: Browser, url: string) =>
  browser.send('GET', url.slice(origin.length), undefined, { 'sec-fetch-site': 'cross-site' })

async function begin(browser: Browser, subject: string, claims: Claims): Promise<string> {
  const started = await browser.get('/auth/oidc')
  expect(started.status).toBe(303)
  return provider.visit(started.headers.location!, subject, claims)
}

async function signIn(claims: Claims, subject = newSubject(), browser = new Browser(api.app)) {
  const answer = await comeBack(browser, await begin(browser, subject, claims))
  return { browser, answer, subject }
}

async function invite(email: string, role = 'viewer', accountId = api.accountId): Promise<void> {
  const now = Date.now()
  await api.db.invitation.create({
    data: {
      id: newId('inv'),
      accountId,
      email,
      role,
      projectIds: [],
      hash: Uint8Array.from(Buffer.from(`${email} ${accountId} ${now}`)),
      invitedBy: 'tok_x',
      expiresAt: new Date(now + 60_000),
      createdAt: new Date(now),
    },
  })
}

function expectRefused(answer: AuthAnswer, browser: Browser, code: string): void {
  expect(answer).toMatchObject({ status: 303, headers: { location: `/sign-in?error=${code}` } })
  expect(browser.cookies.has('__Host-berth')).toBe(false)
}

describe('who comes from the provider', () => {
  test('is asked for by the console, and sent there with PKCE, state and nonce', async () => {
    const browser = new Browser(api.app)
    expect((await browser.get('/auth/options')).body).toEqual({
      password: true,
      passkey: true,
      oidc: { name: 'Example' },
      mail: false,
    })
    const { headers } = await browser.get('/auth/oidc')
    const { origin: there, searchParams } = new URL(headers.location!)
    expect(there).toBe(provider.issuer)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: 'code',
      redirect_uri: `${origin}/auth/oidc/callback`,
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    })
    // The browser has to have it when it is sent back from another site.
    expect(String(headers['set-cookie'])).toMatch(
      /^__Host-berth-step=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax/,
    )
  })

  test('and was invited is a new person, who joins by accepting, and the same one the next time', async () => {
    await invite('grace@example.com', 'developer')
    const other = await api.newAccount()
    await invite('grace@example.com', 'owner', other.accountId)
    const { browser, answer, subject } = await signIn({
      email: 'Grace@example.com',
      email_verified: true,
      name: 'Grace',
    })
    expect(answer).toMatchObject({ status: 303, headers: { location: '/', 'referrer-policy': 'no-referrer' } })
    const { body } = await browser.get('/auth/me')
    expect(body).toMatchObject({
      user: { email: 'grace@example.com', emailProved: true, name: 'Grace', password: false },
      // Nobody is put into an account by somebody else.
      memberships: [],
      invitations: [
        { account: { id: api.accountId }, role: 'developer' },
        { account: { id: other.accountId }, role: 'owner' },
      ],
      session: { method: 'oidc' },
    })
    const [wanted, unwanted] = body.invitations.map(({ id }: { id: string }) => `/auth/me/invitations/${id}`)
    const both = await Promise.all([browser.post(wanted), browser.post(wanted)])
    expect(both.map(({ status }) => status).sort()).toEqual([204, 404])
    expect((await browser.send('DELETE', unwanted)).status).toBe(204)
    expect((await browser.post(unwanted)).status).toBe(404)
    const after = (await browser.get('/auth/me')).body
    expect(after.memberships).toMatchObject([{ account: { id: api.accountId }, role: 'developer' }])
    expect(after.invitations).toEqual([])
    expect(await api.db.membership.count({ where: { accountId: other.accountId } })).toBe(0)
    // The subject counts, not the address.
    const again = await signIn({ email: 'elsewhere@example.com', email_verified: false }, subject)
    expect((await again.browser.get('/auth/me')).body.user.id).toBe(body.user.id)
  })

  test('ends the session that the browser had, whose cookie does not come along', async () => {
    const { user, browser } = await openPerson(api)
    const before = browser.copy()
    const url = await begin(browser, newSubject(), { email: user.email, email_verified: true })
    await api.db.user.update({ where: { id: user.id }, data: { emailProvedAt: new Date() } })
    browser.cookies.delete('__Host-berth')
    expect((await comeBack(browser, url)).headers.location).toBe('/')
    expect((await browser.get('/auth/me')).body.user.id).toBe(user.id)
    expect((await before.get('/auth/me')).status).toBe(401)
  })

  test('and was not invited is refused, and leaves nothing', async () => {
    const before = await api.db.user.count()
    const { browser, answer } = await signIn({ email: 'stranger@example.com', email_verified: true })
    expectRefused(answer, browser, 'not_invited')
    expect(await api.db.user.count()).toBe(before)
  })

  test('with an address that is not verified is nobody, though it is invited or known here', async () => {
    await invite('invited@example.com')
    const { user } = await openPerson(api)
    for (const email of ['invited@example.com', user.email]) {
      for (const claims of [{ email, email_verified: false }, { email }, {}]) {
        const { browser, answer } = await signIn(claims)
        expectRefused(answer, browser, 'not_invited')
      }
    }
  })

  test('is nobody else by letters that only look alike in lower case', async () => {
    await invite('kim-invited@example.com')
    const { user } = await openPerson(api, { email: 'kim-known@example.com' })
    for (const email of ['\u212aim-invited@example.com', '\u212aim-known@example.com']) {
      const { browser, answer } = await signIn({ email, email_verified: true })
      expectRefused(answer, browser, 'not_invited')
    }
    expect(await api.db.user.findUnique({ where: { id: user.id } })).toMatchObject({ oidcSubject: null })
  })

  test('is linked to the person with the verified address, unless that person has another identity', async () => {
    const { user } = await openPerson(api)
    const claims = { email: user.email, email_verified: true }
    const { browser, subject } = await signIn(claims)
    expect((await browser.get('/auth/me')).body.user.id).toBe(user.id)
    expect(await api.db.user.findUnique({ where: { id: user.id } })).toMatchObject({
      oidcSubject: `${provider.issuer} ${subject}`,
    })
    const other = await signIn(claims)
    expectRefused(other.answer, other.browser, 'sign_in_failed')
  })

  test('gets the person alone, if somebody else may have begun in that name', async () => {
    const { user, browser: attacker } = await openPerson(api)
    await attacker.send('PUT', '/auth/password', { password: 'correct horse battery' })
    await attacker.post('/auth/totp/setup')
    const { browser } = await signIn({ email: user.email, email_verified: true })
    expect((await browser.get('/auth/me')).body.user).toMatchObject({ id: user.id, password: false, totp: false })
    expect((await attacker.get('/auth/me')).status).toBe(401)
    const again = await attacker.post('/auth/password', { email: user.email, password: 'correct horse battery' })
    expect(again.status).toBe(401)
  })

  test('leaves nothing that was made in that name before: no token, no program, no invitation', async () => {
    const { user, browser: attacker } = await openPerson(api)
    const member = { accountId: api.accountId, user, role: 'admin' as const, projectIds: [] }
    await api.db.$transaction((db) => addMember(db, member))
    const { secret: token } = (await attacker.post('/auth/token', {})).body
    const made = await api.call('POST', '/tokens', { token, body: { name: 'kept' } })
    const guest = { email: `guest-of-${user.id}@example.com`, role: 'admin' }
    const invited = await api.call('POST', '/members/invitations', { token, body: guest })
    const program = (await attacker.post('/auth/device', { client: 'kept' })).body
    await attacker.post('/auth/device/answer', { userCode: program.user_code, approve: true })
    const { browser } = await signIn({ email: user.email, email_verified: true })
    const { body } = await browser.get('/auth/me')
    expect(body).toMatchObject({ user: { id: user.id }, memberships: [{ role: 'admin' }] })
    await until(async () => (await api.call('GET', '/projects', { token: made.body.token })).status === 401)
    expect((await new Browser(api.app).post('/auth/setup', { code: invited.body.secret })).status).toBe(410)
    const polled = await attacker.post('/auth/device/token', { device_code: program.device_code })
    expect(polled.status).toBe(400)
  })

  test('is let in though somebody of another identity has written the same address, and never proved it', async () => {
    await invite('somebody@example.com')
    const other = await signIn({ email: 'somebody@example.com', email_verified: true })
    await other.browser.send('PATCH', '/auth/me', { email: 'owner@example.com' })
    // Nobody comes in by that who would not without it.
    const uninvited = await signIn({ email: 'owner@example.com', email_verified: true })
    expectRefused(uninvited.answer, uninvited.browser, 'not_invited')
    expect((await other.browser.get('/auth/me')).body.user.email).toBe('owner@example.com')
    await invite('owner@example.com')
    const { browser } = await signIn({ email: 'owner@example.com', email_verified: true })
    const { user } = (await browser.get('/auth/me')).body
    expect(user).toMatchObject({ email: 'owner@example.com', emailProved: true })
    const left = (await other.browser.get('/auth/me')).body.user
    expect(left).toMatchObject({ email: `${left.id}@address.invalid`, emailProved: false })
    expect(left.id).not.toBe(user.id)
  })

  test('keeps the ways to sign in that were there, if the address was known to be the person’s own', async () => {
    const { user, browser: own } = await openPerson(api)
    await api.db.user.update({ where: { id: user.id }, data: { emailProvedAt: new Date() } })
    await own.send('PUT', '/auth/password', { password: 'correct horse battery' })
    const { browser } = await signIn({ email: user.email, email_verified: true })
    expect((await browser.get('/auth/me')).body.user).toMatchObject({ id: user.id, password: true })
    expect((await own.get('/auth/me')).status).toBe(200)
  })

  test('may come uninvited where the operator says so, and is one person if two come at once', async () => {
    const identity = {
      issuer: provider.issuer,
      subject: newSubject(),
      verifiedEmail: 'new@example.com',
      name: 'A\u0007',
    }
    await expect(findOrAdmitUser(api.db, identity, false)).rejects.toMatchObject({ code: 'not_invited' })
    const both = await Promise.allSettled([
      findOrAdmitUser(api.db, identity, true),
      findOrAdmitUser(api.db, identity, true),
    ])
    expect(both.some(({ status }) => status === 'fulfilled')).toBe(true)
    for (const one of both) if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'sign_in_failed' })
    // A name that nobody could have typed here is not taken over.
    expect(await api.db.user.findMany({ where: { email: 'new@example.com' } })).toMatchObject([{ name: 'new' }])
    const odd = { ...identity, subject: newSubject(), verifiedEmail: '"<script>"@example.com' }
    await expect(findOrAdmitUser(api.db, odd, true)).rejects.toMatchObject({ code: 'not_invited' })
  })
})

describe('no sign-in', () => {
  const claims = { email: 'victim@example.com', email_verified: true }
  beforeAll(async () => {
    await invite(claims.email)
    await signIn(claims, 'victim')
  })

  test('by the address that another browser was sent to: nobody is signed in as somebody else', async () => {
    const attacker = new Browser(api.app)
    const url = await begin(attacker, 'victim', claims)
    // Without a sign-in under way, and with one of its own.
    const victim = new Browser(api.app)
    expectRefused(await comeBack(victim, url), victim, 'sign_in_step_over')
    await victim.get('/auth/oidc')
    expectRefused(await comeBack(victim, url), victim, 'sign_in_failed')
    expect((await comeBack(attacker, url)).headers.location).toBe('/')
  })

  test('by an address that was used', async () => {
    const browser = new Browser(api.app)
    const url = await begin(browser, 'victim', claims)
    const replayer = browser.copy()
    expect((await comeBack(browser, url)).headers.location).toBe('/')
    expectRefused(await comeBack(replayer, url), replayer, 'sign_in_step_over')
  })

  test.each(['state', 'nonce', 'verifier'])('with another %s than the one that was sent', async (field) => {
    const browser = new Browser(api.app)
    const url = await begin(browser, 'victim', claims)
    const { hash, data } = (await api.db.signInStep.findMany({ where: { kind: 'oidc' } })).find(
      ({ data }) => (data as { state: string }).state === new URL(url).searchParams.get('state'),
    )!
    const changed = { ...(data as object), [field]: 'A'.repeat(43) }
    await api.db.signInStep.update({ where: { hash }, data: { data: changed } })
    expectRefused(await comeBack(browser, url), browser, 'sign_in_failed')
  })

  test.each([
    ['a forged code', (url: URL) => url.searchParams.set('code', 'forged')],
    ['another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
    ['no state', (url: URL) => url.searchParams.delete('state')],
    ['two states', (url: URL) => url.searchParams.append('state', 'x')],
    [
      'a refusal of the provider',
      (url: URL) => {
        url.searchParams.delete('code')
        url.searchParams.set('error', 'access_denied')
      },
    ],
  ])('with %s', async (_name, change) => {
    const browser = new Browser(api.app)
    const url = new URL(await begin(browser, 'victim', claims))
    change(url)
    expectRefused(await comeBack(browser, url.href), browser, 'sign_in_failed')
  })

  test('that another site begins', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const answer = await new Browser(api.app).send('GET', '/auth/oidc', undefined, { 'sec-fetch-site': site })
      expect(answer).toMatchObject({ status: 403, body: { code: 'cross_origin' } })
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
  })

  test('that ends anywhere but here', async () => {
    const evil = 'https://evil.example'
    const browser = new Browser(api.app)
    const asked = await browser.get(`/auth/oidc?returnTo=${evil}&redirect_uri=${evil}&next=//evil.example`)
    expect(asked.headers.location).not.toContain('evil')
    const url = await provider.visit(asked.headers.location!, 'victim', claims)
    const answer = await comeBack(browser, `${url}&returnTo=${evil}&redirect_uri=${evil}`)
    expect(answer.headers.location).toBe('/')
  })

  test('while the provider is away, and a page that says so', async () => {
    const config = { issuer: 'http://127.0.0.1:9', clientId: 'x', clientSecret: 'y', name: 'z' }
    const away = createIdentityProvider(config, `${origin}/auth/oidc/callback`)
    for (let n = 0; n < 2; n++) {
      await expect(away.begin()).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
    }
  })
})
