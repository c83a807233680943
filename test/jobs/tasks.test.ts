import { pino } from 'pino'
import { Registry } from 'prom-client'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { forgetOldTasks, startTasks, type Task, type Tasks } from '../../src/jobs/tasks.ts'
import { closeDatabase, type Database, openDatabase } from '../../src/platform/database/database.ts'
import { createDatabase } from '../helpers/database.ts'
import { until } from '../helpers/until.ts'

const log = pino({ level: 'silent' })
let database: Awaited<ReturnType<typeof createDatabase>>
let db: Database
let started: Tasks[] = []
let registry: Registry

beforeAll(async () => {
  database = await createDatabase()
  db = openDatabase(database.url, 5)
})

afterEach(async () => {
  await Promise.all(started.map((tasks) => tasks.stop()))
  started = []
  await db.task.deleteMany()
})

afterAll(async () => {
  await closeDatabase(db)
  await database.drop()
})

/** A process that looks for its tasks all the time. */
function start(...tasks: Task[]): Tasks {
  registry = new Registry()
  const made = startTasks({ db, log, registry }, tasks, 10)
  started.push(made)
  return made
}

const day = 86_400_000
const runsOf = async (outcome: string) =>
  (await registry.metrics()).match(new RegExp(`outcome="${outcome}"} (\\d+)`))?.[1]

describe('a task', () => {
  test('is run by one of many processes at a time, and once per interval', async () => {
    let underWay = 0
    let most = 0
    let runs = 0
    const task = (everyMs: number): Task => ({
      name: 'count',
      everyMs,
      async run() {
        most = Math.max(most, ++underWay)
        await new Promise((resolve) => setImmediate(resolve))
        underWay--
        runs++
      },
    })
    for (let process = 0; process < 4; process++) start(task(1))
    await until(() => runs >= 20)
    expect(most).toBe(1)
    await Promise.all(started.map((tasks) => tasks.stop()))
    runs = 0
    for (let process = 0; process < 4; process++) start(task(day))
    await until(async () => ((await db.task.findFirst())?.dueAt.getTime() ?? 0) > Date.now() + day / 2)
    expect(runs).toBe(1)
  })

  test.each([1, -1])(
    'is not run by a process whose clock is wrong by %i h, and removes nothing by it',
    async (hours) => {
      let runs = 0
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 })
      try {
        start({ name: 'late', everyMs: 1, run: async () => void runs++ })
        await until(() => runsOf('failed'))
        expect(runs).toBe(0)
      } finally {
        vi.useRealTimers()
      }
      await until(() => runs > 0)
    },
  )

  test('is left to other processes while its own is paused', async () => {
    const runs: string[] = []
    const task = (process: string): Task => ({ name: 'once', everyMs: 1, run: async () => void runs.push(process) })
    const drained = start(task('drained'))
    await until(() => runs.length > 0)
    drained.pause(true)
    start(task('other'))
    await until(() => runs.slice(-20).filter((process) => process === 'other').length === 20)
    drained.pause(false)
    await until(() => runs.at(-1) === 'drained')
  })

  test('is taken over from a process that died when its lease ends, and not before', async () => {
    const soon = new Date(Date.now() + day)
    await db.task.create({ data: { name: 'left', dueAt: new Date(), leasedBy: 'dead', leasedUntil: soon } })
    let runs = 0
    let looked = 0
    const next: Task = { name: 'next', everyMs: 1, run: async () => void looked++ }
    start({ name: 'left', everyMs: day, run: async () => void runs++ }, next)
    await until(() => looked > 3)
    expect(runs).toBe(0)
    await db.task.update({ where: { name: 'left' }, data: { leasedUntil: new Date(Date.now() - 1) } })
    await until(() => runs === 1)
  })

  test('that fails is counted, keeps no other from running, and is tried again within minutes, not at its next time', async () => {
    const fails: Task = { name: 'fails', everyMs: day, run: () => Promise.reject(new Error('no')) }
    let others = 0
    start(fails, { name: 'other', everyMs: 1, run: async () => void others++ })
    await until(() => runsOf('failed'))
    const row = await until(async () => db.task.findFirst({ where: { name: 'fails', leasedBy: null } }))
    expect(row.dueAt.getTime()).toBeGreaterThan(Date.now())
    expect(row.dueAt.getTime()).toBeLessThan(Date.now() + 10 * 60_000)
    await until(() => others > 2)
  })

  test('is told when its process stops, and left to another at once', async () => {
    let aborted = false
    const endless: Task = {
      name: 'endless',
      everyMs: day,
      run: (signal) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => {
            aborted = true
            reject(signal.reason)
          }),
        ),
    }
    const one = start(endless)
    await until(() => db.task.findFirst({ where: { name: 'endless', leasedBy: { not: null } } }))
    await one.stop()
    expect(aborted).toBe(true)
    let runs = 0
    start({ ...endless, run: async () => void runs++ })
    await until(() => runs > 0)
  })

  test('goes on after the database was away', async () => {
    let runs = 0
    start({ name: 'again', everyMs: 1, run: async () => void runs++ })
    await until(() => runs > 0)
    await db.$executeRaw`ALTER TABLE task RENAME TO away`
    const before = runs
    await db.$executeRaw`ALTER TABLE away RENAME TO task`
    await until(() => runs > before + 1)
  })
})

test('tasks that no process has any more are forgotten', async () => {
  const at = (days: number) => new Date(Date.now() - days * day)
  await db.task.createMany({
    data: [
      { name: 'old', dueAt: at(31) },
      { name: 'new', dueAt: at(29) },
    ],
  })
  expect(await forgetOldTasks(db)).toBe(1)
  expect(await db.task.findMany({ select: { name: true } })).toEqual([{ name: 'new' }])
})
