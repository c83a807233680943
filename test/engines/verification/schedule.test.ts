import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createVerification } from '../../../src/engines/verification/verification.ts'
import { startWorker, type Worker } from '../../../src/jobs/worker.ts'
import { nextSearchAt, searchSchedule } from '../../../src/services/domains/check-schedule.ts'
import { requeueForgottenChecks } from '../../../src/services/verification/index.ts'
import { until } from '../../helpers/until.ts'
import type { Behaviour } from './internet.ts'
import { poolOfEight, startVerificationWorld, type VerificationWorld } from './world.ts'

let world: VerificationWorld
let honestTop: Behaviour
const workers: Worker[] = []
beforeAll(async () => {
  world = await startVerificationWorld()
  honestTop = world.internet.top[0]!.behave
})
afterAll(() => world.stop())
beforeEach(() => world.db.job.deleteMany())
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop()
  for (const server of world.internet.top) server.behave = honestTop
})

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const log = pino({ level: 'silent' })
const ago = (ms: number) => new Date(Date.now() - ms)
const delegate = (name: string) => world.internet.delegations.set(name, world.ours)
const jobOf = async (name: string) =>
  world.db.job.findFirst({ where: { kind: 'verify', key: await world.idOf(name), failedAt: null } })

function work(handler = world.verify): Worker {
  const worker = startWorker(world.db, world.deps.notifications, log, { verify: handler })
  workers.push(worker)
  return worker
}

describe('a domain without proof', () => {
  test('is looked for every 10 s at first, every hour in the end, and not after 30 days', () => {
    const now = new Date()
    const waitMs = (ageMs: number) => {
      const next = nextSearchAt(now, new Date(now.getTime() - ageMs))
      return next && next.getTime() - now.getTime()
    }
    expect([0, 5 * minute, 30 * minute, 3 * hour, 12 * hour, 3 * day, 29.9 * day, 30 * day].map(waitMs)).toEqual([
      10_000,
      30_000,
      2 * minute,
      10 * minute,
      30 * minute,
      hour,
      hour,
      null,
    ])
    const waits = searchSchedule.map(({ everyMs }) => everyMs)
    expect(waits).toEqual(waits.toSorted((a, b) => a - b))
  })

  test('has its next check written on it and waiting in the queue, for the same moment', async () => {
    const domain = await world.attach('waits.com')
    const next = new Date(domain.verification.nextCheckAt)
    expect(next.getTime() - new Date(domain.verification.checkedAt).getTime()).toBeGreaterThan(9_000)
    work()
    await world.call('POST', '/domains/waits.com/verify')
    // Asked for while it ran, it runs once more.
    await until(async () => {
      const job = await jobOf('waits.com')
      return job?.lockedBy === null && job.runAt > new Date()
    })
    const { verification } = await world.read('waits.com')
    expect((await jobOf('waits.com'))!.runAt.toISOString()).toBe(verification.nextCheckAt)
  })

  test('is looked for at the latest when its 30 days are over, however recently it was asked for', () => {
    const now = new Date()
    const almost = new Date(now.getTime() - 30 * day + 5_000)
    expect(nextSearchAt(now, now, almost)!.getTime() - now.getTime()).toBe(5_000)
    expect(nextSearchAt(now, now, new Date(now.getTime() - 30 * day))).toBeNull()
  })

  test('ends after 30 days with an event and a word on how to go on; asking often does not put that off', async () => {
    await world.attach('late.com')
    const { unprovedSince } = await world.db.domain.findFirstOrThrow({ where: { name: 'late.com' } })
    expect((await world.call('POST', '/domains/late.com/verify')).status).toBe(202)
    expect(await world.db.domain.findFirst({ where: { name: 'late.com' } })).toMatchObject({ unprovedSince })
    // One more request at the end of the last day, and the check after it.
    await world.db.domain.updateMany({ where: { name: 'late.com' }, data: { unprovedSince: ago(30 * day) } })
    // Even the proof is too late.
    delegate('late.com')
    const { verified, verification } = await world.check('late.com')
    expect({ verified, next: verification.nextCheckAt }).toEqual({ verified: false, next: null })
    expect(verification.reason).toMatch(/^This domain was not verified within 30 days, .* add it again/)
    expect(await world.events('late.com')).toEqual(['domain.created', 'domain.unverified'])
    const again = await world.call('POST', '/domains/late.com/verify')
    expect(again).toMatchObject({ status: 409, body: { code: 'claim_ended' } })
    await world.call('DELETE', '/domains/late.com')
    expect((await world.attach('late.com')).verified).toBe(true)
  })
})

describe('a check that is asked for', () => {
  test('is made at once, though one waits for later', async () => {
    work()
    await world.newDomain('wakes.com')
    await until(async () => (await world.read('wakes.com')).verification.reason !== null)
    await until(async () => (await jobOf('wakes.com'))?.lockedBy === null)
    delegate('wakes.com')
    // The workers look by themselves every 2 s; that they need not is told by the notice.
    const notices: string[] = []
    const off = world.deps.notifications.on('job', (kind) => void notices.push(kind))
    await world.call('POST', '/domains/wakes.com/verify')
    await until(async () => (await world.read('wakes.com')).verified)
    off()
    expect(notices[0]).toBe('verify')
  })

  test('while another is under way is made after it, by what the DNS says then', async () => {
    await world.newDomain('twice.com')
    // The first datagram of the first check is lost and the second answered with the old state; in between comes the
    // request, and with it the new state.
    for (const server of world.internet.top) {
      let asked = 0
      server.asked.length = 0
      server.behave = (name, type, tcp) => {
        asked++
        if (asked === 1) return null
        return asked === 2 ? { code: 'NXDOMAIN' } : honestTop(name, type, tcp)
      }
    }
    work()
    await until(async () => world.internet.top.every(({ asked }) => asked.length > 0))
    await world.call('POST', '/domains/twice.com/verify')
    delegate('twice.com')
    await until(async () => (await world.read('twice.com')).verified)
    const checks = world.internet.top.map(({ asked }) => asked.filter((one) => one === 'twice.com NS').length)
    expect(checks).toEqual([3, 3, 3])
  })

  test('whose worker is killed is made by another', async () => {
    delegate('killed.com')
    await world.newDomain('killed.com')
    // What kill -9 leaves behind: a job that somebody holds who will never come back.
    const died = { lockedBy: 'dead', lockedUntil: ago(1_000), attempts: 1 }
    await world.db.job.updateMany({ where: { kind: 'verify' }, data: died })
    work()
    await until(async () => (await world.read('killed.com')).verified)
  })

  test('is not lost when its worker stops in the middle', async () => {
    delegate('stopped.com')
    for (const server of world.internet.top) server.behave = () => null
    const first = work()
    await world.newDomain('stopped.com')
    await until(async () => world.internet.top.some(({ asked }) => asked.includes('stopped.com NS')))
    await first.stop()
    expect(await jobOf('stopped.com')).toMatchObject({ lockedBy: null, attempts: 0 })
    for (const server of world.internet.top) server.behave = honestTop
    work()
    await until(async () => (await world.read('stopped.com')).verified)
  })
})

describe('a domain whose check is overdue', () => {
  test('and that no job stands for is found again, once; the others are left alone', async () => {
    await world.newDomain('forgotten.com')
    await world.newDomain('remembered.com')
    const id = await world.idOf('forgotten.com')
    await world.db.job.deleteMany({ where: { key: id } })
    await requeueForgottenChecks(world.db)
    expect(await jobOf('forgotten.com')).toBeNull()
    await world.db.domain.updateMany({
      where: { name: { in: ['forgotten.com', 'remembered.com'] } },
      data: { nextCheckAt: ago(hour) },
    })
    const before = await jobOf('remembered.com')
    await Promise.all([requeueForgottenChecks(world.db), requeueForgottenChecks(world.db)])
    expect(await jobOf('forgotten.com')).not.toBeNull()
    expect(await jobOf('remembered.com')).toEqual(before)
  })
})

describe('a verified domain', () => {
  const dayLater = (name: string) =>
    world.db.domain.updateMany({ where: { name, missedAt: { not: null } }, data: { missedAt: ago(day) } })

  test('is lost after three days in a row without its proof, with an event, and not by asking often', async () => {
    delegate('losing.com')
    await world.attach('losing.com')
    world.internet.delegations.delete('losing.com')
    for (const _ of [1, 2, 3, 4]) expect((await world.check('losing.com')).verified).toBe(true)
    await dayLater('losing.com')
    const second = await world.check('losing.com')
    expect(second).toMatchObject({ verified: true, verification: { method: 'nameservers' } })
    expect(second.verification.reason).toContain('.com has no name losing.com')
    await dayLater('losing.com')
    const lost = await world.check('losing.com')
    expect(lost).toMatchObject({ verified: false, verifiedAt: null, verification: { method: null } })
    expect(await world.events('losing.com')).toEqual(['domain.created', 'domain.verified', 'domain.unverified'])
    // It is looked for as a new one is.
    expect(new Date(lost.verification.nextCheckAt).getTime() - Date.now()).toBeLessThan(11_000)
    delegate('losing.com')
    expect((await world.check('losing.com')).verified).toBe(true)
  })

  test('is never lost by an outage, however long, and a proof forgets the misses', async () => {
    delegate('outage.com')
    await world.attach('outage.com')
    const id = await world.idOf('outage.com')
    const missed = { misses: 2, missedAt: ago(day) }
    await world.db.domain.update({ where: { id }, data: missed })
    for (const server of world.internet.top) server.behave = () => ({ code: 'SERVFAIL', aa: false })
    for (const _ of [1, 2, 3, 4]) {
      const { verified, verification } = await world.check('outage.com')
      expect(verified).toBe(true)
      expect(new Date(verification.nextCheckAt).getTime()).toBeLessThan(Date.now() + 1.2 * hour)
    }
    expect(await world.db.domain.findUnique({ where: { id } })).toMatchObject(missed)
    for (const server of world.internet.top) server.behave = honestTop
    await world.check('outage.com')
    expect(await world.db.domain.findUnique({ where: { id } })).toMatchObject({ misses: 0, missedAt: null })
  })

  test('by its nameservers misses its proof when they moved to some that do not answer', async () => {
    delegate('left.com')
    await world.attach('left.com')
    const [server] = await world.internet.addZone('left.com', 1, [])
    server!.behave = () => ({ code: 'SERVFAIL' })
    await world.check('left.com')
    expect(await world.db.domain.findFirst({ where: { name: 'left.com' } })).toMatchObject({ misses: 1 })
  })
})

describe('in development', () => {
  test('a name below .test is verified by our own nameservers over the socket, with no resolver at hand', async () => {
    const offline = { ...world.options.config, dnsResolvers: ['127.0.0.1:1'] }
    const { verify } = createVerification({ ...world.options, config: offline })
    work(verify)
    await world.newDomain('tour.test')
    await until(async () => (await world.read('tour.test')).verified)
    expect((await world.read('tour.test')).verification).toMatchObject({
      method: 'nameservers',
      observed: { nameservers: world.ours, txt: [] },
      reason: null,
    })
  })

  test('a name below .test waits while a nameserver is away', async () => {
    const config = { ...world.options.config, nameserverListen: [`127.0.0.1:${world.ports[0]}`, '127.0.0.1:1'] }
    const { verify } = createVerification({ ...world.options, config })
    await world.newDomain('away.test')
    await verify.run(
      { domainId: await world.idOf('away.test') },
      { attempt: 1, signal: new AbortController().signal, async requireHeld() {} },
    )
    const { verified, verification } = await world.read('away.test')
    expect(verified).toBe(false)
    expect(verification.reason).toContain('where not every Berth nameserver answers for away.test')
  })

  test('a name below .test is not verified where nobody can be asked', async () => {
    const config = { ...world.options.config, nameserverListen: ['127.0.0.1:0'] }
    const { verify } = createVerification({ ...world.options, config })
    await world.newDomain('nobody.test')
    await verify.run(
      { domainId: await world.idOf('nobody.test') },
      { attempt: 1, signal: new AbortController().signal, async requireHeld() {} },
    )
    expect(await world.read('nobody.test')).toMatchObject({ verified: false })
  })

  test('a name below .test of two accounts is nobody’s until the operator assigns it', async () => {
    const younger = await world.newOwner()
    await world.newDomain('shared.test')
    await world.newDomain('shared.test', younger.token)
    for (const token of [younger.token, world.token]) {
      const { verified, verification } = await world.check('shared.test', token)
      expect(verified).toBe(false)
      expect(verification.reason).toContain('POST /api/operator/domains/shared.test/assign')
    }
  })

  test('a name below .test has the pair of its claim, and a name that was another’s needs the operator', async () => {
    const world = await startVerificationWorld(poolOfEight)
    const next = await world.newOwner()
    const made = await world.newDomain('pair.test')
    await until(async () => (await world.check('pair.test')).verified)
    expect(await world.read('pair.test')).toMatchObject({
      nameservers: made.nameservers,
      verification: { observed: { nameservers: made.nameservers.toSorted() } },
    })
    await world.call('DELETE', '/domains/pair.test')
    await world.db.domainHold.deleteMany()
    await world.newDomain('pair.test', next.token)
    expect((await world.check('pair.test', next.token)).verified).toBe(false)
    await world.stop()
  })
})
