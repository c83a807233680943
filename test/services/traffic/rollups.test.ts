// What processes count is added up, once, also when the database was away, and kept for its time.

import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeDatabase, type Database, openDatabase } from '../../../src/platform/database/database.ts'
import { createTallies } from '../../../src/platform/observe/tallies.ts'
import { edgeAt, edgeColumns } from '../../../src/schemas/traffic-columns.ts'
import { rangeOf } from '../../../src/services/traffic/ranges.ts'
import { deleteOldTraffic, retentionStart } from '../../../src/services/traffic/retention.ts'
import { type Rollups, type RollupsOptions, startTrafficRollups } from '../../../src/services/traffic/rollups.ts'
import { addTraffic } from '../../../src/services/traffic/statements.ts'
import { quantileOf } from '../../../src/services/traffic/traffic.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'
import { newTenant } from '../../helpers/builds.ts'
import { type Link, openLink } from '../../helpers/pausable-link.ts'

const log = pino({ level: 'silent' })
let api: TestApi
let projectId: string
beforeAll(async () => {
  api = await sharedApi()
})
beforeEach(async () => {
  projectId = (await newTenant(api)).projectId
})
const opened: Rollups[] = []
afterAll(async () => {
  for (const rollups of opened) await rollups.close()
  await api.stop()
})

/** A process that counts; `visit` is one request to a host. */
function process(options: Partial<RollupsOptions> = {}) {
  const tallies = createTallies(edgeColumns.length)
  const rollups = startTrafficRollups({ db: api.db, tallies, log, ...options })
  opened.push(rollups)
  const known = new Map<string, ReturnType<typeof tallies.create>>()
  return {
    ...rollups,
    visit(host: string, owner = projectId) {
      const tally = known.get(host) ?? tallies.create(owner, host)
      known.set(host, tally)
      tally.open()[edgeAt.status + 2]! += 1
      tally.open()[edgeAt.bytes]! += 10
    },
  }
}

const rows = async (step: string, owner = projectId) =>
  (await api.db.traffic.findMany({ where: { projectId: owner, step }, orderBy: [{ at: 'asc' }, { host: 'asc' }] })).map(
    ({ at, host, s2, bytes }) => [at.toISOString().slice(11, 16), host, Number(s2), Number(bytes)],
  )

const at = (time: string) => Date.parse(`2026-11-14T${time}Z`)

test('several processes add up in minutes and hours, each count once', async () => {
  let nowMs = at('09:58:30')
  const now = () => nowMs
  const [one, other] = [process({ now }), process({ now })]
  for (const { visit } of [one, one, other]) visit('a.test')
  other.visit('b.test')
  nowMs = at('09:59:00')
  await Promise.all([one.flush(), other.flush()])
  one.visit('a.test')
  nowMs = at('10:00:00')
  await Promise.all([one.flush(), other.flush()])
  other.visit('a.test')
  await other.flush()
  await other.flush()
  expect(await rows('minute')).toEqual([
    ['09:58', 'a.test', 3, 30],
    ['09:58', 'b.test', 1, 10],
    ['09:59', 'a.test', 1, 10],
    ['10:00', 'a.test', 1, 10],
  ])
  expect(await rows('hour')).toEqual([
    ['09:00', 'a.test', 4, 40],
    ['09:00', 'b.test', 1, 10],
    ['10:00', 'a.test', 1, 10],
  ])
})

test('two tallies of the same host are one row, and counts after a flush are of the next', async () => {
  const now = () => at('09:00:00')
  const tallies = createTallies(edgeColumns.length)
  const rollups = startTrafficRollups({ db: api.db, tallies, log, now })
  opened.push(rollups)
  const [old, fresh] = [tallies.create(projectId, 'a.test'), tallies.create(projectId, 'a.test')]
  for (const tally of [old, fresh, old]) tally.open()[edgeAt.status + 2]! += 1
  await rollups.flush()
  old.open()[edgeAt.status + 2]! += 1
  await rollups.flush()
  expect(await rows('minute')).toEqual([['09:00', 'a.test', 4, 0]])
})

test('a part that is sent again, because its answer was lost, changes nothing', async () => {
  const counts = edgeColumns.map(() => 1)
  const part = {
    source: 'src_1',
    at: new Date(at('09:00:00')),
    steps: ['minute'] as const,
    rows: [{ owner: projectId, host: 'a', counts }],
  }
  expect(await addTraffic(api.db, { ...part, seq: 1 })).toEqual([{ added: 1 }])
  expect(await addTraffic(api.db, { ...part, seq: 1 })).toEqual([{ added: 0 }])
  expect(await addTraffic(api.db, { ...part, seq: 2 })).toEqual([{ added: 1 }])
  expect(await rows('minute')).toEqual([['09:00', 'a', 2, 2]])
})

test('what is counted for a project that is gone is dropped, and its rollups go with it', async () => {
  const now = () => at('09:00:00')
  const gone = (await newTenant(api)).projectId
  const one = process({ now })
  one.visit('gone.test', gone)
  await one.flush()
  expect(await rows('hour', gone)).toHaveLength(1)
  await api.db.project.delete({ where: { id: gone } })
  expect(await rows('hour', gone)).toEqual([])
  one.visit('gone.test', gone)
  one.visit('kept.test')
  await one.flush()
  expect(await rows('hour')).toEqual([['09:00', 'kept.test', 1, 10]])
})

describe('while the database is away', () => {
  let link: Link
  let db: Database
  beforeEach(async () => {
    link = await openLink(api.databaseUrl)
    db = openDatabase(link.url, 1)
  })
  afterEach(async () => {
    await closeDatabase(db)
    link.close()
  })

  test('counts are kept by minute, and written when it is back', async () => {
    let nowMs = at('09:00:00')
    const one = process({ db, now: () => nowMs })
    link.set('cut')
    for (const time of ['09:01:00', '09:02:00']) {
      one.visit('a.test')
      nowMs = at(time)
      await one.flush()
    }
    expect(await rows('minute')).toEqual([])
    link.set('pass')
    one.visit('a.test')
    nowMs = at('09:03:00')
    await one.flush()
    expect(await rows('minute')).toEqual(['09:00', '09:01', '09:02'].map((time) => [time, 'a.test', 1, 10]))
    await one.close()
  })

  test('minutes that are too many become hours, and of too many hours the oldest are lost', async () => {
    let nowMs = at('09:40:00')
    const lost: unknown[] = []
    const told = { warn() {}, error: (what: { lost: number }) => lost.push(what.lost) } as unknown as typeof log
    const one = process({ db, now: () => nowMs, maxRows: 10, log: told })
    link.set('cut')
    for (let minute = 1; minute <= 40; minute++) {
      one.visit('a.test')
      one.visit('b.test')
      nowMs = at('09:40:00') + minute * 60_000
      await one.flush()
    }
    expect(lost).toEqual([])
    link.set('pass')
    await one.flush()
    // Of the hour 9 there are 20 minutes, of the hour 10 as well.
    expect(await rows('hour')).toEqual(
      ['09:00', '10:00'].flatMap((time) => ['a.test', 'b.test'].map((host) => [time, host, 20, 200])),
    )
    expect((await rows('minute')).length).toBeLessThan(2 * 10)
    link.set('cut')
    one.visit('a.test')
    nowMs = at('12:00:00')
    await one.flush()
    for (let host = 0; host < 12; host++) one.visit(`${host}.test`)
    nowMs = at('14:00:00')
    await one.flush()
    expect(lost).toEqual([12])
    link.set('pass')
    await one.close()
  })
})

test('rollups are kept for two days and 13 months', async () => {
  const now = Date.now()
  const days = (count: number) => new Date(now - count * 86_400_000)
  const zeros = Object.fromEntries(['bytes', 'durationUs', ...edgeColumns.slice(2)].map((name) => [name, 0n])) as never
  const row = (step: string, at: Date) => ({ projectId, step, at, host: '', ...(zeros as object) })
  const data = [
    row('minute', days(1)),
    row('minute', days(4)),
    row('hour', days(4)),
    row('hour', days(300)),
    row('hour', days(430)),
  ]
  // What the other tests wrote has dates of its own.
  await api.db.traffic.deleteMany()
  await api.db.trafficSource.deleteMany()
  await api.db.traffic.createMany({ data: data as never })
  await api.db.trafficSource.create({ data: { id: 'silent', seq: 1, at: days(3) } })
  expect(await deleteOldTraffic(api.db, AbortSignal.timeout(60_000))).toBe(3)
  expect(await api.db.traffic.count({ where: { projectId } })).toBe(3)
  expect(await deleteOldTraffic(api.db, AbortSignal.timeout(60_000))).toBe(0)
})

describe('a range', () => {
  const nowMs = Date.parse('2026-11-14T09:30:10.000Z')
  const range = (query: object, most = 2_880) => {
    const { from, to, count } = rangeOf(query, most, nowMs)
    return [from.toISOString(), to.toISOString(), count]
  }

  test('is the last day by hours, an hour by minutes, 30 days by days', () => {
    expect(range({})).toEqual(['2026-11-13T10:00:00.000Z', '2026-11-14T10:00:00.000Z', 24])
    expect(range({ step: 'minute' })).toEqual(['2026-11-14T08:31:00.000Z', '2026-11-14T09:31:00.000Z', 60])
    expect(range({ step: 'day' })).toEqual(['2026-10-16T00:00:00.000Z', '2026-11-15T00:00:00.000Z', 30])
  })

  test('is aligned to steps of UTC, whatever the offset and the season', () => {
    const query = { from: '2026-03-28T23:10:00+01:00', to: '2026-03-30T02:00:01+02:00' }
    expect(range({ ...query, step: 'hour' })).toEqual(['2026-03-28T22:00:00.000Z', '2026-03-30T01:00:00.000Z', 27])
    expect(range({ ...query, step: 'day' })).toEqual(['2026-03-28T00:00:00.000Z', '2026-03-31T00:00:00.000Z', 3])
  })

  test('is refused where it is empty, too long, or was forgotten', () => {
    const refused = (query: object, most?: number) => (why: RegExp) => expect(() => range(query, most)).toThrow(why)
    refused({ from: '2026-11-14T09:00:00Z', to: '2026-11-14T09:00:00Z' })(/before `to`/)
    refused({ from: '2026-11-14T09:20:00Z', to: '2026-11-14T09:10:00Z' })(/before `to`/)
    refused({ from: '2026-11-12T00:00:00Z', step: 'minute' }, 100)(/more than 100/)
    refused({ from: '2026-11-11T23:59:00Z', to: '2026-11-12T01:00:00Z', step: 'minute' })(/kept for 2 days/)
    refused({ from: '2025-09-30T00:00:00Z', step: 'day' })(/kept for 13 months/)
    refused({ from: '2026-02-30T25:00:00Z' })(/not a valid time/)
    refused({ from: '0001-01-01T00:00:00Z' })(/2000 or later/)
    refused({ to: '9999-12-31T23:59:59-23:59' })(/year ahead/)
    expect(range({ from: '2026-11-12T00:00:00Z', to: '2026-11-14T00:00:00Z', step: 'minute' })[2]).toBe(2_880)
    expect(retentionStart('hour', nowMs).toISOString()).toBe('2025-10-01T00:00:00.000Z')
  })
})

test('a percentile is estimated from the histogram, and there is none of nothing', () => {
  const histogram = (counts: Record<number, number>) => Array.from({ length: 16 }, (_, index) => counts[index] ?? 0)
  expect(quantileOf(histogram({}), 0.95)).toBe(null)
  expect(quantileOf(histogram({ 0: 100 }), 0.95)).toBe(0.1)
  expect(quantileOf(histogram({ 6: 100 }), 0.5)).toBe(7.5)
  expect(quantileOf(histogram({ 0: 90, 9: 10 }), 0.95)).toBe(75)
  expect(quantileOf(histogram({ 0: 1, 15: 99 }), 0.95)).toBe(10_000)
})
