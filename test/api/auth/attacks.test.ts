import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../src/platform/ids.ts'
import { createLink } from '../../../src/services/people/links.ts'
import { emailVerificationCode } from '../../../src/services/people/sign-in/email-verification.ts'
import { createUser } from '../../../src/services/people/users.ts'
import { sharedApi, startApi, type TestApi } from '../../helpers/api.ts'
import { newPerson, openBrowser } from '../../helpers/people.ts'
import { startReplica } from '../../helpers/replica.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const changes: [method: string, path: string, body?: object][] = [
  ['POST', '/setup', { code: 'x' }],
  ['POST', '/setup/look', { code: 'x' }],
  ['POST', '/token', {}],
  ['PATCH', '/me', { name: 'Eve' }],
  ['POST', '/me/proof', { code: 'x' }],
  ['POST', '/me/invitations/inv_x'],
  ['DELETE', '/me/invitations/inv_x'],
  ['DELETE', '/session'],
  ['DELETE', '/sessions/ses_x'],
]

describe('a request of another site', () => {
  test('is refused before anything is looked at, also where it is same-site, and with every cookie', async () => {
    const { browser, user } = await newPerson(api)
    const own = new URL(api.config.baseUrl).origin
    const foreign: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
      { 'sec-fetch-site': 'same-site', origin: 'http://customer.localhost:8080' },
      { 'sec-fetch-site': 'none' },
      // A header that contradicts what the browser says of the site is of no use.
      { 'sec-fetch-site': 'cross-site', origin: own },
      { origin: 'https://evil.example' },
      { origin: `${own}.evil.example` },
      { origin: 'null' },
      {},
    ]
    for (const headers of foreign) {
      for (const [method, path, body] of changes) {
        const answer = await browser.ask(method, path, body, headers)
        expect([answer.status, answer.body.code], `${method} ${path} ${JSON.stringify(headers)}`).toEqual([
          403,
          'cross_origin',
        ])
        expect(answer.headers['set-cookie']).toBeUndefined()
        expect(answer.headers['access-control-allow-origin']).toBeUndefined()
      }
    }
    expect((await api.db.user.findUniqueOrThrow({ where: { id: user.id } })).name).toBe(user.name)
    expect((await browser.ask('GET', '/me')).status).toBe(200)
    expect((await browser.ask('POST', '/token', {}, { origin: own })).status).toBe(200)
  })

  test('reads nothing by the cookie', async () => {
    const { browser } = await newPerson(api)
    for (const site of ['cross-site', 'same-site']) {
      for (const path of ['/me', '/sessions']) {
        expect((await browser.ask('GET', path, undefined, { 'sec-fetch-site': site })).body.code).toBe('cross_origin')
      }
    }
    expect((await browser.ask('GET', '/me', undefined, { 'sec-fetch-site': 'none' })).status).toBe(200)
  })

  test('gets no preflight', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const answer = await api.app.inject({ method: 'OPTIONS', url: '/auth/token', headers })
    expect(answer.statusCode).toBe(404)
    expect(answer.headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('a session', () => {
  test('is a new one at each sign-in, whatever the browser came with, and the one before ends', async () => {
    const user = await createUser(api.db, { email: 'fixed@example.com' })
    const browser = openBrowser(api)
    browser.cookie = 'a'.repeat(43)
    await browser.ask('POST', '/setup', { code: await createLink(api.db, { userId: user.id }) })
    const first = browser.cookie
    expect(first).not.toBe('a'.repeat(43))
    await browser.ask('POST', '/setup', { code: await createLink(api.db, { userId: user.id }) })
    expect(browser.cookie).not.toBe(first)
    const before = openBrowser(api)
    before.cookie = first
    expect((await before.ask('GET', '/me')).body.code).toBe('not_signed_in')
  })

  test('is not taken from a cookie of another name, which a site beside this one could set', async () => {
    const { browser } = await newPerson(api)
    for (const name of ['\u00a0__Host-berth', '__Host-berth\u00a0', '\u000b__Host-berth', '__host-berth']) {
      const headers = { cookie: `${name}=${browser.cookie}`, 'sec-fetch-site': 'same-origin' }
      const answer = await api.app.inject({ url: '/auth/me', headers })
      expect(answer.statusCode, JSON.stringify(name)).toBe(401)
    }
  })

  test('is not one of the API: a cookie opens nothing there', async () => {
    const { browser } = await newPerson(api)
    const headers = { cookie: `__Host-berth=${browser.cookie}` }
    expect((await api.call('GET', '/projects', { token: null, headers })).status).toBe(401)
    expect((await api.call('GET', '/projects', { token: browser.cookie, headers })).status).toBe(401)
  })

  test('ends after seven days without a use, and after thirty in any case', async () => {
    const { browser, user } = await newPerson(api)
    const day = 24 * 60 * 60_000
    const move = (data: object) => api.db.session.updateMany({ where: { userId: user.id }, data })
    await move({ lastSeenAt: new Date(Date.now() - 6.9 * day) })
    expect((await browser.ask('GET', '/me')).status).toBe(200)
    const seen = (await api.db.session.findFirstOrThrow({ where: { userId: user.id } })).lastSeenAt
    expect(Date.now() - seen.getTime()).toBeLessThan(day)
    await move({ expiresAt: new Date(Date.now() - 1) })
    expect((await browser.ask('GET', '/me')).status).toBe(401)
    await move({ expiresAt: new Date(Date.now() + day), lastSeenAt: new Date(Date.now() - 7.1 * day) })
    expect((await browser.ask('POST', '/token', {})).status).toBe(401)
  })

  test('is one of a hundred: with one more the oldest ends, and all are in the list', async () => {
    const { browser, user } = await newPerson(api)
    const first = await api.db.session.findFirstOrThrow({ where: { userId: user.id } })
    const more = Array.from({ length: 99 }, (_, n) => ({ ...first, id: newId('ses'), hash: Buffer.from(`hash ${n}`) }))
    await api.db.session.createMany({ data: more })
    expect((await browser.ask('GET', '/me')).status).toBe(200)
    const other = openBrowser(api)
    await other.ask('POST', '/setup', { code: await createLink(api.db, { userId: user.id }) })
    expect((await browser.ask('GET', '/me')).status).toBe(401)
    expect(await api.db.session.count({ where: { userId: user.id } })).toBe(100)
    expect((await other.ask('GET', '/sessions')).body.sessions).toHaveLength(100)
  })

  test('has no token that is good for longer', async () => {
    const { browser, user } = await newPerson(api)
    const expiresAt = new Date(Date.now() + 60_000)
    await api.db.session.updateMany({ where: { userId: user.id }, data: { expiresAt } })
    expect((await browser.ask('POST', '/token', {})).body.expiresAt).toBe(expiresAt.toISOString())
  })

  test('of somebody else cannot be seen or ended', async () => {
    const [mine, other] = [await newPerson(api), await newPerson(api)]
    const { sessions } = (await other.browser.ask('GET', '/sessions')).body
    expect(sessions).toHaveLength(1)
    expect(sessions[0]).toMatchObject({ current: true, userAgent: 'Test browser', method: 'link' })
    expect((await mine.browser.ask('DELETE', `/sessions/${sessions[0].id}`)).status).toBe(404)
    expect((await other.browser.ask('DELETE', `/sessions/${sessions[0].id}`)).status).toBe(204)
    expect((await other.browser.ask('GET', '/me')).status).toBe(401)
  })
})

test('unknown, used and expired links are answered alike, and trying many is limited', async () => {
  const user = await createUser(api.db, { email: 'alike@example.com' })
  const used = await createLink(api.db, { userId: user.id })
  await openBrowser(api).ask('POST', '/setup', { code: used })
  const browser = openBrowser(api)
  const shown = async (path: string, code: string) => {
    const { status, body } = await browser.ask('POST', path, { code })
    const { requestId: _id, ...rest } = body
    return { status, rest }
  }
  for (const path of ['/setup', '/setup/look']) {
    expect(await shown(path, used)).toEqual(await shown(path, 'unknown'))
  }
  const tries: number[] = []
  for (let count = 0; count < 40; count++) tries.push((await shown('/setup', `guess-${count}`)).status)
  expect(tries.at(-1)).toBe(429)
  // Whoever has a good one is not kept out by those who guess beside them.
  const good = await createLink(api.db, { userId: user.id })
  expect((await browser.ask('POST', '/setup', { code: good })).status).toBe(200)
})

test('a person cannot take the address of another one', async () => {
  const [eve, ada] = [await newPerson(api), await newPerson(api)]
  const refused = await eve.browser.ask('PATCH', '/me', { email: ada.user.email.toUpperCase() })
  expect(refused.body.errors).toMatchObject([{ pointer: '#/email', code: 'taken' }])
  expect((await eve.browser.ask('PATCH', '/me', { operator: true })).status).toBe(422)
  const changed = await eve.browser.ask('PATCH', '/me', { name: 'Eve', mutedMails: ['new-sign-in'] })
  expect(changed.body.user).toMatchObject({ name: 'Eve', mutedMails: ['new-sign-in'], operator: false })
})

test('nobody finds out who is known here by trying addresses one after another', async () => {
  const { browser } = await newPerson(api)
  const statuses: number[] = []
  for (let n = 0; n < 12; n++) {
    statuses.push((await browser.ask('PATCH', '/me', { email: `maybe-${n}@example.com` })).status)
  }
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429, 429])
  expect((await browser.ask('PATCH', '/me', { name: 'Eve' })).status).toBe(200)
})

test('an address with a NUL in it names nothing, and is no error of the server', async () => {
  const { browser } = await newPerson(api)
  for (const path of ['/sessions/%00', '/me/accounts/%00', '/passkeys/%00']) {
    expect((await browser.ask('DELETE', path)).status, path).toBe(404)
  }
})

test('invitations are shown to, accepted and declined by who has proved the address, and nobody else', async () => {
  const { token, accountId } = await api.newAccount()
  const [eve, ada] = [await newPerson(api), await newPerson(api)]
  const email = 'invited@example.com'
  const made = await api.call('POST', '/members/invitations', { token, body: { email, role: 'admin' } })
  const path = `/me/invitations/${made.body.id}`
  // Eve says that the address is hers. Ada has her own.
  expect((await eve.browser.ask('PATCH', '/me', { email })).body.user).toMatchObject({ email, emailProved: false })
  await api.db.user.update({ where: { id: ada.user.id }, data: { emailProvedAt: new Date() } })
  for (const { browser } of [eve, ada]) {
    expect((await browser.ask('GET', '/me')).body.invitations).toEqual([])
    for (const method of ['POST', 'DELETE']) expect((await browser.ask(method, path)).status).toBe(404)
  }
  expect((await openBrowser(api).ask('POST', path)).status).toBe(401)
  expect(await api.db.membership.count({ where: { accountId } })).toBe(0)
  const code = emailVerificationCode(api.deps.vault, { id: eve.user.id, email })
  for (const wrong of ['x', code.slice(1), emailVerificationCode(api.deps.vault, { id: ada.user.id, email })]) {
    expect((await eve.browser.ask('POST', '/me/proof', { code: wrong })).body.code).toBe('link_not_valid')
  }
  // The code of somebody else's address is of no use to who has read it.
  expect((await ada.browser.ask('POST', '/me/proof', { code })).status).toBe(410)
  expect((await eve.browser.ask('POST', '/me/proof', { code })).body.user.emailProved).toBe(true)
  expect((await eve.browser.ask('GET', '/me')).body.invitations).toMatchObject([{ role: 'admin' }])
  expect((await eve.browser.ask('POST', path)).status).toBe(204)
  expect(await api.db.membership.findMany({ where: { accountId } })).toMatchObject([{ userId: eve.user.id }])
})

test('an address that was left is not proved when it is taken again', async () => {
  const { browser, user } = await newPerson(api)
  const code = emailVerificationCode(api.deps.vault, user)
  await browser.ask('PATCH', '/me', { email: `other-${user.email}` })
  expect((await browser.ask('POST', '/me/proof', { code })).status).toBe(410)
})

test('nobody signs in over plain HTTP but on the machine itself', async () => {
  const plain = await startApi({ BASE_URL: 'http://berth.example.com' })
  try {
    const answer = await openBrowser(plain).ask('POST', '/setup', { code: 'x' })
    expect([answer.status, answer.body.code]).toEqual([403, 'insecure_origin'])
  } finally {
    await plain.stop()
  }
})

describe('on another replica', () => {
  const asked = async (app: TestApi['app'], token: string) =>
    (await app.inject({ url: '/api/projects', headers: { authorization: `Bearer ${token}` } })).statusCode

  test('the tokens of a session that ends and of a member who is removed die too', async () => {
    const replica = await startReplica(api)
    try {
      const { accountId, token: key } = await api.newAccount()
      const [leaving, removed] = [await newPerson(api, { accountId }), await newPerson(api, { accountId })]
      const tokens = [await leaving.browser.token(), await removed.browser.token()]
      const { secret } = (await api.call('POST', '/tokens', { token: tokens[1]!, body: { name: 'mine' } })).body
      for (const token of [...tokens, secret]) expect(await asked(replica.app, token)).toBe(200)
      await leaving.browser.ask('DELETE', '/session')
      await until(async () => (await asked(replica.app, tokens[0]!)) === 401)
      expect(await asked(replica.app, tokens[1]!)).toBe(200)
      await api.call('DELETE', `/members/${removed.member.id}`, { token: key })
      await until(async () => (await asked(replica.app, tokens[1]!)) === 401)
      await until(async () => (await asked(replica.app, secret)) === 401)
    } finally {
      await replica.stop()
    }
  })
})

test('a stream of a console ends with its session', async () => {
  const { browser } = await newPerson(api)
  const address = await api.listen()
  const headers = { authorization: `Bearer ${await browser.token()}`, accept: 'text/event-stream' }
  const stream = await fetch(`${address}/api/events`, { headers })
  expect(stream.status).toBe(200)
  await browser.ask('DELETE', '/session')
  // Ends, though nothing was sent: a reader that waits is let go.
  for await (const _chunk of stream.body!) void _chunk
})
