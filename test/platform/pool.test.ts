// The pool of connections: shares of groups, and how it says that it is full or that the database is away.
import type { Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { toFault } from '../../src/api/http/responses/problem.ts'
import { closeDatabase, type Db, openDatabase } from '../../src/platform/database/database.ts'
import { inGroups, newDatabaseWait, Pool, type PoolLimits } from '../../src/platform/database/pool.ts'
import { createDatabase } from '../helpers/database.ts'
import { openLink } from '../helpers/link.ts'
import { until } from '../helpers/until.ts'

let database: Awaited<ReturnType<typeof createDatabase>>
const pools: Pool[] = []
beforeAll(async () => {
  database = await createDatabase()
})
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.end()
})
afterAll(() => database.drop())

function open(size: number, limits: Partial<PoolLimits> = {}, url = database.url): Pool {
  const pool = new Pool({ url, size, class: 'requests', limits })
  pools.push(pool)
  return pool
}

const take = (pool: Pool, count: number, groups: string[]) =>
  Promise.all(Array.from({ length: count }, () => inGroups(groups, () => pool.connect())))
const release = (clients: pg.PoolClient[]) => {
  for (const client of clients) client.release()
}

test('a group holds its share and no more; others get the rest, and it gets the next when one of its own is free', async () => {
  const pool = open(10)
  const first = await take(pool, 6, ['tickets'])
  let more = 0
  const late = Array.from({ length: 3 }, () =>
    inGroups(['tickets'], () => pool.connect()).then((client) => {
      more++
      return client
    }),
  )
  const others = await take(pool, 4, ['projects'])
  expect(pool.usage).toMatchObject({ size: 10, inUse: 10, waiting: 3 })
  // Free connections of others are not for a group that has its share.
  release(others)
  release(await take(pool, 2, []))
  expect({ more, waiting: pool.usage.waiting }).toEqual({ more: 0, waiting: 3 })
  first.pop()!.release()
  await until(() => more === 1)
  expect(pool.usage).toMatchObject({ size: 10, inUse: 6, waiting: 2 })
  release(first)
  release(await Promise.all(late))
  expect(pool.usage).toMatchObject({ size: 10, inUse: 0, waiting: 0 })
})

test('work in two groups needs room in both, and a small pool leaves one for others', async () => {
  const pool = open(2)
  const [one] = await take(pool, 1, ['tickets', 'changes'])
  const waiting = take(pool, 1, ['projects', 'changes'])
  const [reading] = await take(pool, 1, ['projects'])
  expect(pool.usage.waiting).toBe(1)
  reading!.release()
  one!.release()
  release(await waiting)
})

test('a group within a group leaves some of the share to the others in it', async () => {
  const pool = open(10)
  const changes = await take(pool, 4, ['dns', 'dns/changes'])
  const waiting = take(pool, 1, ['dns', 'dns/changes'])
  const reads = await take(pool, 2, ['dns'])
  expect(pool.usage).toMatchObject({ inUse: 6, waiting: 1 })
  release(reads)
  changes.pop()!.release()
  release(await waiting)
  release(changes)
})

test('several groups that hang in a full pool leave what becomes free to the others', async () => {
  const pool = open(10)
  const held = [...(await take(pool, 5, ['tickets'])), ...(await take(pool, 5, ['domains']))]
  const got: string[] = []
  const ask = (group: string) =>
    take(pool, 1, [group]).then(([client]) => {
      got.push(group)
      return client!
    })
  const waiting = [ask('tickets'), ask('domains'), ask('projects'), ask('projects')]
  await until(() => pool.usage.waiting === 4)
  held.shift()!.release()
  await until(() => got.length === 1)
  held.shift()!.release()
  await until(() => got.length === 2)
  expect(got).toEqual(['projects', 'projects'])
  release(held)
  release(await Promise.all(waiting))
})

test('a connection that could not be made, or broke, takes no share with it', async () => {
  const link = await openLink(database.url)
  const pool = open(3, {}, link.url)
  const [held] = await take(pool, 1, ['tickets'])
  link.cut()
  await expect(held!.query('SHOW port')).rejects.toThrow()
  held!.release()
  for (let n = 0; n < 5; n++) await expect(take(pool, 1, ['tickets'])).rejects.toThrow()
  expect(pool.usage).toMatchObject({ size: 3, inUse: 0, waiting: 0 })
  await link.mend()
  release(await take(pool, 2, ['tickets']))
  link.close()
})

test('a full pool is overload, by the pool, a model and a transaction alike', async () => {
  const db = openDatabase(database.url, 2, { limits: { waitMs: 20, lockMs: 10_000 } })
  const watcher = open(1)
  const blocker = new pg.Client(database.url)
  await blocker.connect()
  await blocker.query('BEGIN; LOCK TABLE ticket')
  const held = [db.ticket.count(), db.ticket.count()].map((work) => work.then((count) => count))
  await until(async () => {
    const waiting = await watcher.query(`SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`)
    return waiting.rowCount === 2
  })
  const attempts = [
    () => db.account.count(),
    () => db.$transaction((db) => db.account.count()),
    () => db.$queryRaw`SHOW port`,
  ]
  for (const attempt of attempts) {
    const error = await attempt().then(
      () => null,
      (error: unknown) => error,
    )
    expect(toFault(error)).toMatchObject({ code: 'overloaded', members: { retryAfterSeconds: 2 } })
  }
  await blocker.query('ROLLBACK')
  await blocker.end()
  expect(await Promise.all(held)).toEqual([0, 0])
  await closeDatabase(db)
})

test('a transaction that takes too long is overload', async () => {
  const db = openDatabase(database.url, 2)
  const late = async (db: Db) => {
    await db.$queryRaw`SELECT 1 FROM pg_sleep(0.05)`
    await db.account.count()
  }
  const error = await db.$transaction(late, { timeout: 5 }).catch((error: unknown) => error)
  expect(toFault(error).code).toBe('overloaded')
  await closeDatabase(db)
})

test('a database that is away is told as such, also to those who wait while others try to connect', async () => {
  const link = await openLink(database.url)
  const pool = open(2, { waitMs: 20 }, link.url)
  link.freeze()
  const asked = Array.from({ length: 4 }, () => pool.query('SHOW port').catch((error: unknown) => error))
  await until(() => pool.usage.waiting === 0)
  link.close()
  for (const error of await Promise.all(asked)) expect(toFault(error).code).toBe('database_unavailable')
})

test('a connection that is cut without a word is given up, and the pool goes on', async () => {
  const link = await openLink(database.url)
  const pool = open(2, { statementMs: 100 }, link.url)
  const client = await pool.connect()
  await client.query('BEGIN')
  await pool.query('SHOW port')
  link.freeze()
  const asked = [client.query('SHOW port'), pool.query('SHOW port')].map((query) =>
    query.catch((error: unknown) => error),
  )
  for (const error of await Promise.all(asked)) expect(toFault(error).code).toBe('database_unavailable')
  client.release()
  link.thaw()
  await Promise.all([pool.query('SHOW port'), pool.query('SHOW port')])
  link.close()
})

test('so is one that was idle for longer than that before', async () => {
  const link = await openLink(database.url)
  const pool = open(1, { statementMs: 100 }, link.url)
  const client = await pool.connect()
  ;(client as unknown as { connection: { stream: Socket } }).connection.stream.emit('timeout')
  client.release()
  link.freeze()
  const error = await pool.query('SHOW port').catch((error: unknown) => error)
  expect(toFault(error).code).toBe('database_unavailable')
  expect(pool.usage.inUse).toBe(0)
  link.close()
})

test('a request hears nothing from the database for one limit, not for one at each statement', async () => {
  const link = await openLink(database.url)
  const pool = open(2, { statementMs: 100 }, link.url)
  await pool.query('SHOW port')
  link.freeze()
  const connecting = vi.spyOn(pg.Pool.prototype, 'connect')
  const connected = () => connecting.mock.contexts.filter((one) => (one as unknown) === pool)
  const wait = newDatabaseWait()
  const ask = () => inGroups(['tickets'], () => pool.query('SHOW port').catch((error: unknown) => error), wait)
  const saidNothing = { message: 'Connection terminated: the database said nothing for too long' }
  expect(await ask()).toMatchObject(saidNothing)
  expect(connected()).toHaveLength(1)
  // Whatever went on after the first statement: the request has no time left.
  for (const error of [await ask(), await ask()]) {
    expect(error).toMatchObject(saidNothing)
    expect(toFault(error).code).toBe('database_unavailable')
  }
  expect(connected()).toHaveLength(1)
  // Another request begins anew, and gets the connection that is made for it.
  link.thaw()
  await inGroups(['tickets'], () => pool.query('SHOW port'), newDatabaseWait())
  expect(connected()).toHaveLength(2)
  // So does a stream of the first one, whose response is being sent.
  wait.isOver = true
  expect(await ask()).toMatchObject({ command: 'SHOW' })
  connecting.mockRestore()
  link.close()
})

test('what a request waited before is taken from the time to connect, and a late connection goes to the next', async () => {
  const link = await openLink(database.url)
  const pool = open(2, { statementMs: 100 }, link.url)
  link.freeze()
  // The limit is 2.1 s here, and that of connecting 5 s.
  const wait = { ...newDatabaseWait(), sinceMs: performance.now() - 1_900 }
  const error = await inGroups([], () => pool.query('SHOW port').catch((error: unknown) => error), wait)
  expect(error).toMatchObject({ message: 'Connection terminated: the database said nothing for too long' })
  expect(pool.usage).toMatchObject({ inUse: 1 })
  link.cut()
  await until(() => pool.usage.inUse === 0)
})

test('an answer ends the wait of a request, in the middle of a transaction too', async () => {
  const pool = open(2)
  const wait = newDatabaseWait()
  await inGroups(
    [],
    async () => {
      const client = await pool.connect()
      expect(wait.sinceMs).not.toBeNull()
      await client.query('BEGIN')
      expect(wait.sinceMs).toBeNull()
      client.release(true)
    },
    wait,
  )
})
