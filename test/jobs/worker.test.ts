import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { enqueue } from '../../src/jobs/queue.ts'
import { type Handler, RunLost, startWorker, type Worker } from '../../src/jobs/worker.ts'
import { LostLease } from '../../src/platform/database/lease.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { waitsForLock } from '../helpers/database.ts'
import { until } from '../helpers/until.ts'

let api: TestApi
const workers: Worker[] = []
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())
beforeEach(() => api.db.job.deleteMany())
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop()
  vi.useRealTimers()
})

type Run = Handler<'reap'>['run']

function work(run: Run, options: Partial<Handler<'reap'>> = {}): Worker {
  const handler = { concurrency: 2, retryDelaysMs: [], giveUp: async () => {}, ...options, run }
  const worker = startWorker(api.db, api.deps.notifications, pino({ level: 'silent' }), { reap: handler })
  workers.push(worker)
  return worker
}

/** A log whose lines a test can look at. */
function recordedLog() {
  const lines: { level: number; msg: string; kind?: string }[] = []
  return { lines, log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }) }
}

const add = (key: string | null) => enqueue(api.db, { kind: 'reap', key, payload: { deploymentIds: [key ?? ''] } })
const jobs = () => api.db.job.findMany()
/** Makes workers look for jobs now instead of at their next poll. */
const nudge = () => api.db.$executeRaw`SELECT pg_notify('berth_job', 'reap')`
/** Waits for a condition that a worker needs several looks to meet. */
const untilNudged = (condition: () => unknown) =>
  until(async () => {
    await nudge()
    return condition()
  })

test('an account whose jobs hang leaves slots to others, and gets to all of its own', async () => {
  const hog = await api.newAccount()
  const other = await api.newAccount()
  const owners = new Map<string, string>()
  for (const [{ token }, names] of [
    [hog, Array.from({ length: 12 }, (_, n) => `slow${n}.example.com`)],
    [other, ['quick.example.net']],
  ] as const) {
    await api.call('POST', '/projects', { token, body: { name: 'site', repo: 'test/site' } })
    for (const name of names) await api.call('POST', '/domains', { token, body: { project: 'site', name } })
  }
  for (const { id, accountId } of await api.db.domain.findMany()) owners.set(id, accountId)
  const seen: string[] = []
  const hanging = new Set<() => void>()
  const verify: Handler<'verify'> = {
    concurrency: 8,
    retryDelaysMs: [],
    giveUp: async () => {},
    run({ domainId }) {
      const owner = owners.get(domainId)!
      seen.push(owner)
      return owner === other.accountId ? Promise.resolve() : new Promise((resolve) => hanging.add(resolve))
    },
  }
  workers.push(startWorker(api.db, api.deps.notifications, pino({ level: 'silent' }), { verify }))
  await until(() => seen.includes(other.accountId))
  expect(seen.filter((owner) => owner === hog.accountId).length).toBeLessThanOrEqual(2)
  await until(() => {
    for (const end of hanging) end()
    return seen.length === 13
  })
})

describe('a job', () => {
  test('starts at once when it is enqueued, and is gone when it is done', async () => {
    // Because it is told: the clock by which the queue is looked at now and then stands still.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const seen: string[] = []
    work(async ({ deploymentIds }) => void seen.push(...deploymentIds))
    await add('a')
    await until(() => seen.length === 1)
    await until(async () => (await jobs()).length === 0)
  })

  test('is not there when the transaction that enqueued it is rolled back', async () => {
    await api.db
      .$transaction(async (db) => {
        await enqueue(db, { kind: 'reap', key: 'x', payload: { deploymentIds: [] } })
        throw new Error('no')
      })
      .catch(() => {})
    expect(await jobs()).toEqual([])
  })

  test('is taken by one of several workers', async () => {
    const seen: string[] = []
    for (let i = 0; i < 4; i++) work(async ({ deploymentIds }) => void seen.push(...deploymentIds))
    const keys = Array.from({ length: 40 }, (_, index) => `k${index}`)
    await Promise.all(keys.map(add))
    await until(async () => (await jobs()).length === 0)
    expect(seen.sort()).toEqual(keys.sort())
  })

  test('is not taken while the worker is paused, and is when it goes on; what runs is finished', async () => {
    const seen: string[] = []
    const gate = Promise.withResolvers<void>()
    const worker = work(async ({ deploymentIds }) => {
      seen.push(...deploymentIds)
      await gate.promise
    })
    await add('before')
    await until(() => worker.running === 1)
    worker.pause(true)
    await add('meanwhile')
    gate.resolve()
    // Another worker takes it; this one does not.
    await until(() => worker.running === 0)
    const other: string[] = []
    const second = work(async ({ deploymentIds }) => void other.push(...deploymentIds))
    await until(() => other.length === 1)
    await second.stop()
    expect(seen).toEqual(['before'])
    await add('left')
    worker.pause(false)
    await until(() => seen.length === 2)
    expect([other, seen]).toEqual([['meanwhile'], ['before', 'left']])
  })

  test('that is found by what was asked before a pause is given back', async () => {
    const locked = new pg.Client(api.databaseUrl)
    await locked.connect()
    await locked.query('BEGIN; LOCK TABLE job IN ACCESS EXCLUSIVE MODE')
    const seen: string[] = []
    const worker = work(async ({ deploymentIds }) => void seen.push(...deploymentIds))
    await until(() => waitsForLock(api.db))
    worker.pause(true)
    await locked.query(`INSERT INTO job (kind, key, payload) VALUES ('reap', 'late', '{"deploymentIds": ["late"]}')`)
    await locked.query('COMMIT')
    await locked.end()
    await until(async () => {
      const [job] = await jobs()
      return job !== undefined && job.runAt > job.createdAt && job.lockedBy === null
    })
    expect(await jobs()).toMatchObject([{ key: 'late', attempts: 0 }])
    expect(seen).toEqual([])
    worker.pause(false)
    await until(() => seen.length === 1)
  })

  test('that another worker has is known as lost at once, and given up by that one alone', async () => {
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const given: string[] = []
    let found: unknown
    const worker = work(
      async (_, { requireHeld }) => {
        await requireHeld(api.db)
        begun.resolve()
        await gate.promise
        found = await requireHeld(api.db).catch((error) => error)
        throw new Error('too late')
      },
      { giveUp: async () => void given.push('given up') },
    )
    await add('lost')
    await begun.promise
    await api.db.job.updateMany({ data: { lockedBy: 'another', lockedUntil: new Date(Date.now() + 60_000) } })
    gate.resolve()
    await until(() => worker.running === 0)
    await worker.stop()
    expect(found).toBeInstanceOf(LostLease)
    expect(given).toEqual([])
    expect(await jobs()).toMatchObject([{ lockedBy: 'another', failedAt: null }])
  })

  test('with a key waits once, however often it is asked for', async () => {
    for (let i = 0; i < 5; i++) await add('same')
    expect(await jobs()).toHaveLength(1)
  })

  test('asked for again while it runs is run once more', async () => {
    let runs = 0
    const gate = Promise.withResolvers<void>()
    work(async () => {
      runs++
      if (runs === 1) await gate.promise
    })
    await add('again')
    await until(() => runs === 1)
    await add('again')
    gate.resolve()
    await until(() => runs === 2)
    await until(async () => (await jobs()).length === 0)
  })

  test('asked for again while it runs is run at once, although the run itself asks for a later time', async () => {
    let runs = 0
    work(async () => {
      if (++runs > 1) return
      await add('a')
      const later = new Date(Date.now() + 3_600_000)
      await enqueue(api.db, { kind: 'reap', key: 'a', payload: { deploymentIds: [] }, runAt: later })
    })
    await add('a')
    await until(() => runs === 2)
  })

  test('asked for again is run once more, even when that happens while it ends', async () => {
    let wanted = 0
    let seen = 0
    work(async () => {
      seen = wanted
    })
    for (let round = 1; round <= 100; round++) {
      wanted = round
      await add('again')
      await until(() => seen === round)
    }
  })

  test('that fails is tried again by its table, then given up with the error recorded', async () => {
    let attempts = 0
    let given: Error | null = null
    const run = async () => {
      attempts++
      throw new Error(`broken ${attempts}`)
    }
    work(run, {
      retryDelaysMs: [1, 1],
      giveUp: async (_payload, error) => {
        given = error
      },
    })
    await add('bad')
    await until(() => given !== null)
    expect(attempts).toBe(3)
    await until(async () => (await jobs())[0]?.failedAt !== null)
    expect((await jobs())[0]).toMatchObject({ attempts: 3, lastError: 'broken 3', lockedBy: null })
  })

  test('of a worker that died is taken by another when its lease ends', async () => {
    await add('orphan')
    const die = () =>
      api.db.job.updateMany({ data: { lockedBy: 'dead', lockedUntil: new Date(Date.now() - 1), attempts: 1 } })
    await die()
    const attempts: number[] = []
    const worker = work(async (_payload, { attempt }) => void attempts.push(attempt), { retryDelaysMs: [1] })
    await untilNudged(() => attempts.length === 1)
    expect(attempts).toEqual([2])
    await worker.stop()
  })

  test('whose workers keep dying is put back for longer each time, and given up when no other dies of them', async () => {
    const given: string[] = []
    const giveUp = async (_payload: unknown, error: Error) => void given.push(error.message)
    let runs = 0
    work(async () => void runs++, { retryDelaysMs: [1], giveUp })
    const dies = async (key: string) => {
      const data = { lockedBy: 'dead', lockedUntil: new Date(Date.now() - 1), runAt: new Date(Date.now() - 1_000) }
      await api.db.job.updateMany({ where: { key }, data: { ...data, attempts: { increment: 1 } } })
      await untilNudged(async () => (await api.db.job.findFirst({ where: { key, lockedBy: null } })) !== null)
      return (await api.db.job.findFirstOrThrow({ where: { key } })) as {
        runAt: Date
        losses: number
        failedAt: Date | null
      }
    }
    const runAt = new Date(Date.now() + 3_600_000)
    for (const key of ['doomed', 'innocent']) {
      await enqueue(api.db, { kind: 'reap', key, payload: { deploymentIds: [] }, runAt })
    }
    // Its first loss, after which it would be taken again at once.
    await api.db.job.updateMany({ data: { attempts: 1, losses: 1 } })
    let beforeMs = 0
    for (let losses = 2; losses <= 5; losses++) {
      const job = await dies('doomed')
      expect(job).toMatchObject({ losses, failedAt: null })
      const delayMs = job.runAt.getTime() - Date.now()
      expect(delayMs).toBeGreaterThan(beforeMs)
      beforeMs = delayMs
    }
    // Another one is lost at the same time, so that it may be the machine.
    expect(await dies('innocent')).toMatchObject({ losses: 2, failedAt: null })
    expect(await dies('doomed')).toMatchObject({ losses: 6, failedAt: null })
    await api.db.job.deleteMany({ where: { key: 'innocent' } })
    expect(await dies('doomed')).toMatchObject({ failedAt: expect.any(Date) })
    expect(given).toEqual(['the worker was lost 7 times in a row'])
    expect(runs).toBe(0)
  })

  test('whose run the machine ended is put back like one whose worker was lost, and both losses count', async () => {
    const given: string[] = []
    let runs = 0
    const run = async () => {
      runs++
      throw new RunLost('the machine ran out of memory')
    }
    const giveUp: Handler<'reap'>['giveUp'] = async (_payload, error) => void given.push(error.message)
    await add('unlucky')
    work(run, { retryDelaysMs: [1_000], giveUp })
    await until(async () => (await jobs())[0]?.losses === 1)
    expect(await jobs()).toMatchObject([{ attempts: 1, failures: 0, lockedBy: null, failedAt: null }])
    // The worker of its next run is lost, and then it was lost too often.
    const dead = { lockedBy: 'dead', lockedUntil: new Date(Date.now() - 1) }
    await api.db.job.updateMany({ data: { ...dead, attempts: 2, runAt: new Date(Date.now() - 1) } })
    await untilNudged(async () => (await jobs())[0]?.losses === 2)
    expect(runs).toBe(1)
    await api.db.job.updateMany({ data: { attempts: 5, losses: 5, runAt: new Date() } })
    await untilNudged(() => given.length === 1)
    expect(given).toEqual(['the machine ran out of memory 6 times in a row'])
  })

  test('of a kind that is never retried is given up when its worker dies', async () => {
    const given: string[] = []
    await add('once')
    await api.db.job.updateMany({ data: { lockedBy: 'dead', lockedUntil: new Date(Date.now() - 1), attempts: 1 } })
    work(async () => {}, { retryDelaysMs: [], giveUp: async (_payload, error) => void given.push(error.message) })
    await until(() => given.length === 1)
    expect(given).toEqual(['the worker was lost'])
  })

  test('is given back, uncounted, by a worker that stops in order', async () => {
    const started = Promise.withResolvers<void>()
    const worker = work(async (_payload, { signal }) => {
      started.resolve()
      await sleep(60_000, undefined, { signal })
    })
    await add('stopped')
    await started.promise
    await worker.stop()
    expect(await jobs()).toMatchObject([{ attempts: 0, lockedBy: null, failedAt: null }])
  })

  test('goes on alone in a worker whose lease ran out while the database was away', async () => {
    let runs = 0
    const gate = Promise.withResolvers<void>()
    const others: string[] = []
    work(async ({ deploymentIds: [id] }) => {
      if (id !== 'long') return void others.push(id!)
      runs++
      await gate.promise
    })
    await add('long')
    await until(() => runs === 1)
    await api.db.job.updateMany({ data: { lockedUntil: new Date(Date.now() - 1000) } })
    // It is the oldest that is free, and found first.
    await add('other')
    await until(() => others.length === 1)
    expect(runs).toBe(1)
    gate.resolve()
    await until(async () => (await jobs()).length === 0)
  })

  test('waits while as many of its kind run as may', async () => {
    let running = 0
    let most = 0
    const gate = Promise.withResolvers<void>()
    work(async () => {
      most = Math.max(most, ++running)
      await gate.promise
      // Time for one more to be taken, if one would be.
      await jobs()
      running--
    })
    await Promise.all(Array.from({ length: 10 }, (_, index) => add(`c${index}`)))
    await until(() => running === 2)
    // A worker that comes later takes one of those that are left; by then this one has heard of them all.
    const other = Promise.withResolvers<void>()
    const late = work(async () => other.resolve(), { concurrency: 1 })
    await other.promise
    await late.stop()
    expect(running).toBe(2)
    gate.resolve()
    await until(async () => (await jobs()).length === 0)
    expect(most).toBe(2)
  })
})

describe('a queue that is broken', () => {
  test('is logged once and not at every poll, counted, told by readiness when it lasts, and found again', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] })
    const { lines, log } = recordedLog()
    const seen: string[] = []
    await api.db.$executeRaw`ALTER TABLE job RENAME TO job_gone`
    const handler: Handler<'reap'> = {
      concurrency: 1,
      retryDelaysMs: [],
      run: async ({ deploymentIds }) => void seen.push(...deploymentIds),
      giveUp: async () => {},
    }
    const worker = startWorker(api.db, api.deps.notifications, log, { reap: handler })
    workers.push(worker)
    const { taking } = worker
    await until(() => taking.errors.get('reap') === 1)
    expect(taking.readiness()).toBeNull()
    for (let poll = 2; poll <= 6; poll++) {
      vi.advanceTimersByTime(2_000)
      await until(() => taking.errors.get('reap') === poll)
    }
    expect(taking.readiness()).toContain('reap')
    expect(lines.filter(({ msg }) => msg === 'jobs cannot be taken')).toMatchObject([{ level: 50, kind: 'reap' }])

    await api.db.$executeRaw`ALTER TABLE job_gone RENAME TO job`
    await add('waited')
    await until(() => seen.includes('waited'))
    expect(taking.readiness()).toBeNull()
    expect(lines.map(({ msg }) => msg)).toEqual(['jobs cannot be taken', 'jobs are taken again'])
  })

  test('that gives no answer is told by readiness too', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const locked = new pg.Client(api.databaseUrl)
    await locked.connect()
    await locked.query('BEGIN; LOCK TABLE job IN ACCESS EXCLUSIVE MODE')
    const worker = work(async () => {})
    await until(() => waitsForLock(api.db))
    expect(worker.taking.readiness()).toBeNull()
    vi.setSystemTime(Date.now() + 10_000)
    expect(worker.taking.readiness()).toContain('reap')
    await locked.query('ROLLBACK')
    await locked.end()
    await until(() => worker.taking.readiness() === null)
  })
})

test.each([1, -1])(
  'a worker whose clock jumps by %i h takes no job until it is right again, and says so',
  async (hours) => {
    const { lines, log } = recordedLog()
    const seen: string[] = []
    const handler = { concurrency: 1, retryDelaysMs: [], giveUp: async () => {} }
    const run: Run = async ({ deploymentIds }) => void seen.push(...deploymentIds)
    const worker = startWorker(api.db, api.deps.notifications, log, { reap: { ...handler, run } })
    workers.push(worker)
    await add('before')
    await until(() => seen.includes('before'))
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 })
    const errors = () => worker.taking.errors.get('reap') ?? 0
    // Whoever was asking for jobs when the clock jumped may still get this one.
    await add('nudge')
    await until(() => errors() > 0)
    const before = errors()
    await add('meanwhile')
    await until(() => errors() > before)
    expect(lines).toMatchObject([{ msg: 'jobs cannot be taken', err: { message: expect.stringContaining('s apart') } }])
    expect(seen).not.toContain('meanwhile')
    vi.useRealTimers()
    await untilNudged(() => seen.includes('meanwhile'))
  },
)
