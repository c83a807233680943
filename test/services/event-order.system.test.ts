import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { migrate } from '../../prisma/migrate.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import {
  append,
  continueLog,
  type EventView,
  eventsAfter,
  type Position,
  positionOf,
} from '../../src/services/events/events.ts'
import { listEvents } from '../../src/services/events/list.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import { createDatabase } from '../helpers/database.ts'
import { until } from '../helpers/until.ts'

const actor = { accountId: 'acc_1', projectIds: null } as unknown as Actor
const write = (db: Database, n: number) =>
  append(db, [{ accountId: 'acc_1', projectId: null, type: 'ticket.created', actor: 'x', subject: 's', data: { n } }])

/** Reads on from a position as a stream does, and returns the numbers that events were written with. */
async function read(db: Database, from: Position): Promise<{ seen: number[]; position: Position }> {
  const { events, position } = await eventsAfter(db, ['acc_1'], from, 500)
  return { seen: events.map(({ view }) => (view.data as { n: number }).n), position }
}

async function idOf(db: Database, n: number): Promise<string> {
  return (await db.event.findFirstOrThrow({ where: { data: { equals: { n } } } })).id
}

/** Copies the rows of a table as a dump does: with every column, and without triggers. */
async function copy(from: string, to: string, table: string): Promise<void> {
  const [source, target] = [from, to].map((connectionString) => new pg.Client({ connectionString }))
  await Promise.all([source!.connect(), target!.connect()])
  const { rows } = await source!.query(`SELECT json_agg(t) AS all FROM "${table}" t`)
  await target!.query('SET session_replication_role = replica')
  await target!.query(`INSERT INTO "${table}" SELECT * FROM json_populate_recordset(NULL::"${table}", $1)`, [
    JSON.stringify(rows[0].all ?? []),
  ])
  await Promise.all([source!.end(), target!.end()])
}

let directory: string
let cluster: EmbeddedPostgres
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-cluster-'))
  cluster = await startEmbeddedPostgres({ directory: join(directory, 'postgres'), durable: false })
})
afterAll(async () => {
  await cluster.stop()
  await rm(directory, { recursive: true, force: true })
})

async function createIn(name: string): Promise<{ url: string; db: Database }> {
  const admin = new pg.Client({ connectionString: cluster.url() })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${name}`)
  await admin.end()
  const url = cluster.url(name)
  await migrate(url)
  return { url, db: openDatabase(url, 4) }
}

describe('events that were restored into another cluster, whose transactions have lower ids', () => {
  test.each([
    ['dumped', ['event_numbering', 'event']],
    ['copied without their numbering', ['event']],
  ])('%s: a reader goes on behind the last one it got, with no gap and no repeat', async (how, tables) => {
    const original = await createDatabase()
    const before = openDatabase(original.url, 2)
    await before.$executeRawUnsafe(
      'DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$',
    )
    for (let n = 1; n <= 6; n++) await write(before, n)
    const lastSeen = await idOf(before, 4)
    await closeDatabase(before)

    const { url, db } = await createIn(`restored_${how.length}`)
    for (const table of tables) await copy(original.url, url, table)
    await original.drop()
    const highest = async () =>
      Number((await db.$queryRaw<{ xid: string }[]>`SELECT max(xid::text::bigint)::text AS xid FROM event`)[0]!.xid)
    const restored = await highest()
    const next = Number((await db.$queryRaw<{ xid: string }[]>`SELECT pg_current_xact_id()::text AS xid`)[0]!.xid)
    // Else the test would show nothing.
    expect(next).toBeLessThan(restored)

    // Before anything is written in the new cluster, and after.
    let { seen, position } = await read(db, await positionOf(db, actor, lastSeen))
    expect(seen).toEqual([5, 6])
    // One that begins first commits last.
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    await continueLog(db)
    const slow = db.$transaction(async (db) => {
      await write(db as Database, 7)
      begun.resolve()
      await gate.promise
    })
    await begun.promise
    await write(db, 8)
    ;({ seen, position } = await read(db, position))
    expect(seen).toEqual([])
    gate.resolve()
    await slow
    ;({ seen, position } = await read(db, position))
    expect(seen).toEqual([7, 8])
    expect((await read(db, position)).seen).toEqual([])
    expect((await read(db, await positionOf(db, actor, lastSeen))).seen).toEqual([5, 6, 7, 8])
    expect(await highest()).toBeGreaterThan(restored)
    await closeDatabase(db)
  })

  test('ten transactions that write first all number by the same rule', async () => {
    const original = await createDatabase()
    const before = openDatabase(original.url, 2)
    await write(before, 0)
    await closeDatabase(before)
    const { url, db } = await createIn('together')
    await copy(original.url, url, 'event_numbering')
    await copy(original.url, url, 'event')
    await original.drop()
    await Promise.all(Array.from({ length: 10 }, (_, n) => write(db, n + 1)))
    const rows = await db.$queryRaw<{ shift: bigint }[]>`
      SELECT DISTINCT writer::text::bigint - xmin::text::bigint AS shift FROM event WHERE (data->>'n')::int > 0`
    expect(rows).toHaveLength(1)
    const { seen } = await read(db, await positionOf(db, actor, await idOf(db, 0)))
    expect(seen.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    await closeDatabase(db)
  })
})

describe('a change that is made on another one', () => {
  let database: Awaited<ReturnType<typeof createDatabase>>
  let db: Database
  beforeEach(async () => {
    database = await createDatabase()
    db = openDatabase(database.url, 4)
  })
  afterEach(async () => {
    await closeDatabase(db)
    await database.drop()
  })

  /** A transaction that has its number from now on, and goes on when it is told. */
  async function begin(then: (db: Database) => Promise<void>) {
    const [begun, told] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const ended = db.$transaction(async (db) => {
      await db.$queryRaw`SELECT pg_current_xact_id()::text`
      begun.resolve()
      await told.promise
      await then(db as Database)
    })
    await begun.promise
    return { goOn: () => told.resolve(), ended }
  }

  test('comes behind it, also if its transaction began before', async () => {
    const start = await positionOf(db, actor, null)
    const early = await begin((db) => write(db, 2))
    await write(db, 1)
    early.goOn()
    await early.ended
    await write(db, 3)
    expect((await read(db, start)).seen).toEqual([1, 2, 3])
  })

  test('comes behind it, also if its statement began before, and waited for its lock', async () => {
    await db.$executeRaw`CREATE TABLE thing (n INTEGER)`
    await db.$executeRaw`INSERT INTO thing VALUES (0)`
    const start = await positionOf(db, actor, null)
    const early = await begin(async (db) => {
      await db.$executeRaw`WITH changed AS (UPDATE thing SET n = 2 RETURNING n)
        INSERT INTO event (id, account_id, type, actor, subject, data, created_at)
        SELECT 'evt_2', 'acc_1', 'ticket.created', 'x', 's', '{"n":2}', now() FROM changed`
    })
    const first = await begin(async (db) => {
      await db.$executeRaw`UPDATE thing SET n = 1`
      early.goOn()
      await until(async () => {
        const [found] = await db.$queryRaw<{ waiting: boolean }[]>`
          SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))) AS waiting`
        return found!.waiting
      })
      await write(db, 1)
    })
    first.goOn()
    await Promise.all([first.ended, early.ended])
    expect((await read(db, start)).seen).toEqual([1, 2])
  })

  test('is listed once, by who has read the list while it was open', async () => {
    const filter = { types: null, subjects: null }
    const list = (after: string[] | null) => listEvents(db, actor, filter, { limit: 10, order: 'asc', after })
    const gate = Promise.withResolvers<void>()
    const written = Promise.withResolvers<void>()
    const early = await begin(async (db) => {
      await write(db, 2)
      written.resolve()
      await gate.promise
    })
    await write(db, 1)
    early.goOn()
    await written.promise
    const numbers = ({ items }: { items: EventView[] }) => items.map(({ data }) => (data as { n: number }).n)
    const first = await list(null)
    expect(numbers(first)).toEqual([1])
    gate.resolve()
    await early.ended
    const second = await list(first.last)
    expect(numbers(second)).toEqual([2])
    expect(numbers(await list(second.last))).toEqual([])
  })
})

// PostgreSQL writes the numbers of transactions down with their changes. Killed, it gives those above the last again.
test('a reader stands at an event, never at a number that nobody wrote', async () => {
  const database = await createDatabase()
  const db = openDatabase(database.url, 2)
  const start = await positionOf(db, actor, null)
  await write(db, 1)
  await db.$executeRawUnsafe('DO $$ BEGIN FOR i IN 1..10 LOOP PERFORM pg_current_xact_id(); ROLLBACK; END LOOP; END $$')
  const [event] = await db.$queryRaw<Position[]>`SELECT xid::text, seq::text FROM event`
  expect(await read(db, start)).toEqual({ seen: [1], position: event })
  expect(await read(db, event!)).toEqual({ seen: [], position: event })
  expect(await positionOf(db, actor, null)).toEqual(event)
  expect(await positionOf(db, actor, await idOf(db, 1))).toEqual(event)
  await closeDatabase(db)
  await database.drop()
})
