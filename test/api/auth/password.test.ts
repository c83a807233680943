// Passwords, one-time passwords and recovery codes: how they sign in, and what does not.
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createPasswordHasher } from '../../../src/platform/secrets/password-hash.ts'
import { createVault, placeOf } from '../../../src/platform/secrets/secrets.ts'
import { rotateSecrets } from '../../../src/services/secrets/rotation.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { Browser, openPerson } from '../../helpers/auth.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
/** Of `password`. */
let passwordHash: string
beforeAll(async () => {
  // In the middle of a time step, where it stays: what is right a moment ago is right now.
  vi.useFakeTimers({ toFake: ['Date'], now: Math.floor(Date.now() / 30_000) * 30_000 + 15_000 })
  api = await sharedApi()
  passwordHash = await api.deps.passwordHasher!.hash(password)
})
afterAll(async () => {
  vi.useRealTimers()
  await api.stop()
})

const password = 'correct horse battery'
const other = 'wrong horse battery'
const failed = { status: 401, body: { code: 'sign_in_failed' } }
const over = { status: 410, body: { code: 'sign_in_step_over' } }

async function withPassword() {
  const person = await openPerson(api)
  await api.db.user.update({ where: { id: person.user.id }, data: { passwordHash } })
  return { ...person, email: person.user.email }
}

const signIn = (email: string, browser = new Browser(api.app), typed = password) =>
  browser.post('/auth/password', { email, password: typed })

const codeAt = (secret: string, steps = 0) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + steps * 30_000 })

/** A person who has confirmed an authenticator app; the last code used is that of the step before now. */
async function withTotp() {
  const person = await withPassword()
  const { secret, uri } = (await person.browser.post('/auth/totp/setup')).body
  const confirmed = await person.browser.post('/auth/totp/confirm', { code: codeAt(secret, -1) })
  return { ...person, secret, uri, recoveryCodes: confirmed.body.recoveryCodes as string[] }
}

/** A browser in which the password was right. */
async function halfway(email: string) {
  const browser = new Browser(api.app)
  expect((await signIn(email, browser)).body).toEqual({ next: 'totp' })
  return browser
}

describe('a password', () => {
  test('signs in, however the address is written, and opens a session of its own', async () => {
    const { email, user } = await withPassword()
    const browser = new Browser(api.app)
    expect(await signIn(email.toUpperCase(), browser)).toMatchObject({
      status: 200,
      body: { user: { id: user.id, password: true, totp: false }, session: { method: 'password' } },
    })
    expect((await browser.get('/auth/me')).body.user.email).toBe(email)
    expect(await signIn(email, new Browser(api.app), other)).toMatchObject(failed)
  })

  test('is changed with the one before, or in the first minutes of a session; all other sessions end', async () => {
    const { email, browser, age } = await withPassword()
    const elsewhere = new Browser(api.app)
    await signIn(email, elsewhere)
    await age()
    const put = (body: object) => browser.send('PUT', '/auth/password', body)
    expect(await put({ password: 'new horse battery' })).toMatchObject({
      status: 403,
      body: { code: 'proof_required' },
    })
    expect(await put({ current: other, password: 'new horse battery' })).toMatchObject({
      status: 422,
      body: { errors: [{ pointer: '#/current', code: 'wrong' }] },
    })
    expect((await elsewhere.get('/auth/me')).status).toBe(200)
    expect((await put({ current: password, password: 'new horse battery' })).status).toBe(204)
    expect((await elsewhere.get('/auth/me')).status).toBe(401)
    expect((await browser.get('/auth/me')).status).toBe(200)
    expect(await signIn(email)).toMatchObject(failed)
    expect((await signIn(email, new Browser(api.app), 'new horse battery')).status).toBe(200)
  })

  test('that is being changed does not sign in any more, though it was right a moment ago', async () => {
    const { email, user } = await withPassword()
    const [changed, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const change = api.db.$transaction(async (db) => {
      await db.user.update({ where: { id: user.id }, data: { passwordHash: 'another' } })
      changed.resolve()
      await held.promise
    })
    await changed.promise
    const late = signIn(email)
    const waits = () => api.db.$queryRaw<{ pid: number }[]>`SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`
    await until(async () => (await waits()).length > 0)
    held.resolve()
    await change
    expect(await late).toMatchObject(failed)
  })

  test('is refused if it is short or common, and needs a session', async () => {
    const { browser } = await openPerson(api)
    for (const [weak, code] of [
      ['short', 'too_short'],
      ['password123', 'too_common'],
    ] as const) {
      expect(await browser.send('PUT', '/auth/password', { password: weak })).toMatchObject({
        status: 422,
        body: { errors: [{ pointer: '#/password', code }] },
      })
    }
    expect((await new Browser(api.app).send('PUT', '/auth/password', { password })).status).toBe(401)
  })

  test('whose hash is of older figures gets a new one when it is used', async () => {
    const { email, user } = await withPassword()
    const use = { kind: 'scrypt', parameters: { ln: 10, r: 8, p: 1 } } as const
    const old = await createPasswordHasher({ use }).hash(password)
    await api.db.user.update({ where: { id: user.id }, data: { passwordHash: old } })
    expect((await signIn(email)).status).toBe(200)
    const now = await api.db.user.findUniqueOrThrow({ where: { id: user.id } })
    expect(now.passwordHash).toMatch(/^\$argon2id\$/)
    expect((await signIn(email)).status).toBe(200)
  })
})

test('nobody learns whether there is such a person: not by status, body or headers', async () => {
  const { email } = await withPassword()
  const { user: without } = await openPerson(api)
  const answers = []
  for (const who of [email, without.email, 'nobody@example.com']) answers.push(await signIn(who, undefined, other))
  const shown = answers.map(({ status, headers, body }) => {
    const { 'x-request-id': _id, date: _date, ...rest } = headers
    const { requestId: _request, ...said } = body
    return { status, rest, said }
  })
  expect(shown[0]).toMatchObject({ status: 401, said: { code: 'sign_in_failed' } })
  expect(shown[1]).toEqual(shown[0])
  expect(shown[2]).toEqual(shown[0])
})

test('another address needs a proof too: who has it at an identity provider signs in as the person', async () => {
  const { browser, age, user } = await withPassword()
  await age()
  const patch = (body: object) => browser.send('PATCH', '/auth/me', body)
  const email = `other-${user.email}`
  expect(await patch({ email })).toMatchObject({ status: 403, body: { code: 'proof_required' } })
  expect((await patch({ email, current: other })).status).toBe(422)
  // A form sends all of its fields.
  expect((await patch({ name: 'Ada', email: user.email.toUpperCase() })).status).toBe(200)
  await api.db.user.update({ where: { id: user.id }, data: { emailProvedAt: new Date() } })
  expect(await patch({ email, current: password })).toMatchObject({ status: 200, body: { user: { email } } })
  expect(await api.db.user.findUnique({ where: { id: user.id } })).toMatchObject({ emailProvedAt: null })
})

describe('one-time passwords', () => {
  test('are asked for after the password, once they are confirmed', async () => {
    const { email, browser, user } = await withPassword()
    const { secret, uri } = (await browser.post('/auth/totp/setup')).body
    expect(uri).toBe(
      `otpauth://totp/Berth:${encodeURIComponent(email)}?issuer=Berth&secret=${secret}&algorithm=SHA1&digits=6&period=30`,
    )
    // Not yet: a set-up that was given up locks nobody out.
    expect((await signIn(email)).body.user.id).toBe(user.id)
    const wrong = await browser.post('/auth/totp/confirm', { code: codeAt(secret, 40) })
    expect(wrong).toMatchObject({ status: 422, body: { errors: [{ pointer: '#/code' }] } })
    const confirmed = await browser.post('/auth/totp/confirm', { code: codeAt(secret, -1) })
    expect(new Set(confirmed.body.recoveryCodes).size).toBe(10)
    expect((await browser.get('/auth/totp')).body).toEqual({ enabled: true, recoveryCodes: 10 })

    const next = await halfway(email)
    expect(next.cookies.has('__Host-berth')).toBe(false)
    expect((await next.get('/auth/me')).status).toBe(401)
    const code = codeAt(secret).replace(/^.../, '$& ')
    expect(await next.post('/auth/totp', { code })).toMatchObject({ status: 200, body: { user: { totp: true } } })
    expect(next.cookies.has('__Host-berth-step')).toBe(false)
    expect((await next.get('/auth/me')).status).toBe(200)
  })

  test('are accepted once, a step early or late at most, and never an earlier one after a later one', async () => {
    const { email, secret } = await withTotp()
    const send = async (code: string) => (await (await halfway(email)).post('/auth/totp', { code })).status
    expect(await send(codeAt(secret, -1))).toBe(401)
    expect(await send(codeAt(secret, 3))).toBe(401)
    const code = codeAt(secret, 1)
    expect(await send(code)).toBe(200)
    expect(await send(code)).toBe(401)
    expect(await send(codeAt(secret, 0))).toBe(401)
  })

  test('are accepted once of several at once', async () => {
    const { email, secret } = await withTotp()
    const browsers = await Promise.all([halfway(email), halfway(email), halfway(email)])
    const code = codeAt(secret)
    const statuses = (await Promise.all(browsers.map((one) => one.post('/auth/totp', { code })))).map(
      (one) => one.status,
    )
    expect(statuses.sort()).toEqual([200, 401, 401])
  })

  test('can be typed again after a wrong one, but not guessed', async () => {
    const { email, secret } = await withTotp()
    const browser = await halfway(email)
    for (let n = 0; n < 5; n++) expect(await browser.post('/auth/totp', { code: '000000' })).toMatchObject(failed)
    const late = await browser.post('/auth/totp', { code: codeAt(secret) })
    expect(late).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
    expect(Number(late.headers['retry-after'])).toBeGreaterThan(60)
    // From anywhere, and with any step.
    expect((await (await halfway(email)).post('/auth/totp', { code: codeAt(secret) })).status).toBe(429)
  })

  test('need the step of this browser: none without it, after its time, or twice', async () => {
    const { email, secret, recoveryCodes } = await withTotp()
    expect(await new Browser(api.app).post('/auth/totp', { code: codeAt(secret) })).toMatchObject(over)
    const browser = await halfway(email)
    const copy = browser.copy()
    expect((await browser.post('/auth/totp', { code: recoveryCodes[0] })).status).toBe(200)
    expect(await copy.post('/auth/totp', { code: recoveryCodes[1] })).toMatchObject(over)
    const late = await halfway(email)
    await api.db.signInStep.updateMany({ where: { kind: 'totp' }, data: { expiresAt: new Date(Date.now() - 1) } })
    expect(await late.post('/auth/totp', { code: codeAt(secret) })).toMatchObject(over)
  })

  test('of one person do not finish the sign-in of another', async () => {
    const [ada, eve] = [await withTotp(), await withTotp()]
    const browser = await halfway(ada.email)
    expect(await browser.post('/auth/totp', { code: codeAt(eve.secret) })).toMatchObject(failed)
    expect(await browser.post('/auth/totp', { code: eve.recoveryCodes[0] })).toMatchObject(failed)
    // With the step of Eve it is Eve who signs in.
    const own = await halfway(eve.email)
    browser.cookies.set('__Host-berth-step', own.cookies.get('__Host-berth-step')!)
    expect((await browser.post('/auth/totp', { code: codeAt(eve.secret) })).body.user.id).toBe(eve.user.id)
  })

  test('do not finish what began with a password that was changed since', async () => {
    const { email, secret, browser } = await withTotp()
    const stolen = await halfway(email)
    await browser.send('PUT', '/auth/password', { password: 'new horse battery' })
    expect(await stolen.post('/auth/totp', { code: codeAt(secret) })).toMatchObject(over)
  })

  test('are set up and removed with a proof alone, and one at a time', async () => {
    const { browser, age, email } = await withTotp()
    expect(await browser.post('/auth/totp/setup')).toMatchObject({ status: 409, body: { code: 'totp_exists' } })
    await age()
    for (const [method, path] of [
      ['POST', '/auth/totp/setup'],
      ['POST', '/auth/totp/recovery-codes'],
      ['DELETE', '/auth/totp'],
    ] as const) {
      expect(await browser.send(method, path)).toMatchObject({ status: 403, body: { code: 'proof_required' } })
      expect((await browser.send(method, path, { current: other })).status).toBe(422)
    }
    expect((await browser.send('DELETE', '/auth/totp', { current: password })).status).toBe(204)
    expect((await browser.get('/auth/totp')).body).toEqual({ enabled: false, recoveryCodes: 0 })
    expect((await signIn(email)).status).toBe(200)
  })

  test('have a secret that is sealed for its person, and re-sealed with the others', async () => {
    const { user, secret } = await withTotp()
    const read = async () => (await api.db.user.findUniqueOrThrow({ where: { id: user.id } })).totpSecret!
    expect(Buffer.from(await read()).includes(secret)).toBe(false)
    const next = createVault(Buffer.alloc(32, 9), [Buffer.alloc(32, 7)])
    const { columns } = await rotateSecrets(api.db, next, () => {})
    expect(columns.find(({ name }) => name === 'users.totp_secret')).toMatchObject({ unopened: [], busy: 0 })
    expect(
      createVault(Buffer.alloc(32, 9))
        .open(await read(), placeOf.totp(user.id))
        .toString(),
    ).toBe(secret)
    expect(() => next.open(Buffer.from('x'), placeOf.totp('usr_other'))).toThrow()
    await rotateSecrets(api.db, createVault(Buffer.alloc(32, 7), [Buffer.alloc(32, 9)]), () => {})
  })
})

describe('recovery codes', () => {
  test('each stand for a one-time password, once, however they are typed', async () => {
    const { email, recoveryCodes, browser } = await withTotp()
    const send = async (code: string) => (await (await halfway(email)).post('/auth/totp', { code })).status
    expect(await send(recoveryCodes[0]!.toUpperCase().replaceAll('-', ' '))).toBe(200)
    expect(await send(recoveryCodes[0]!)).toBe(401)
    expect(await send(recoveryCodes[1]!)).toBe(200)
    expect((await browser.get('/auth/totp')).body.recoveryCodes).toBe(8)
    const stored = JSON.stringify(await api.db.recoveryCode.findMany())
    for (const code of recoveryCodes) expect(stored).not.toContain(code.replaceAll('-', ''))
  })

  test('are void when there are new ones', async () => {
    const { email, recoveryCodes, browser } = await withTotp()
    const fresh = (await browser.post('/auth/totp/recovery-codes')).body.recoveryCodes
    expect(await (await halfway(email)).post('/auth/totp', { code: recoveryCodes[0] })).toMatchObject(failed)
    expect((await (await halfway(email)).post('/auth/totp', { code: fresh[0] })).status).toBe(200)
  })
})
