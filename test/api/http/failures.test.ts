// Requests without a valid token: limited per address, few queries for many guesses, and no harm to anybody else.
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { clientOf } from '../../../src/platform/http/client-address.ts'
import { newToken } from '../../../src/platform/secrets/secrets.ts'
import { createTokenDirectory } from '../../../src/services/tokens/directory.ts'
import { createLookUps } from '../../../src/services/tokens/look-ups.ts'
import { selectTokens } from '../../../src/services/tokens/statements.ts'
import { startApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi({ TRUSTED_PROXIES: '10.1.2.3' })
})
afterAll(() => api.stop())

let hosts = 0
const newHost = () => `203.0.113.${++hosts}`

async function ask(address: string, token: string | null, path = '/regions') {
  const headers = {
    'x-forwarded-proto': 'https',
    'x-forwarded-for': address,
    ...(token !== null && { authorization: `Bearer ${token}` }),
  }
  const {
    statusCode,
    headers: sent,
    body,
  } = await api.app.inject({
    url: `/api${path}`,
    headers,
    remoteAddress: '10.1.2.3',
  })
  return { status: statusCode, headers: sent, body: JSON.parse(body) }
}

test.each([
  ['without a token', () => null, 'missing_token'],
  ['with a misspelt token', () => 'guess', 'invalid_token'],
  ['with an unknown token', () => newToken(), 'invalid_token'],
])('61 requests %s: the last is told to wait, and a good token of that address is not', async (_name, token, code) => {
  const address = newHost()
  for (let n = 0; n < 60; n++) expect(await ask(address, token())).toMatchObject({ status: 401, body: { code } })
  const late = await ask(address, token())
  expect(late).toMatchObject({ status: 429, body: { code: 'rate_limited' } })
  expect(late.body.detail).toContain('without a valid token')
  expect(Number(late.headers['retry-after'])).toBeGreaterThan(0)
  expect((await ask(address, api.token)).status).toBe(200)
  expect((await ask(newHost(), token())).status).toBe(401)
})

test('a token of an account made just now passes from an address that guessed a thousand times', async () => {
  const address = newHost()
  const guesses = await Promise.all(Array.from({ length: 1000 }, () => ask(address, newToken())))
  expect(guesses.filter(({ status }) => status === 401)).toHaveLength(60)
  expect(guesses.filter(({ status }) => status === 429)).toHaveLength(940)
  // Not in the memory of the server yet, so it has to be looked up among the guesses.
  const { token } = await api.newAccount()
  const [mine] = await Promise.all([
    ask(address, token),
    ...Array.from({ length: 200 }, () => ask(address, newToken())),
  ])
  expect(mine.status).toBe(200)
})

test('a revoked or expired token and one of a suspended account are told so, then told to wait', async () => {
  const address = newHost()
  const { accountId, token } = await api.newAccount()
  await api.db.account.update({ where: { id: accountId }, data: { suspendedAt: new Date() } })
  for (let n = 0; n < 60; n++) {
    expect(await ask(address, token)).toMatchObject({ status: 403, body: { code: 'account_suspended' } })
  }
  expect((await ask(address, token)).status).toBe(429)
  expect((await ask(address, api.token)).status).toBe(200)
})

test('an IPv6 client is its first 64 bits', async () => {
  for (let n = 0; n < 60; n++) expect((await ask(`2001:db8:1:2::${n.toString(16)}`, null)).status).toBe(401)
  expect((await ask('2001:db8:1:2:ffff:ffff:ffff:ffff', null)).status).toBe(429)
  expect((await ask('2001:db8:1:3::1', null)).status).toBe(401)
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', '20010db800000000/64'],
  ['2001:db8:0:0:1::', '20010db800000000/64'],
  ['fe80::1%eth0', 'fe80000000000000/64'],
  ['::1', '0000000000000000/64'],
])('the client at %s is %s', (address, client) => {
  expect(clientOf(address)).toBe(client)
})

test('many unknown tokens of an address that failed often share a few queries', async () => {
  const directory = createTokenDirectory(api.db, api.deps.notifications)
  const { token } = await api.newAccount()
  const queries = vi.spyOn(pg.Pool.prototype, 'query')
  const asked = Array.from({ length: 400 }, () => directory.find(newToken(), true))
  const found = directory.find(token, true)
  expect(await Promise.all(asked)).toEqual(asked.map(() => null))
  expect(await found).toMatchObject({ scopes: ['*'] })
  // Others ask for something else beside it.
  const lookUps = queries.mock.calls.filter(
    ([query]) => (query as unknown as { name?: string }).name === selectTokens.definition.name,
  )
  expect(lookUps).toHaveLength(1)
  queries.mockRestore()
  await directory.close()
})

test('a token that was looked up is known from then on', async () => {
  const directory = createTokenDirectory(api.db, api.deps.notifications)
  const { token } = await api.newAccount()
  // What is read while a token changes is not kept, and the news of the one just made may still be on its way.
  await vi.waitFor(async () => {
    expect(await directory.find(token, false)).toMatchObject({ scopes: ['*'] })
    expect(directory.findKnown(token)).toMatchObject({ scopes: ['*'] })
  })
  await directory.close()
})

test('look-ups are made one query at a time, each key once, and a failure reaches those who asked', async () => {
  const reads: { keys: string[]; answer(found: string[]): void; fail(): void }[] = []
  const lookUp = createLookUps<string>(
    (keys) =>
      new Promise((resolve, reject) => {
        const answer = (found: string[]) => resolve(new Map(found.map((key) => [key, key.toUpperCase()])))
        reads.push({ keys, answer, fail: () => reject(new Error('away')) })
      }),
    0,
  )
  const first = lookUp('a')
  const second = [lookUp('b'), lookUp('c'), lookUp('b')]
  expect(reads.map(({ keys }) => keys)).toEqual([['a']])
  reads[0]!.answer([])
  expect(await first).toBeNull()
  expect(reads.map(({ keys }) => keys)).toEqual([['a'], ['b', 'c']])
  const third = lookUp('d')
  reads[1]!.answer(['b'])
  expect(await Promise.all(second)).toEqual(['B', null, 'B'])
  reads[2]!.fail()
  await expect(third).rejects.toThrow('away')
  const fourth = lookUp('d')
  reads[3]!.answer(['d'])
  expect(await fourth).toBe('D')
})

test('more look-ups than fit into memory are refused with 503, and the others are answered', async () => {
  const { promise, resolve } = Promise.withResolvers<Map<string, string>>()
  const lookUp = createLookUps<string>(() => promise, 0)
  const asked = Array.from({ length: 5_001 }, (_, n) => lookUp(String(n)))
  await expect(lookUp('one too many')).rejects.toMatchObject({ code: 'overloaded' })
  resolve(new Map([['5000', 'found']]))
  expect((await Promise.all(asked)).filter((one) => one !== null)).toEqual(['found'])
})

test('what waits behind a look-up that fails, fails with it instead of asking a database that is away again', async () => {
  const answer = Promise.withResolvers<Map<string, string>>()
  let reads = 0
  const lookUp = createLookUps(() => {
    reads++
    return reads === 1 ? answer.promise : Promise.resolve(new Map([['c', 'found']]))
  }, 0)
  const asked = [lookUp('a'), lookUp('b')]
  expect(reads).toBe(1)
  answer.reject(new Error('away'))
  const said = await Promise.all(asked.map((one) => one.catch(({ message }: Error) => message)))
  expect({ said, reads }).toEqual({ said: ['away', 'away'], reads: 1 })
  expect(await lookUp('c')).toBe('found')
})
