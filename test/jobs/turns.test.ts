// Builds are taken in turn by account.
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { failJob, releaseJob, takeJob } from '../../src/jobs/statements.ts'
import type { Db } from '../../src/platform/database/database.ts'
import { queuePositions } from '../../src/services/deployments/queue.ts'
import { sharedApi, type TestApi } from '../helpers/api.ts'
import { endBuild, limit, loseBuild, newTenant, type Tenant, takeAll, takeNext } from '../helpers/builds.ts'

let api: TestApi
let tenants: Tenant[]
beforeAll(async () => {
  api = await sharedApi()
  tenants = []
  for (let i = 0; i < 5; i++) tenants.push(await newTenant(api))
})
afterAll(() => api.stop())
beforeEach(() => forget())

/** As if nobody had ever built. */
async function forget(): Promise<void> {
  await api.db.deployment.deleteMany()
  await api.db.job.deleteMany()
  await api.db.buildTurn.deleteMany()
  await api.db.buildWorker.deleteMany()
  await api.db.account.updateMany({ data: { limits: {} } })
}

async function ask(tenant: Tenant, count: number, production = false): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push(await tenant.ask(production))
  return ids
}

async function positionsOf(db: Db, ids: string[]): Promise<string[]> {
  const positions = await queuePositions(db, ids)
  const waiting = ids.filter((id) => positions.has(id))
  expect(waiting.map((id) => positions.get(id)).sort((a, b) => a! - b!)).toEqual(waiting.map((_, index) => index + 1))
  return waiting.sort((a, b) => positions.get(a)! - positions.get(b)!)
}

describe('accounts take turns', () => {
  test('whoever has a dozen builds waiting does not hold the one of another', async () => {
    const [many, one] = [tenants[0]!, tenants[1]!]
    const first = await ask(many, 12)
    const [other] = await ask(one, 1)
    expect(await takeNext(api.db)).toBe(first[0])
    expect(await takeNext(api.db)).toBe(other)
    expect(await takeNext(api.db)).toBe(first[1])
  })

  test('the account that runs the fewest is first, then the one whose last turn is the longest ago', async () => {
    const [a, b, c] = tenants as [Tenant, Tenant, Tenant]
    const [a1, a2] = (await ask(a, 2)) as [string, string]
    const [b1, b2] = (await ask(b, 2)) as [string, string]
    expect([await takeNext(api.db), await takeNext(api.db)]).toEqual([a1, b1])
    // Both ran one; the build of a has ended, so it runs fewer, although its turn is the older one too.
    await endBuild(api.db, b1)
    expect(await takeNext(api.db)).toBe(b2)
    await endBuild(api.db, b2)
    await endBuild(api.db, a1)
    const [b3] = await ask(b, 1)
    const [c1] = await ask(c, 1)
    // Nobody runs anything: c never had a turn, and a had its turn before b.
    expect(await takeAll(api.db)).toEqual([c1, a2, b3])
  })

  test('production goes before previews within an account, and in no other', async () => {
    const [a, b] = tenants as [Tenant, Tenant]
    const [preview] = await ask(a, 1)
    const production = await ask(a, 2, true)
    const other = await ask(b, 2)
    expect(await takeAll(api.db)).toEqual([production[0], other[0], production[1], other[1], preview])
  })

  test('an account runs no more at once than it may, and waits only for its own then', async () => {
    const [a, b] = tenants as [Tenant, Tenant]
    await limit(api.db, a.accountId, { buildsAtOnce: 2 })
    await limit(api.db, b.accountId, { buildsAtOnce: 0 })
    const ids = await ask(a, 4)
    await ask(b, 1)
    expect(await takeAll(api.db)).toEqual([ids[0], ids[1]])
    await endBuild(api.db, ids[0]!)
    expect(await takeAll(api.db)).toEqual([ids[2]])
  })

  test('a build whose account the queue does not know is taken all the same', async () => {
    // As a server of the version before writes it while the others are brought up to date.
    await api.db.job.create({ data: { kind: 'build', key: 'dpl_x', payload: { deploymentId: 'dpl_x' } } })
    expect(await takeNext(api.db)).toBe('dpl_x')
    await api.db.job.create({ data: { kind: 'build', key: 'dpl_y', payload: { deploymentId: 'dpl_y' } } })
    expect(await takeNext(api.db)).toBe('dpl_y')
  })
})

describe('the last free slot of the platform', () => {
  const [one, two] = [
    { worker: 'one', slots: 2 },
    { worker: 'two', slots: 1 },
  ]
  /** Another account that has built of late. */
  const neighbour = (daysAgo: number) =>
    api.db.buildTurn.create({
      data: { accountId: tenants[4]!.accountId, startedAt: new Date(Date.now() - daysAgo * 86_400_000) },
    })

  test('is kept for accounts that run nothing', async () => {
    const [a, b] = tenants as [Tenant, Tenant]
    await neighbour(6)
    const [a1, a2] = await ask(a, 3)
    expect(await takeNext(api.db, one)).toBe(a1)
    expect(await takeNext(api.db, one)).toBeNull()
    const [b1] = await ask(b, 1)
    expect(await takeNext(api.db, one)).toBe(b1)
    await endBuild(api.db, a1!)
    expect(await takeNext(api.db, one)).toBe(a2)
  })

  test('may be one of any worker, but not of one that is gone', async () => {
    await neighbour(0)
    const [a1, a2, a3] = await ask(tenants[0]!, 5)
    expect(await takeNext(api.db, one)).toBe(a1)
    expect(await takeNext(api.db, two)).toBe(a2)
    expect(await takeNext(api.db, one)).toBeNull()
    await endBuild(api.db, a2!)
    expect(await takeNext(api.db, one)).toBe(a3)
    expect(await takeNext(api.db, two)).toBeNull()
    await endBuild(api.db, a3!)
    await api.db.buildWorker.update({ where: { name: 'two' }, data: { seenAt: new Date(Date.now() - 6_000) } })
    expect(await takeNext(api.db, one)).toBeNull()
  })

  test('is used by an account that has the platform for itself', async () => {
    await neighbour(8)
    const ids = await ask(tenants[0]!, 2)
    expect([await takeNext(api.db, one), await takeNext(api.db, one)]).toEqual(ids)
  })
})

describe('a build that was taken', () => {
  const jobOf = (id: string) => api.db.job.findFirstOrThrow({ where: { key: id } })

  test('and lost its worker, or whose worker stopped, is taken before all others', async () => {
    const [a, b, c] = tenants as [Tenant, Tenant, Tenant]
    const [a1] = await ask(a, 3)
    expect(await takeNext(api.db)).toBe(a1)
    const [b1] = await ask(b, 1, true)
    await ask(c, 1, true)
    await loseBuild(api.db, a1!)
    expect(await takeNext(api.db)).toBe(a1)
    expect(await takeNext(api.db)).toBe(b1)
    await releaseJob(api.db, { worker: 'worker', id: String((await jobOf(a1!)).id) })
    expect(await takeNext(api.db)).toBe(a1)
  })

  test('and failed waits for the next turn of its account; lost after that, it is not forgotten', async () => {
    const [a, b] = tenants as [Tenant, Tenant]
    const [a1] = await ask(a, 1)
    expect(await takeNext(api.db)).toBe(a1)
    const [b1] = await ask(b, 1)
    const { id } = await jobOf(a1!)
    await failJob(api.db, { worker: 'worker', id: String(id), error: 'broken', givenUp: false, delayMs: 0 })
    expect(await takeNext(api.db)).toBe(b1)
    expect(await takeNext(api.db)).toBe(a1)
    await loseBuild(api.db, a1!)
    expect(await takeNext(api.db)).toBe(a1)
  })

  test('while another is being canceled does not wait for that', async () => {
    const [a1, a2] = await ask(tenants[0]!, 2)
    const [b1] = await ask(tenants[1]!, 1)
    await api.db.$transaction(async (canceling) => {
      await canceling.job.deleteMany({ where: { key: { in: [a1!, b1!] } } })
      expect(await takeNext(api.db)).toBe(a2)
    })
  })
})

test('many takers at once give each build once, and every account its turns', async () => {
  const asked = new Map<string, string>()
  for (const tenant of tenants) {
    await limit(api.db, tenant.accountId, { buildsAtOnce: 3 })
    for (const id of await ask(tenant, 6)) asked.set(id, tenant.accountId)
  }
  const taken: string[] = []
  await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      for (const id of await takeAll(api.db, { worker: `w${index}` })) taken.push(id)
    }),
  )
  expect(new Set(taken).size).toBe(taken.length)
  const perAccount = Map.groupBy(taken, (id) => asked.get(id)!)
  expect([...perAccount.values()].map((ids) => ids.length)).toEqual([3, 3, 3, 3, 3])
  // By the numbers of the transactions that took them: in each round every account had one turn.
  const jobs = await api.db.$queryRaw<{ accountId: string }[]>`
    SELECT account_id AS "accountId" FROM job WHERE locked_by IS NOT NULL ORDER BY xmin::text::bigint`
  for (let round = 0; round < 3; round++) {
    const accounts = jobs.slice(round * 5, round * 5 + 5).map((job) => job.accountId)
    expect(new Set(accounts).size).toBe(5)
  }
})

type Step =
  | { do: 'ask'; who: number; production: boolean }
  | { do: 'take' | 'end' | 'lose' | 'cancel' | 'foresee'; pick: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      who: fc.constantFrom(0, 0, 0, 1, 1, 2, 3, 4),
      production: fc.boolean(),
    }),
  },
  { weight: 7, arbitrary: fc.record({ do: fc.constant('take' as const), pick: fc.nat(99) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('end', 'lose', 'cancel', 'foresee', 'foresee'), pick: fc.nat(99) }),
  },
)

type Known = { id: string; who: number; production: boolean; number: number }

/** What a test knows of the queue without asking it. */
class Model {
  waiting: Known[] = []
  running: Known[] = []
  lost: Known[] = []
  turns = new Map<number, number>()
  /** For every account that waits and runs nothing: who was taken instead, and how often. */
  passes = new Map<number, Map<number, number>>()
  count = 0

  runs = (who: number) => this.running.filter((build) => build.who === who).length
  turn = (who: number) => this.turns.get(who) ?? -1

  take(id: string): void {
    const lost = this.lost.find((build) => build.id === id)
    const build = lost ?? this.waiting.find((build) => build.id === id)!
    expect(build).toBeDefined()
    if (!lost) {
      expect(this.lost).toEqual([])
      this.checkTurn(build)
    }
    this.lost = this.lost.filter((other) => other !== build)
    this.waiting = this.waiting.filter((other) => other !== build)
    this.running.push(build)
    this.turns.set(build.who, this.count++)
    this.passes.delete(build.who)
  }

  private checkTurn(build: Known): void {
    const own = this.waiting.filter((other) => other.who === build.who)
    const urgent = own.filter((other) => other.production)
    expect(build).toBe((urgent.length > 0 ? urgent : own)[0])
    for (const who of new Set(this.waiting.map((other) => other.who))) {
      if (who === build.who) continue
      const [mine, theirs] = [this.runs(build.who), this.runs(who)]
      expect(mine).toBeLessThanOrEqual(theirs)
      if (mine === theirs && this.turn(who) !== -1) expect(this.turn(build.who)).toBeLessThan(this.turn(who))
      if (theirs > 0) continue
      const passed = this.passes.get(who) ?? new Map<number, number>()
      this.passes.set(who, passed.set(build.who, (passed.get(build.who) ?? 0) + 1))
      expect(passed.get(build.who)).toBe(1)
    }
  }
}

class Undo extends Error {}

test('whatever comes and goes: nobody who runs nothing is passed twice by the same account, production goes first, and the places shown are the order in which builds are taken', async () => {
  const play = async (steps: Step[]) => {
    await forget()
    const model = new Model()
    for (const next of steps) {
      const among = <T>(list: T[]): T | undefined => ('pick' in next ? list[next.pick % list.length] : undefined)
      if (next.do === 'ask') {
        const id = await tenants[next.who]!.ask(next.production)
        model.waiting.push({ id, who: next.who, production: next.production, number: model.count++ })
      } else if (next.do === 'take') {
        const id = await takeNext(api.db)
        if (id === null) expect([...model.waiting, ...model.lost]).toEqual([])
        else model.take(id)
      } else if (next.do === 'end') {
        const build = among(model.running)
        if (!build) continue
        await endBuild(api.db, build.id)
        model.running = model.running.filter((other) => other !== build)
      } else if (next.do === 'lose') {
        const build = among(model.running)
        if (!build) continue
        await loseBuild(api.db, build.id)
        model.running = model.running.filter((other) => other !== build)
        model.lost.push(build)
      } else if (next.do === 'cancel') {
        const build = among(model.waiting)
        if (!build) continue
        await api.db.deployment.update({ where: { id: build.id }, data: { state: 'CANCELED', finishedAt: new Date() } })
        model.waiting = model.waiting.filter((other) => other !== build)
      } else {
        const shown = await positionsOfWaiting(model)
        await api.db
          .$transaction(async (db) => {
            expect(await takeAll(db)).toEqual(shown)
            throw new Undo()
          })
          .catch((error) => {
            if (!(error instanceof Undo)) throw error
          })
      }
    }
  }
  const positionsOfWaiting = async (model: Model) => {
    // Those that lost their worker come first, and have no place: they have started.
    for (const _ of model.lost.slice()) model.take((await takeNext(api.db))!)
    return positionsOf(
      api.db,
      model.waiting.map((build) => build.id),
    )
  }
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), play), { numRuns: 60 })
}, 120_000)

test('places begin with 1 for whoever comes while another account runs several builds already', async () => {
  const [a, b] = tenants as [Tenant, Tenant]
  const busy = await ask(a, 5)
  for (let i = 0; i < 3; i++) await takeNext(api.db)
  const fresh = await ask(b, 2)
  expect(await positionsOf(api.db, [...busy, ...fresh])).toEqual([...fresh, ...busy.slice(3)])
})

test('places count what an account may not start yet after everything that may', async () => {
  const [a, b, c] = tenants as [Tenant, Tenant, Tenant]
  await limit(api.db, a.accountId, { buildsAtOnce: 1 })
  await limit(api.db, b.accountId, { buildsAtOnce: 3 })
  await limit(api.db, c.accountId, { buildsAtOnce: 0 })
  const ids = [...(await ask(c, 2)), ...(await ask(a, 4)), ...(await ask(b, 5))]
  const shown = await positionsOf(api.db, ids)
  expect(shown).toHaveLength(11)
  const taken = await takeAll(api.db)
  expect(taken).toHaveLength(4)
  expect(shown.slice(0, 4)).toEqual(taken)
})

test('a job of another kind is found without reading past all builds that wait', async () => {
  await api.db.$executeRaw`INSERT INTO job (kind, key, payload, account_id)
    SELECT 'build', 'dpl_' || i, '{}', 'acc_' || i % 50 FROM generate_series(1, 3000) i`
  const client = new pg.Client({ connectionString: api.databaseUrl })
  await client.connect()
  await client.query('ANALYZE job')
  // As on a connection that has taken jobs of every kind.
  await client.query('SET plan_cache_mode = force_generic_plan')
  await client.query(`PREPARE take AS ${takeJob.definition.text}`)
  const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE take('nobody', 'status', 2)`)
  await client.end()
  const removed = [...JSON.stringify(rows).matchAll(/"Rows Removed by Filter":(\d+)/g)].map(([, count]) =>
    Number(count),
  )
  expect(Math.max(0, ...removed)).toBe(0)
})
