// Guessing: how often somebody may try, over all servers, and that a flood keeps nobody else out.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashToken } from '../../../src/platform/secrets/secrets.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { Browser, openPerson } from '../../helpers/auth.ts'
import { type Replica, startReplica } from '../../helpers/replica.ts'
import { until } from '../../helpers/until.ts'

const perPerson = 10
const perAddress = 50
const password = 'correct horse battery'

let api: TestApi
let replicas: Replica[]
let passwordHash: string
beforeAll(async () => {
  api = await sharedApi()
  replicas = [await startReplica(api), await startReplica(api)]
  await until(() => replicas.every(({ limits }) => limits.members === 2))
  passwordHash = await api.deps.passwordHasher!.hash(password)
})
afterAll(async () => {
  for (const { stop } of replicas) await stop()
  await api.stop()
})

async function person() {
  const { user } = await openPerson(api)
  await api.db.user.update({ where: { id: user.id }, data: { passwordHash } })
  return user.email
}

const guess = async (email: string, browser: Browser, typed = 'wrong horse battery') =>
  browser.post('/auth/password', { email, password: typed })

/** So many wrong guesses, each from another address; the statuses. */
async function flood(email: string, count: number, apps = [api.app]): Promise<number[]> {
  const statuses: number[] = []
  for (let n = 0; n < count; n++) {
    statuses.push((await guess(email, new Browser(apps[n % apps.length]!))).status)
  }
  return statuses
}

const stepOf = (n: number) => ({
  hash: Uint8Array.from(hashToken(`step-${n}`)),
  kind: 'passkey',
  data: { challenge: 'AA' },
  expiresAt: new Date(Date.now() + 60_000),
})

const times = (status: number, count: number) => Array.from({ length: count }, () => status)

describe('guesses at a password', () => {
  test('are limited for the person, from however many addresses, with the same answer if there is no such person', async () => {
    const answers = []
    for (const email of [await person(), `nobody-${Date.now()}@example.com`]) {
      expect(await flood(email, perPerson)).toEqual(times(401, perPerson))
      // Also the right one: whoever guesses it last does not learn that.
      const answer = await guess(email, new Browser(api.app), password)
      expect(answer).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
      const seconds = Number(answer.headers['retry-after'])
      expect(seconds).toBeGreaterThan(60)
      expect(seconds).toBeLessThanOrEqual(900)
      const { requestId: _id, detail, ...said } = answer.body
      answers.push({ ...said, detail: detail.replace(/\d+/, 'n'), headers: Object.keys(answer.headers).sort() })
    }
    expect(answers[1]).toEqual(answers[0])
  })

  test('are limited though they come all at once', async () => {
    const email = await person()
    const all = await Promise.all(Array.from({ length: 20 }, () => guess(email, new Browser(api.app))))
    expect(all.filter(({ status }) => status === 401).length).toBe(perPerson)
  })

  test('are limited together at all servers', async () => {
    const statuses = await flood(
      await person(),
      20,
      replicas.map(({ app }) => app),
    )
    expect(statuses).toEqual([...times(401, perPerson), ...times(429, 20 - perPerson)])
  })

  test('are limited for an address, whoever they are aimed at', async () => {
    const browser = new Browser(api.app)
    const statuses: number[] = []
    // Passkeys that are none: to the limit all guesses are the same, and these cost no hash.
    const response = { clientDataJSON: 'AA', authenticatorData: 'AA', signature: 'AA', userHandle: 'AA' }
    const body = { response: { id: 'AA', rawId: 'AA', type: 'public-key', response } }
    for (let n = 0; n < perAddress; n++) {
      await api.db.signInStep.create({ data: stepOf(n) })
      browser.cookies.set('__Host-berth-step', `step-${n}`)
      statuses.push((await browser.post('/auth/passkeys/sign-in', body)).status)
    }
    expect(statuses).toEqual(times(401, perAddress))
    expect((await guess(await person(), browser, password)).status).toBe(429)
    expect((await guess(await person(), new Browser(api.app), password)).status).toBe(200)
  })

  test('that are right do not count', async () => {
    const email = await person()
    for (let n = 0; n < perPerson + 2; n++) {
      expect((await guess(email, new Browser(api.app, '127.9.9.9'), password)).status).toBe(200)
    }
  })

  test('do not keep the person out of a browser in which they signed in before', async () => {
    const email = await person()
    const own = new Browser(api.app)
    expect((await guess(email, own, password)).status).toBe(200)
    own.cookies.delete('__Host-berth')
    expect((await flood(email, perPerson + 1)).at(-1)).toBe(429)
    expect((await guess(email, own, password)).status).toBe(200)
    // It has its own limit, and is known for nobody else.
    const stolen = own.copy()
    for (let n = 0; n < perPerson; n++) expect((await guess(email, stolen)).status).toBe(401)
    expect((await guess(email, stolen, password)).status).toBe(429)
    const victim = await person()
    await flood(victim, perPerson)
    expect((await guess(victim, own.copy(), password)).status).toBe(429)
  })

  test('that a session’s finder makes at the password of now are limited too', async () => {
    const { user, browser, age } = await openPerson(api)
    await api.db.user.update({ where: { id: user.id }, data: { passwordHash } })
    await age()
    const statuses: number[] = []
    for (let n = 0; n <= perPerson; n++) {
      statuses.push((await browser.post('/auth/totp/setup', { current: `guess number ${n}` })).status)
    }
    expect(statuses).toEqual([...times(422, perPerson), 429])
  })
})

test('tries are limited for an address though none is wrong, since each costs a row or a hash', async () => {
  const browser = new Browser(api.app)
  const statuses: number[] = []
  for (let n = 0; n <= 120; n++) statuses.push((await browser.post('/auth/passkeys/options')).status)
  expect(statuses).toEqual([...times(200, 120), 429])
})

test('tries are limited for a person though all are right, from however many addresses: each is a hash and an event', async () => {
  const [email, other] = [await person(), await person()]
  const right = async (browser: Browser) => (await guess(email, browser, password)).status
  const statuses: number[] = []
  for (let n = 0; n <= 40; n++) statuses.push(await right(new Browser(api.app)))
  expect(statuses).toEqual([...times(200, 40), 429])
  expect((await guess(other, new Browser(api.app), password)).status).toBe(200)
})

test('whoever knows the password but not the code does not keep the person out of their own browser', async () => {
  const email = await person()
  const own = new Browser(api.app)
  expect((await guess(email, own, password)).status).toBe(200)
  await api.db.user.update({
    where: { email },
    data: { totpConfirmedAt: new Date(), totpSecret: Buffer.from('sealed') },
  })
  for (let n = 0; n <= 40; n++) await guess(email, new Browser(api.app), password)
  expect((await guess(email, new Browser(api.app), password)).status).toBe(429)
  expect((await guess(email, own, password)).body).toEqual({ next: 'totp' })
})

describe('a request from another site', () => {
  const posts = [
    ['POST', '/auth/password', { email: 'ada@example.com', password }],
    ['POST', '/auth/totp', { code: '000000' }],
    ['POST', '/auth/passkeys/options', undefined],
    ['POST', '/auth/passkeys/sign-in', {}],
    ['PUT', '/auth/password', { password }],
    ['POST', '/auth/totp/setup', undefined],
    ['DELETE', '/auth/totp', undefined],
    ['DELETE', '/auth/passkeys/psk_x', undefined],
  ] as const
  test.each(posts)('does nothing: %s %s', async (method, path, body) => {
    const browser = new Browser(api.app)
    const elsewhere: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: 'http://customer.localhost:3000' },
      { 'sec-fetch-site': 'none' },
    ]
    for (const headers of elsewhere) {
      const answer = await browser.send(method, path, body, headers)
      expect(answer).toMatchObject({ status: 403, body: { code: 'cross_origin' } })
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
  })
})
