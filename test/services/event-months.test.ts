import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { newId } from '../../src/platform/ids.ts'
import { positionOf } from '../../src/services/events/events.ts'
import { filterOf, listEvents } from '../../src/services/events/list.ts'
import { maintainEventMonths } from '../../src/services/events/months.ts'
import type { Actor } from '../../src/services/identity/actor.ts'
import { createDatabase } from '../helpers/database.ts'

type Made = Awaited<ReturnType<typeof createDatabase>>
let made: Made
let db: Database
beforeAll(async () => {
  made = await createDatabase()
  db = openDatabase(made.url, 6)
  await db.account.create({ data: { id: 'acc_1', name: 'one', createdAt: new Date() } })
  await db.webhook.create({
    data: {
      id: 'whk_1',
      accountId: 'acc_1',
      url: 'http://127.0.0.1:1/',
      events: ['*'],
      active: true,
      secret: Buffer.from('x'),
      createdAt: new Date(),
      updatedAt: new Date(),
    },
  })
})
afterAll(async () => {
  await closeDatabase(db)
  await made.drop()
})

const actor = { accountId: 'acc_1', projectIds: null } as unknown as Actor
const inMonths = (months: number, day = 15) => {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, day))
}
const tables = async () =>
  (await db.$queryRaw<{ name: string }[]>`SELECT name FROM event_months() ORDER BY name`).map((m) => m.name)
const tableOf = async (subject: string) =>
  (
    await db.$queryRaw<
      { name: string }[]
    >`SELECT tableoid::regclass::text AS name FROM event WHERE subject = ${subject}`
  )[0]?.name
const nameOf = (at: Date) => `event_${at.toISOString().slice(0, 7).replace('-', '')}`
/** Writes an event with the id of another time. */
async function writeAt(at: Date, subject: string): Promise<void> {
  await db.$executeRaw`INSERT INTO event (id, account_id, type, actor, subject, data, created_at)
    VALUES (event_id_at(${at}::timestamptz AT TIME ZONE 'UTC') || ${newId('evt').slice(-14)}, 'acc_1', 'ticket.created', 'x',
      ${subject}, '{}', now())`
}

describe('the months of the log', () => {
  test('are made ahead, by ten servers as by one, and an event is in that of its time', async () => {
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => maintainEventMonths(db, 13)))
    expect(outcomes.reduce((sum, { made }) => sum + made, 0)).toBe(1)
    expect(await tables()).toEqual(['event_000000', nameOf(inMonths(1)), nameOf(inMonths(2))])
    await writeAt(new Date(), 'now')
    await writeAt(inMonths(1), 'next')
    expect(await tableOf('now')).toBe('event_000000')
    expect(await tableOf('next')).toBe(nameOf(inMonths(1)))
  })

  test('need nobody to make them: without, every event has a place, and is delivered once', async () => {
    await writeAt(inMonths(30), 'far')
    expect(await tableOf('far')).toBe(nameOf(inMonths(2)))
    // A clock that is wrong holds up nothing: the table gets its upper bound, and the event goes into the one after it.
    expect(await maintainEventMonths(db, 13, undefined, inMonths(1))).toMatchObject({ made: 1 })
    expect(await tableOf('far')).toBe(nameOf(inMonths(3)))
    for (const subject of ['now', 'next', 'far']) {
      const { id } = await db.event.findFirstOrThrow({ where: { subject } })
      expect(await db.delivery.count({ where: { eventId: id } })).toBe(1)
    }
  })

  test('wait no longer than a second for a transaction, which goes on, and come the next time', async () => {
    const other = new pg.Client({ connectionString: made.url })
    await other.connect()
    await other.query('BEGIN')
    await other.query('SELECT count(*) FROM event')
    await expect(maintainEventMonths(db, 13, undefined, inMonths(2))).rejects.toThrow(/lock timeout/)
    await writeAt(new Date(), 'meanwhile')
    await other.query('COMMIT')
    await other.end()
    expect(await maintainEventMonths(db, 13, undefined, inMonths(2))).toMatchObject({ made: 1 })
  })

  test('are dropped when all of them are too old, and a table of both old and new events loses the old', async () => {
    await writeAt(inMonths(3, 1), 'kept')
    await writeAt(inMonths(3, 20), 'also kept')
    const before = await db.event.count()
    // Sixteen months later, after a long pause: events of three months from now on are within the thirteen.
    const { dropped, deleted } = await maintainEventMonths(db, 13, undefined, inMonths(16))
    expect(dropped).toBe(3)
    expect((await tables()).slice(0, 2)).toEqual(['event_000000', nameOf(inMonths(3))])
    const left = (await db.event.findMany({ orderBy: { id: 'asc' } })).map((event) => event.subject)
    expect(left).toEqual(['kept', 'also kept', 'far'])
    expect(before - left.length).toBeGreaterThan(deleted)
    expect(await maintainEventMonths(db, 13, undefined, inMonths(16))).toEqual({ made: 0, dropped: 0, deleted: 0 })
    // A clock that is wrong in the other direction.
    await writeAt(inMonths(-100), 'long ago')
    expect(await tableOf('long ago')).toBe('event_000000')
    expect(await maintainEventMonths(db, 13, undefined, inMonths(17))).toMatchObject({ dropped: 2, deleted: 0 })
    // The table of the months of the long pause has both.
    await writeAt(inMonths(4), 'old')
    await writeAt(inMonths(5), 'new')
    expect(await tableOf('old')).toBe(await tableOf('new'))
    expect(await maintainEventMonths(db, 13, undefined, inMonths(18))).toMatchObject({ dropped: 0, deleted: 1 })
    expect((await db.event.findMany({ orderBy: { id: 'asc' } })).map((event) => event.subject)).toEqual(['new', 'far'])
  })

  test('leave a reader who was away for longer with a clear answer', async () => {
    await expect(positionOf(db, actor, 'evt_01jcqk8c4p0gs16q0td7w3y2')).rejects.toMatchObject({
      code: 'invalid_cursor',
    })
  })
})

describe('a page of the list reads no more rows than it shows, of 6,000 in three months', () => {
  beforeAll(async () => {
    const client = new pg.Client({ connectionString: made.url })
    await client.connect()
    await client.query(`ALTER TABLE event DISABLE TRIGGER ALL;
      INSERT INTO event (id, account_id, project_id, type, actor, subject, data, created_at)
      SELECT event_id_at(now()::timestamp + i * interval '20 minutes') || lpad(i::text, 14, '0'), 'acc_' || 1 + i % 10 / 9,
        CASE WHEN i % 600 = 7 THEN 'prj_rare' WHEN i % 3 > 0 THEN 'prj_' || i % 5 END,
        CASE WHEN i % 1200 = 10 THEN 'domain.ssl.error' ELSE 'ticket.created' END, 'x',
        CASE WHEN i % 1400 = 11 THEN 'rare' ELSE 's' || i % 1800 END, '{}', now() FROM generate_series(1, 6000) i;
      ALTER TABLE event ENABLE TRIGGER ALL; ANALYZE event`)
    await client.end()
  })

  const narrowed = (...projectIds: string[]) => ({ ...actor, projectIds }) as Actor
  test.each<[string, Actor, Parameters<typeof filterOf>[0], number]>([
    ['without a filter', actor, {}, 21],
    ['of a frequent type', actor, { type: ['ticket.created'] }, 21],
    ['of a rare type', actor, { type: ['domain.ssl.error'] }, 5],
    ['of the types of a prefix', actor, { type: ['domain.ssl.*'] }, 5],
    ['of a type that there is not', actor, { type: ['account.suspended'] }, 0],
    ['of a subject', actor, { subject: ['rare'] }, 5],
    ['of a subject and a type', actor, { subject: ['rare'], type: ['domain.ssl.error'] }, 0],
    ['of a subject that there is not', actor, { subject: ['none'] }, 0],
    ['for a token of a quiet project', narrowed('prj_rare'), {}, 10],
    ['for a token of three projects', narrowed('prj_rare', 'prj_1', 'prj_none'), {}, 21],
  ])('%s', async (_name, reader, filter, shown) => {
    for (const order of ['asc', 'desc'] as const) {
      const { text, values } = await asked(() =>
        listEvents(db, reader, filterOf(filter), { limit: 20, order, after: null }),
      )
      const client = new pg.Client({ connectionString: made.url })
      await client.connect()
      const explained = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values)
      await client.end()
      const [{ Plan: plan }] = explained.rows[0]['QUERY PLAN']
      expect(plan['Actual Rows']).toBe(shown)
      // Every table begins with its own first row, and each project with its own page, before the rows are read.
      expect(rowsRead(plan)).toBeLessThanOrEqual(4 * 21 + 10)
    }
  })

  /** The statement that a call sends to the pool. */
  async function asked(call: () => Promise<unknown>): Promise<{ text: string; values: unknown[] }> {
    const query = vi.spyOn(pg.Pool.prototype, 'query')
    await call()
    // Other tests share this process, and what they left may ask a database of its own meanwhile.
    const { calls, contexts } = query.mock
    const own = contexts.findLastIndex((pool) => (pool as pg.Pool).options.connectionString === made.url)
    const [given] = calls[own] as unknown as [{ text: string; values: unknown[] }]
    query.mockRestore()
    return given
  }

  // biome-ignore lint/suspicious/noExplicitAny: a plan is what PostgreSQL makes of it.
  function rowsRead(plan: any): number {
    const below = (plan.Plans ?? []).reduce((sum: number, child: unknown) => sum + rowsRead(child), 0)
    if (!plan['Relation Name']) return below
    const removed = (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Index Recheck'] ?? 0)
    return below + (plan['Actual Rows'] + removed) * plan['Actual Loops']
  }
})
