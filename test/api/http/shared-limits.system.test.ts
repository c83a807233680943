// Limits that several API servers share: a token, an account, an address and open streams get about what one server
// would give them, whichever servers they ask, and no request costs a query of its own.
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../helpers/api.ts'
import { type Connection, listening, openConnection, requestOf } from '../../helpers/connection.ts'
import { type Replica, startReplica } from '../../helpers/replica.ts'
import { until } from '../../helpers/until.ts'

const perToken = 300
const perAccount = 600
const streams = 20

let api: TestApi
let replicas: Replica[]

beforeAll(async () => {
  api = await startApi({
    RATE_LIMIT_PER_MINUTE: String(perToken),
    RATE_LIMIT_PER_ACCOUNT_PER_MINUTE: String(perAccount),
    QUOTA_STREAMS: String(streams),
  })
  replicas = []
  for (let count = 1; count <= 3; count++) {
    const replica = await startReplica(api)
    await listening(replica)
    replicas.push(replica)
    // Those that are there already hear of the new one.
    await until(() => replicas.every(({ limits }) => limits.members === count))
  }
})
beforeEach(async () => {
  await until(() => replicas.every(({ limits }) => limits.members === 3))
  for (const replica of replicas) replica.asked = 0
})
afterAll(async () => {
  for (const { stop } of replicas) await stop()
  await api.stop()
})

type Answer = { status: number; left: number }

async function ask({ app }: Replica, token: string): Promise<Answer> {
  const { statusCode, headers } = await app.inject({
    url: '/api/regions',
    headers: { authorization: `Bearer ${token}` },
  })
  return { status: statusCode, left: Number(/"token";r=(\d+)/.exec(String(headers.ratelimit))?.[1]) }
}

const admitted = (answers: Answer[]) => answers.filter(({ status }) => status === 200).length
const within = (count: number, quota: number) => {
  expect(count).toBeGreaterThanOrEqual(0.9 * quota)
  expect(count).toBeLessThanOrEqual(1.1 * quota)
}

/** Asks so often, by the replica that `choose` names for each, so many at once. */
async function askOften(token: string, count: number, atOnce: number, choose: (n: number) => number) {
  const answers: Answer[] = []
  for (let n = 0; n < count; n += atOnce) {
    const burst = Array.from({ length: Math.min(atOnce, count - n) }, (_, i) => replicas[choose(n + i)]!)
    answers.push(...(await Promise.all(burst.map((replica) => ask(replica, token)))))
  }
  return answers
}

describe('requests of a token at three servers', () => {
  const ways: [string, number, (n: number) => number][] = [
    ['evenly, one after the other', 1, (n) => n % 3],
    ['evenly, all at once', 450, (n) => n % 3],
    ['at one server only', 30, () => 1],
    ['at one server, then at the others', 30, (n) => Math.min(2, Math.floor(n / 150))],
    ['mostly at one server', 30, (n) => (n % 20 === 0 ? 0 : n % 21 === 0 ? 1 : 2)],
  ]
  test.each(ways)('are bounded together within a tenth: %s', async (_name, atOnce, choose) => {
    const { token } = await api.newAccount()
    const answers = await askOften(token, 1.5 * perToken, atOnce, choose)
    within(admitted(answers), perToken)
    // It costs a query now and then, and nothing once it is known that all is used up.
    const asked = replicas.reduce((sum, replica) => sum + replica.asked, 0)
    expect(asked).toBeLessThan(perToken / 2)
  })

  test('are told what is left by each server, also by one that was not asked yet', async () => {
    const { token } = await api.newAccount()
    await askOften(token, 200, 20, () => 0)
    await until(async () => Math.abs((await ask(replicas[1]!, token)).left - 100) <= 0.1 * perToken)
    const { left } = await ask(replicas[2]!, token)
    expect(Math.abs(left - 100)).toBeLessThanOrEqual(0.1 * perToken)
    const rest = await askOften(token, 150, 10, (n) => n % 3)
    expect(rest.filter(({ status }) => status === 429).every(({ left }) => left === 0)).toBe(true)
    within(200 + 2 + admitted(rest), perToken)
  })

  test('of an account with several tokens are bounded together', async () => {
    const { token } = await api.newAccount()
    const tokens = [token]
    for (let n = 0; n < 3; n++) {
      tokens.push((await api.call('POST', '/tokens', { token, body: { name: `t${n}` } })).body.token)
    }
    const answers = await Promise.all(tokens.map((one) => askOften(one, 0.9 * perToken, 15, (n) => n % 3)))
    within(admitted(answers.flat()), perAccount)
  })
})

test('requests without a valid token are bounded by address at all servers together', async () => {
  const statuses: number[] = []
  for (let n = 0; n < 90; n++) {
    const { statusCode } = await replicas[n % 3]!.app.inject({ url: '/api/regions', remoteAddress: '127.0.0.9' })
    statuses.push(statusCode)
  }
  within(statuses.filter((status) => status === 401).length, 60)
  expect(statuses.at(-1)).toBe(429)
})

test('while the database does not answer, each server counts alone, and goes on together afterwards', async () => {
  const hasty = await startReplica(api, 100)
  const client = new pg.Client(api.databaseUrl)
  await client.connect()
  await client.query('BEGIN; LOCK TABLE limit_window IN ACCESS EXCLUSIVE MODE')
  const { token } = await api.newAccount()
  const answers: Answer[] = []
  for (let n = 0; n < 1.2 * perToken; n++) answers.push(await ask(hasty, token))
  expect(admitted(answers)).toBe(perToken)
  await client.query('ROLLBACK')
  await client.end()
  await until(() => hasty.limits.members === 4)
  // What it used alone counts from then on.
  await ask(hasty, token)
  await until(async () => (await ask(replicas[0]!, token)).status === 429)
  await hasty.stop()
})

describe('streams of an account', () => {
  const open: Connection[] = []
  afterEach(async () => {
    for (const { socket } of open.splice(0)) socket.destroy()
    await until(() => replicas.every(({ app }) => app.shares.open.streams === 0))
  })

  async function stream(replica: Replica, token: string): Promise<number> {
    const connection = await openConnection(replica)
    connection.send(requestOf(token, 'GET', '/events', { accept: 'text/event-stream' }))
    const [status] = await connection.answers(1)
    open.push(connection)
    return status!
  }

  test('are bounded over all servers, and one that is closed at one server is free at another', async () => {
    const { token } = await api.newAccount()
    const statuses = await Promise.all(Array.from({ length: 30 }, (_, n) => stream(replicas[n % 3]!, token)))
    within(statuses.filter((status) => status === 200).length, streams)
    const usage = async () => {
      const { body } = await replicas[1]!.app.inject({
        url: '/api/account',
        headers: { authorization: `Bearer ${token}` },
      })
      return JSON.parse(body).usage.streams as number
    }
    expect(await usage()).toBe(statuses.filter((status) => status === 200).length)
    for (const { socket } of open.splice(0)) socket.destroy()
    await until(async () => (await usage()) === 0)
    const again = await Promise.all(Array.from({ length: 25 }, () => stream(replicas[2]!, token)))
    within(again.filter((status) => status === 200).length, streams)
  })

  test('at a server that died are free when it was not seen for a while', async () => {
    const { token, accountId } = await api.newAccount()
    await api.db.limitMember.create({ data: { id: 'dead', seenAt: new Date() } })
    await api.db.limitOpen.create({ data: { accountId, kind: 'streams', member: 'dead', held: streams } })
    expect(await stream(replicas[0]!, token)).toBe(403)
    await api.db.limitMember.update({ where: { id: 'dead' }, data: { seenAt: new Date(Date.now() - 6_000) } })
    expect(await stream(replicas[0]!, token)).toBe(200)
  })
})
