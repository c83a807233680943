// What a session asked for and was still under way when the session ended, such as by its owner at another browser.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { type AuthAnswer, type Browser, openPerson } from '../../helpers/auth.ts'
import { Authenticator } from '../../helpers/authenticator.ts'
import { until } from '../../helpers/until.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const origin = 'http://localhost:3000'
const waits = () => api.db.$queryRaw<{ pid: number }[]>`SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock'`

/** Sends what was prepared, and ends all sessions of the person before it writes, as a first sign-in by the provider does. */
async function whileEnding(userId: string, send: () => Promise<AuthAnswer>): Promise<AuthAnswer> {
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ending = api.db.$transaction(async (db) => {
    await db.user.update({ where: { id: userId }, data: { emailProvedAt: new Date() } })
    await db.session.deleteMany({ where: { userId } })
    begun.resolve()
    await held.promise
  })
  await begun.promise
  const late = send()
  await until(async () => (await waits()).length > 0)
  held.resolve()
  await ending
  return late
}

const requests: [what: string, prepare: (browser: Browser) => Promise<() => Promise<AuthAnswer>>][] = [
  [
    'sets no password',
    async (browser) => () => browser.send('PUT', '/auth/password', { password: 'correct horse battery' }),
  ],
  [
    'makes no passkey',
    async (browser) => {
      const { body: options } = await browser.post('/auth/passkeys/register/options')
      const response = new Authenticator(origin).create(options)
      return () => browser.post('/auth/passkeys', { name: 'Key', response })
    },
  ],
  [
    'changes no address',
    async (browser) => () => browser.send('PATCH', '/auth/me', { email: `late-${Date.now()}@example.com` }),
  ],
]

test.each(requests)('a session that has ended meanwhile %s', async (_what, prepare) => {
  const { user, browser } = await openPerson(api)
  const send = await prepare(browser)
  expect(await whileEnding(user.id, send)).toMatchObject({ status: 401, body: { code: 'not_signed_in' } })
  expect(await api.db.user.findUnique({ where: { id: user.id } })).toMatchObject({
    email: user.email,
    passwordHash: null,
  })
  expect(await api.db.passkey.count({ where: { userId: user.id } })).toBe(0)
})
