// Passkeys: how they sign in, and what does not: replays, other browsers, other origins, copies.
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { Browser, openPerson } from '../../helpers/auth.ts'
import { Authenticator, type Lies } from '../../helpers/authenticator.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const origin = 'http://localhost:3000'

async function register(browser: Browser, device = new Authenticator(origin), lies: Lies = {}) {
  const options = (await browser.post('/auth/passkeys/register/options')).body
  const made = await browser.post('/auth/passkeys', { name: 'Key', response: device.create(options, lies) })
  return { device, options, made }
}

/** A person with a passkey, and the browser in which it was made. */
async function withPasskey() {
  const { browser, user } = await openPerson(api)
  const { device, made } = await register(browser)
  expect(made.status).toBe(201)
  return { browser, user, device, passkey: made.body }
}

async function signIn(device: Authenticator, lies: Lies = {}, browser = new Browser(api.app)) {
  const { body: options } = await browser.post('/auth/passkeys/options')
  const response = device.get(options, lies)
  return { browser, options, response, answer: await browser.post('/auth/passkeys/sign-in', { response }) }
}

const failed = { status: 401, body: { code: 'sign_in_failed' } }
const over = { status: 410, body: { code: 'sign_in_step_over' } }

describe('a passkey', () => {
  test('signs its owner in, again and again, in any browser, without a name being typed', async () => {
    const { user, device } = await withPasskey()
    const first = await signIn(device)
    expect(first.options).toMatchObject({ rpId: 'localhost', userVerification: 'required' })
    expect(first.options.allowCredentials).toBeUndefined()
    expect(first.answer).toMatchObject({ status: 200, body: { user: { id: user.id }, session: { method: 'passkey' } } })
    expect((await first.browser.get('/auth/me')).body.user.id).toBe(user.id)
    expect(first.browser.cookies.has('__Host-berth-step')).toBe(false)
    expect((await signIn(device)).answer.status).toBe(200)
    const { passkeys } = (await first.browser.get('/auth/passkeys')).body
    expect(passkeys).toMatchObject([{ name: 'Key', transports: ['internal'], lastUsedAt: expect.any(String) }])
  })

  test('is made as one that the device finds by itself and that verifies the person', async () => {
    const { browser, user, device } = await withPasskey()
    const { options } = await register(browser)
    expect(options).toMatchObject({
      rp: { id: 'localhost', name: 'Berth' },
      user: { id: Buffer.from(user.id).toString('base64url'), name: user.email },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      excludeCredentials: [{ id: device.id.toString('base64url'), type: 'public-key' }],
    })
  })

  test('opens a session of its own and ends the one that the browser had: none can be planted', async () => {
    const { device } = await withPasskey()
    const { browser: victim } = await openPerson(api)
    const planted = victim.copy()
    const before = victim.cookies.get('__Host-berth')
    await signIn(device, {}, victim)
    expect(victim.cookies.get('__Host-berth')).not.toBe(before)
    expect((await planted.get('/auth/me')).status).toBe(401)
  })

  test('of a device without a counter signs in each time', async () => {
    const { browser } = await openPerson(api)
    const { device } = await register(browser)
    for (let n = 0; n < 2; n++) expect((await signIn(device, { counter: 0 })).answer.status).toBe(200)
  })
})

describe('no sign-in by', () => {
  test('an answer that was given before', async () => {
    const { device } = await withPasskey()
    const browser = new Browser(api.app)
    const { body: options } = await browser.post('/auth/passkeys/options')
    const replayer = browser.copy()
    const response = device.get(options)
    expect((await browser.post('/auth/passkeys/sign-in', { response })).status).toBe(200)
    expect(await replayer.post('/auth/passkeys/sign-in', { response })).toMatchObject(over)
    // Nor by the same answer to a new question.
    await replayer.post('/auth/passkeys/options')
    expect(await replayer.post('/auth/passkeys/sign-in', { response })).toMatchObject(failed)
  })

  test('an answer sent twice at once: one of them', async () => {
    const { device } = await withPasskey()
    const browser = new Browser(api.app)
    const response = device.get((await browser.post('/auth/passkeys/options')).body)
    const send = () => browser.copy().post('/auth/passkeys/sign-in', { response })
    const statuses = (await Promise.all([send(), send(), send(), send()])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, 410, 410, 410])
  })

  test('the challenge of another browser', async () => {
    const { device } = await withPasskey()
    const [own, other] = [new Browser(api.app), new Browser(api.app)]
    const { body: options } = await other.post('/auth/passkeys/options')
    await own.post('/auth/passkeys/options')
    const response = device.get(options)
    expect(await own.post('/auth/passkeys/sign-in', { response })).toMatchObject(failed)
    expect(await new Browser(api.app).post('/auth/passkeys/sign-in', { response })).toMatchObject(over)
  })

  test('a challenge whose time is over', async () => {
    const { device } = await withPasskey()
    const browser = new Browser(api.app)
    const response = device.get((await browser.post('/auth/passkeys/options')).body)
    await api.db.signInStep.updateMany({ data: { expiresAt: new Date(Date.now() - 1) } })
    expect(await browser.post('/auth/passkeys/sign-in', { response })).toMatchObject(over)
  })

  test('a challenge that was for a registration', async () => {
    const { browser, device } = await withPasskey()
    const { body: options } = await browser.post('/auth/passkeys/register/options')
    const response = device.get({ challenge: options.challenge, rpId: 'localhost' })
    expect(await browser.post('/auth/passkeys/sign-in', { response })).toMatchObject(over)
  })

  const attacks: [string, Lies][] = [
    ['another origin', { origin: 'https://evil.example' }],
    ['an origin beside ours', { origin: 'http://localhost:3001' }],
    ['a page within another site', { crossOrigin: true }],
    ['another relying party', { rpId: 'evil.example' }],
    ['another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['the answer to a registration', { type: 'webauthn.create' }],
    ['a person who was not verified', { flags: 1 }],
    ['a person who was not there', { flags: 4 }],
    ['another key', { key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey }],
    ['the handle of another person', { userHandle: Buffer.from('usr_other').toString('base64url') }],
    ['no handle', { userHandle: '' }],
  ]
  test.each(attacks)('%s', async (_name, lies) => {
    const { device } = await withPasskey()
    const { answer, browser } = await signIn(device, lies)
    expect(answer).toMatchObject(failed)
    expect(browser.cookies.has('__Host-berth')).toBe(false)
  })

  test('a copy of the device, which counts from where it was made', async () => {
    const { device } = await withPasskey()
    await signIn(device, { counter: 7 })
    for (const counter of [7, 3, 0]) expect((await signIn(device, { counter })).answer).toMatchObject(failed)
    expect((await signIn(device, { counter: 8 })).answer.status).toBe(200)
  })

  test('a passkey that nobody has, with the same answer as for a wrong one', async () => {
    const { device } = await withPasskey()
    const stranger = new Authenticator(origin)
    stranger.userHandle = device.userHandle
    const [unknown, wrong] = [(await signIn(stranger)).answer, (await signIn(device, { rpId: 'x' })).answer]
    const { requestId: _a, ...first } = unknown.body
    const { requestId: _b, ...second } = wrong.body
    expect([unknown.status, first]).toEqual([wrong.status, second])
  })

  test('a passkey that was deleted', async () => {
    const { browser, device, passkey } = await withPasskey()
    await register(browser)
    expect((await browser.send('DELETE', `/auth/passkeys/${passkey.id}`)).status).toBe(204)
    expect((await signIn(device)).answer).toMatchObject(failed)
  })
})

describe('no registration', () => {
  const refused = { status: 422, body: { errors: [{ pointer: '#/response' }] } }
  const attacks: [string, Lies][] = [
    ['from another origin', { origin: 'https://evil.example' }],
    ['from a page within another site', { crossOrigin: true }],
    ['for another relying party', { rpId: 'evil.example' }],
    ['with another challenge', { challenge: 'AAAA' }],
    ['as the answer to a sign-in', { type: 'webauthn.get' }],
    ['without verification of the person', { flags: 1 }],
    [
      'with certificates, in which addresses stand',
      { format: 'packed', statement: new Map([['x5c', [Buffer.alloc(4)]]]) },
    ],
    ['of a form that nobody asked for', { format: 'android-safetynet' }],
  ]
  test.each(attacks)('%s', async (_name, lies) => {
    const { browser } = await openPerson(api)
    expect((await register(browser, undefined, lies)).made).toMatchObject(refused)
    expect((await browser.get('/auth/passkeys')).body.passkeys).toEqual([])
  })

  test('by a step of somebody else who used the browser', async () => {
    const { browser } = await openPerson(api)
    const { browser: other } = await openPerson(api)
    const { body: options } = await other.post('/auth/passkeys/register/options')
    browser.cookies.set('__Host-berth-step', other.cookies.get('__Host-berth-step')!)
    const response = new Authenticator(origin).create(options)
    expect(await browser.post('/auth/passkeys', { name: 'Key', response })).toMatchObject(over)
  })

  test('of a passkey that somebody has', async () => {
    const { device } = await withPasskey()
    const { browser } = await openPerson(api)
    expect((await register(browser, device)).made).toMatchObject({ status: 409, body: { code: 'passkey_exists' } })
  })

  test('without a session, nor with an old one alone', async () => {
    expect((await new Browser(api.app).post('/auth/passkeys/register/options')).status).toBe(401)
    const { browser, age } = await openPerson(api)
    await age()
    expect(await browser.post('/auth/passkeys/register/options')).toMatchObject({
      status: 403,
      body: { code: 'proof_required' },
    })
  })

  test('of more than twenty', async () => {
    const { browser, user, passkey } = await withPasskey()
    const row = await api.db.passkey.findUniqueOrThrow({ where: { id: passkey.id } })
    await api.db.passkey.createMany({
      data: Array.from({ length: 19 }, (_, n) => ({
        ...row,
        id: `psk_${user.id}${n}`,
        credentialId: Buffer.from(`${user.id}${n}`),
      })),
    })
    expect(await browser.post('/auth/passkeys/register/options')).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', limit: 'passkeys', used: 20, max: 20 },
    })
  })

  test.each([{}, { response: {} }, { response: 'x' }, { response: { id: '=', rawId: 1, type: 'x', response: null } }])(
    'nor sign-in by a body that is none: %j',
    async (body) => {
      const { browser } = await openPerson(api)
      expect((await browser.post('/auth/passkeys', { name: 'x', ...body })).status).toBe(422)
      expect((await browser.post('/auth/passkeys/sign-in', body)).status).toBe(422)
    },
  )

  test('nor sign-in by bytes that are no CBOR and no JSON', async () => {
    const { browser } = await withPasskey()
    const { id } = (await browser.get('/auth/passkeys')).body.passkeys[0]
    const { credentialId } = await api.db.passkey.findUniqueOrThrow({ where: { id } })
    const name = Buffer.from(credentialId).toString('base64url')
    const junk = { id: name, rawId: name, type: 'public-key', clientExtensionResults: {} }
    await browser.post('/auth/passkeys/register/options')
    const made = { ...junk, response: { clientDataJSON: 'AAAA', attestationObject: '_____w' } }
    expect(await browser.post('/auth/passkeys', { name: 'x', response: made })).toMatchObject(refused)
    await browser.post('/auth/passkeys/options')
    const got = { ...junk, response: { clientDataJSON: 'AAAA', authenticatorData: 'AA', signature: 'AA' } }
    expect(await browser.post('/auth/passkeys/sign-in', { response: got })).toMatchObject(failed)
  })
})

describe('a person’s own passkeys', () => {
  test('have names, and nobody else sees or touches them', async () => {
    const { browser, passkey } = await withPasskey()
    const { browser: other } = await openPerson(api)
    const path = `/auth/passkeys/${passkey.id}`
    expect((await browser.send('PATCH', path, { name: 'Laptop' })).body.name).toBe('Laptop')
    expect((await other.send('PATCH', path, { name: 'Mine' })).status).toBe(404)
    expect((await other.send('DELETE', path)).status).toBe(404)
    expect((await other.get('/auth/passkeys')).body.passkeys).toEqual([])
    expect((await browser.get('/auth/passkeys')).body.passkeys).toMatchObject([{ id: passkey.id, name: 'Laptop' }])
  })

  test('leave at least one way to sign in, even if two are deleted at once', async () => {
    const { browser, passkey } = await withPasskey()
    const path = `/auth/passkeys/${passkey.id}`
    expect(await browser.send('DELETE', path)).toMatchObject({ status: 409, body: { code: 'last_sign_in_method' } })
    const second = (await register(browser)).made.body
    const both = await Promise.all([path, `/auth/passkeys/${second.id}`].map((one) => browser.send('DELETE', one)))
    expect(both.map(({ status }) => status).sort()).toEqual([204, 409])
    expect((await browser.send('PUT', '/auth/password', { password: 'correct horse battery' })).status).toBe(204)
    const [left] = (await browser.get('/auth/passkeys')).body.passkeys
    expect((await browser.send('DELETE', `/auth/passkeys/${left.id}`)).status).toBe(204)
  })

  test('are not deleted by whoever finds an open browser', async () => {
    const { browser, passkey, user } = await withPasskey()
    await api.db.session.updateMany({ where: { userId: user.id }, data: { createdAt: new Date(Date.now() - 601_000) } })
    expect((await browser.send('DELETE', `/auth/passkeys/${passkey.id}`)).body.code).toBe('proof_required')
  })
})
