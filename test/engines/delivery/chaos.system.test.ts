import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { answers } from './receiver.ts'
import { type Hook, startWorld, type World } from './world.ts'

const kills = 10
const events = 2_000
const leaseMs = 400

vi.setConfig({ testTimeout: 60_000 + kills * 15_000 })

let world: World
const children = new Set<ChildProcess>()
beforeAll(async () => {
  world = await startWorld()
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await world.stop()
})

function startWorker(): ChildProcess {
  const file = join(import.meta.dirname, 'worker-process.ts')
  const child = spawn(process.execPath, [file, world.api.databaseUrl, String(leaseMs)], { stdio: 'inherit' })
  children.add(child)
  return child
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
  children.delete(child)
}

test(`${events} events survive ${kills} times kill -9 of the worker: each is delivered, and each attempt is in the log`, async () => {
  const hooks: Hook[] = []
  // Some answer late, so that a kill finds attempts under way.
  for (let n = 0; n < 5; n++) {
    hooks.push(await world.hook((response) => void sleep(n * 10).then(() => response.writeHead(204).end())))
  }
  const received = () => hooks.reduce((sum, hook) => sum + hook.receiver.received.length, 0)
  const share = Math.ceil(events / kills)
  let worker = startWorker()
  let written = 0
  for (let n = 0; n < kills; n++) {
    const before = received()
    const batch = Math.min(share, events - written)
    const writing = Promise.all(hooks.map((hook, i) => world.emit(hook, Math.ceil((batch - i) / hooks.length))))
    written += batch
    // In the middle of the work, and not before it was begun.
    await until(() => received() > before + batch / 4)
    await kill(worker)
    worker = startWorker()
    await writing
  }
  const waiting = () => world.api.db.delivery.count({ where: { state: { not: 'DELIVERED' } } })
  await until(async () => (await waiting()) === 0)

  const logged = await world.api.db.event.findMany({ where: { type: 'ticket.created' } })
  expect(logged.length).toBe(events)
  const arrived = new Set(hooks.flatMap((hook) => hook.receiver.received.map((one) => one.event.id)))
  expect(logged.filter((event) => !arrived.has(event.id))).toEqual([])
  const deliveries = await world.api.db.delivery.findMany({ include: { attemptLog: { orderBy: { attempt: 'asc' } } } })
  expect(deliveries.length).toBe(events)
  let lost = 0
  for (const { attempts, attemptLog } of deliveries) {
    expect(attemptLog.map((one) => one.attempt)).toEqual(Array.from({ length: attempts }, (_, i) => i + 1))
    expect(attemptLog[attempts - 1]).toMatchObject({ responseStatus: 204, error: null })
    lost += attempts - 1
  }
  // Whoever was cut off is on record as such, and whatever arrived twice had a second attempt.
  expect(lost).toBeGreaterThan(0)
  expect(received()).toBeLessThanOrEqual(events + lost)
  await kill(worker)
})

test('two workers share the webhooks, one takes over from the other, and nothing is sent twice', async () => {
  const [first, second] = [world.work({ pollMs: 50 }), world.work({ pollMs: 50 })]
  const hooks = await Promise.all(Array.from({ length: 8 }, () => world.hook()))
  const emitAll = () => Promise.all(hooks.map((hook) => world.emit(hook, 5)))
  await emitAll()
  await until(() => hooks.every((hook) => hook.receiver.received.length === 5))
  await first.stop()
  await emitAll()
  await until(() => hooks.every((hook) => hook.receiver.received.length >= 10))
  await second.stop()
  expect(hooks.map((hook) => hook.receiver.received.length)).toEqual(hooks.map(() => 10))
  const ids = hooks.map((hook) => hook.id)
  const sendings = await world.api.db.webhookSending.findMany({ where: { webhookId: { in: ids } } })
  expect(sendings.map(({ leasedBy, wakeAt }) => ({ leasedBy, wakeAt }))).toEqual(
    hooks.map(() => ({ leasedBy: null, wakeAt: null })),
  )
})

test('a worker that is paused gives its webhooks to others, finishes what is under way, and sends again later', async () => {
  const gate = Promise.withResolvers<void>()
  const hook = await world.hook((response) => void gate.promise.then(() => response.writeHead(200).end()))
  const paused = world.work({ pollMs: 50 })
  await world.emit(hook)
  await until(() => hook.receiver.received.length === 1)
  paused.pause(true)
  hook.receiver.behave(answers(200))
  await world.emit(hook, 3)
  const sending = () => world.api.db.webhookSending.findUniqueOrThrow({ where: { webhookId: hook.id } })
  expect((await sending()).leasedBy).not.toBeNull()
  gate.resolve()
  await until(async () => (await sending()).leasedBy === null)
  expect(hook.receiver.received).toHaveLength(1)
  const other = world.work({ pollMs: 50 })
  await until(() => hook.receiver.received.length === 4)
  await other.stop()
  await world.emit(hook)
  paused.pause(false)
  await until(() => hook.receiver.received.length === 5)
  await paused.stop()
  expect((await world.deliveries(hook)).map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1, 1])
})

test('a worker that stops in order leaves no attempt unfinished that ends in time, and tells of one that does not', async () => {
  const gate = Promise.withResolvers<void>()
  const hook = await world.hook((response) => void gate.promise.then(() => response.writeHead(200).end()))
  const stuck = await world.hook(() => {})
  const worker = world.work()
  await world.emit(hook)
  await world.emit(stuck)
  await until(() => hook.receiver.received.length + stuck.receiver.received.length === 2)
  const stopped = worker.stop()
  gate.resolve()
  await stopped
  expect((await world.deliveries(hook))[0]).toMatchObject({ state: 'DELIVERED', attempts: 1 })
  expect((await world.deliveries(stuck))[0]).toMatchObject({ state: 'PENDING', attempts: 1, nextAttemptAt: null })
  stuck.receiver.behave(answers(200))
  const next = world.work({ pollMs: 50 })
  await until(async () => (await world.deliveries(stuck))[0].state === 'DELIVERED')
  const { attemptLog } = await world.delivery(stuck, (await world.deliveries(stuck))[0].id)
  expect(attemptLog).toMatchObject([
    { attempt: 1, error: 'the worker stopped or was lost before the outcome was known', durationMs: null },
    { attempt: 2, responseStatus: 200, error: null },
  ])
  await next.stop()
})

test('a worker that stops leaves word of when the next attempt is due', async () => {
  const hook = await world.hook(answers(500))
  const worker = world.work()
  await world.emit(hook)
  await until(async () => (await world.deliveries(hook))[0]?.nextAttemptAt && hook.receiver.received.length === 1)
  await worker.stop()
  const sending = await world.api.db.webhookSending.findUniqueOrThrow({ where: { webhookId: hook.id } })
  const [{ nextAttemptAt }] = await world.deliveries(hook)
  expect(sending).toMatchObject({ leasedBy: null, wakeAt: new Date(nextAttemptAt), failures: 1 })
})

test('the sending of a lost worker is due to others within 8 s', async () => {
  const hook = await world.hook(() => {})
  const worker = world.work()
  await world.emit(hook)
  await until(() => hook.receiver.received.length === 1)
  // Others look every second for what is due.
  const [lease] = await world.api.db.$queryRaw<{ ms: number }[]>`
    SELECT extract(epoch FROM wake_at - now())::float * 1000 AS ms FROM webhook_lane WHERE webhook_id = ${hook.id}`
  expect(lease!.ms).toBeLessThanOrEqual(7_000)
  await worker.stop()
})
