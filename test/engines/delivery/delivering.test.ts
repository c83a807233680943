import { Registry } from 'prom-client'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { maxWindow } from '../../../src/engines/delivery/active-webhooks.ts'
import { createDeliveryMetrics } from '../../../src/engines/delivery/metrics.ts'
import { eventTypes } from '../../../src/schemas/events.ts'
import { append } from '../../../src/services/events/events.ts'
import { countWaiting } from '../../../src/services/webhooks/results.ts'
import { subscribes } from '../../../src/services/webhooks/webhooks.ts'
import { until } from '../../helpers/until.ts'
import { answers } from './receiver.ts'
import { startWorld, type World } from './world.ts'

let world: World
const registry = new Registry()
beforeAll(async () => {
  world = await startWorld()
  world.work({ pollMs: 100 }, registry)
})
afterAll(() => world.stop())

describe('an event', () => {
  test('reaches every subscribed webhook, as the API shows it and signed by Standard Webhooks', async () => {
    const hook = await world.hook()
    const { api } = world
    const made = await api.call('POST', '/tickets', { token: hook.token, body: { subject: 'Hi', message: 'Why?' } })
    await until(() => hook.receiver.received.length === 1)
    const [got] = hook.receiver.received
    const listed = (await api.call('GET', '/events?type=ticket.created', { token: hook.token })).body.events[0]
    expect(new Webhook(hook.secret).verify(got!.body, got!.headers)).toEqual(listed)
    expect(got!.event.data).toEqual(made.body)
    expect(got!.headers).toMatchObject({ 'webhook-id': listed.id, 'content-type': 'application/json' })
    expect(() => new Webhook(hook.secret).verify(`${got!.body} `, got!.headers)).toThrow()
    await until(async () => (await world.deliveries(hook))[0].state === 'DELIVERED')
    const [delivery] = await world.deliveries(hook)
    expect(delivery).toMatchObject({ eventId: listed.id, attempts: 1, responseStatus: 204, error: null })
    expect(got!.headers['berth-delivery']).toBe(delivery.id)
    expect(delivery.id).toMatch(/^dlv_[0-9a-hjkmnp-tv-z]{24}$/)
  })

  test('is made into a delivery by the database as the service’s rule says, for every type and pattern', async () => {
    const patterns = ['*', 'webhook.*', 'domain.*', 'domain.ssl.*', 'dns.record.*', 'ticket.replied', 'account.created']
    const { api } = world
    const { accountId, token } = await api.newAccount()
    const hooks = new Map<string, string>()
    for (const pattern of patterns) {
      const body = { url: 'http://127.0.0.1:1/', events: [pattern] }
      hooks.set((await api.call('POST', '/webhooks', { token, body })).body.id, pattern)
    }
    const off = { url: 'http://127.0.0.1:1/', events: ['*'], active: false }
    hooks.set((await api.call('POST', '/webhooks', { token, body: off })).body.id, 'inactive')
    // One statement for all of them, as a batch of records writes its events.
    const event = { accountId, projectId: null, actor: 'system', subject: 'x', data: {} }
    await append(
      api.db,
      eventTypes.map((type) => ({ ...event, type })),
    )
    const made = await api.db.delivery.findMany({ where: { webhookId: { in: [...hooks.keys()] } } })
    const got = made.map((delivery) => `${hooks.get(delivery.webhookId)} ${delivery.eventType}`).sort()
    const wanted = patterns.flatMap((pattern) =>
      eventTypes.filter((type) => subscribes([pattern], type)).map((type) => `${pattern} ${type}`),
    )
    expect(got).toEqual(wanted.sort())
    expect(new Set(made.map((delivery) => delivery.id)).size).toBe(made.length)
  })

  test('leaves no delivery behind when its change is rolled back', async () => {
    const hook = await world.hook()
    const before = await world.api.db.delivery.count()
    await expect(
      world.api.db.$transaction(async (db) => {
        const event = { projectId: null, type: 'ticket.created' as const, actor: 'x', subject: 'x', data: {} }
        await append(db, [{ ...event, accountId: hook.accountId }])
        expect(await db.delivery.count()).toBe(before + 1)
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect(await world.api.db.delivery.count()).toBe(before)
  })

  test('survives a webhook that is deleted at the same moment', async () => {
    for (let n = 0; n < 5; n++) {
      const hook = await world.hook()
      const ticket = { subject: 'Hi', message: 'Why?' }
      const [deleted, ...made] = await Promise.all([
        world.api.call('DELETE', `/webhooks/${hook.id}`, { token: hook.token }),
        ...[1, 2, 3, 4].map(() => world.api.call('POST', '/tickets', { token: hook.token, body: ticket })),
      ])
      expect([deleted!.status, ...made.map((answer) => answer.status)]).toEqual([204, 201, 201, 201, 201])
    }
  })
})

/**
 * When the first attempts began, in the order of the events. Those under way together may overtake one another on the
 * wire. An attempt has its own time once its result is written.
 */
async function startsOf(hook: { id: string }, count: number) {
  const { db } = world.api
  await until(async () => (await db.delivery.count({ where: { webhookId: hook.id, state: 'DELIVERED' } })) === count)
  return db.$queryRaw<{ id: string; type: string; started: Date }[]>`
    SELECT e.id, e.type, d.attempted_at AS started FROM event e JOIN delivery d ON d.event_id = e.id
    WHERE d.webhook_id = ${hook.id} ORDER BY e.xid, e.seq`
}

describe('the order', () => {
  test('of first attempts is that of the events, however many are written at once', async () => {
    const hook = await world.hook()
    await Promise.all(Array.from({ length: 10 }, () => world.emit(hook, 12)))
    const log = await startsOf(hook, 120)
    const received = hook.receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(received.sort()).toEqual(log.map(({ id }) => id).sort())
    const starts = log.map(({ started }) => started)
    expect(starts).toEqual(starts.toSorted((a, b) => a.getTime() - b.getTime()))
    expect(hook.receiver.connections).toBeLessThanOrEqual(maxWindow)
  })

  test('waits for a transaction that began early and commits late', async () => {
    const hook = await world.hook()
    const gate = Promise.withResolvers<void>()
    const early = Promise.withResolvers<void>()
    const event = { accountId: hook.accountId, projectId: null, actor: 'x', subject: 'x', data: {} }
    const slow = world.api.db.$transaction(async (db) => {
      await append(db, [{ ...event, type: 'ticket.created' }])
      early.resolve()
      await gate.promise
    })
    await early.promise
    await append(world.api.db, [{ ...event, type: 'ticket.replied' }])
    await until(async () => (await world.deliveries(hook)).length === 1)
    expect(hook.receiver.received).toEqual([])
    gate.resolve()
    await slow
    const [first, second] = await startsOf(hook, 2)
    expect([first!.type, second!.type]).toEqual(['ticket.created', 'ticket.replied'])
    expect(first!.started.getTime()).toBeLessThanOrEqual(second!.started.getTime())
  })
})

describe('the secret', () => {
  test('that was rotated signs beside the new one until the overlap ends', async () => {
    const hook = await world.hook()
    const rotate = (overlapSeconds: number) =>
      world.api.call('POST', `/webhooks/${hook.id}/rotate-secret`, { token: hook.token, body: { overlapSeconds } })
    const second = (await rotate(600)).body.secret
    await world.emit(hook)
    await until(() => hook.receiver.received.length === 1)
    const both = hook.receiver.received[0]!
    expect(both.headers['webhook-signature']!.split(' ')).toHaveLength(2)
    for (const secret of [hook.secret, second]) new Webhook(secret).verify(both.body, both.headers)
    const third = (await rotate(0)).body.secret
    await world.emit(hook)
    await until(() => hook.receiver.received.length === 2)
    const last = hook.receiver.received[1]!
    new Webhook(third).verify(last.body, last.headers)
    expect(() => new Webhook(second).verify(last.body, last.headers)).toThrow()
  })
})

describe('by hand', () => {
  test('a ping and a redelivery go out also while the webhook is inactive, and nothing else does', async () => {
    const hook = await world.hook()
    await world.emit(hook)
    await until(async () => (await world.deliveries(hook))[0]?.state === 'DELIVERED')
    const [first] = await world.deliveries(hook)
    const { api } = world
    await api.call('PATCH', `/webhooks/${hook.id}`, { token: hook.token, body: { active: false } })
    await world.emit(hook)
    const ping = (await api.call('POST', `/webhooks/${hook.id}/ping`, { token: hook.token })).body
    const again = `/webhooks/${hook.id}/deliveries/${first.id}/redeliver`
    const second = (await api.call('POST', again, { token: hook.token })).body
    await until(() => hook.receiver.received.length === 3)
    await until(async () => (await world.deliveries(hook)).every(({ state }) => state === 'DELIVERED'))
    const ids = (await world.deliveries(hook)).map(({ id }) => id)
    expect(ids.sort()).toEqual([first.id, ping.id, second.id].sort())
    const sent = hook.receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(sent.sort()).toEqual([first.eventId, first.eventId, ping.eventId].sort())
  })

  test('a ping does not wait for a receiver that is only probed', async () => {
    const hook = await world.hook(answers(500))
    await world.emit(hook, 12)
    const paused = () => world.api.db.webhookSending.findUnique({ where: { webhookId: hook.id } })
    await until(async () => (await paused())?.pausedUntil)
    hook.receiver.behave(answers(200))
    await world.api.call('POST', `/webhooks/${hook.id}/ping`, { token: hook.token })
    await until(() => hook.receiver.received.some((one) => one.event.type === 'webhook.ping'))
    // It succeeds, so all that waited goes out at once; those that failed have a time of their own.
    await until(async () => (await world.deliveries(hook)).every(({ attempts }) => attempts >= 1))
  })
})

test('a receiver that hangs does not delay another, however many events wait for it', async () => {
  const slow = await Promise.all(Array.from({ length: 5 }, () => world.hook(() => {})))
  const quick = await world.hook()
  for (const hook of slow) await world.emit(hook, 20)
  await until(() => slow.every((hook) => hook.receiver.received.length === 8))
  // The slow ones hold all of their places for 15 s.
  await world.emit(quick, 3)
  await until(() => quick.receiver.received.length === 3)
  expect(slow.map((hook) => hook.receiver.received.length)).toEqual([8, 8, 8, 8, 8])
})

test('what is sent is counted: attempts by outcome, the time to the first of them, and what waits', async () => {
  const count = async (name: string) => {
    const line = (await registry.metrics()).split('\n').find((text) => text.startsWith(name))
    return Number(line?.split(' ').pop() ?? 0)
  }
  const delivered = 'berth_webhook_attempts_total{outcome="delivered"}'
  const first = 'berth_webhook_first_attempt_seconds_count'
  const before = { delivered: await count(delivered), first: await count(first) }
  const hook = await world.hook()
  await world.emit(hook, 2)
  await until(async () => (await world.deliveries(hook)).every(({ state }) => state === 'DELIVERED'))
  expect(await count(delivered)).toBeGreaterThanOrEqual(before.delivered + 2)
  expect(await count(first)).toBeGreaterThanOrEqual(before.first + 2)
  await world.api.call('PATCH', `/webhooks/${hook.id}`, { token: hook.token, body: { active: false } })
  await world.api.db.delivery.updateMany({ where: { webhookId: hook.id }, data: { state: 'PENDING', attempts: 0 } })
  // A figure is kept for a while, so a registry that has asked for none yet tells what waits now.
  const fresh = new Registry()
  createDeliveryMetrics(fresh, { inFlight: () => 0, waiting: () => countWaiting(world.api.db) })
  const backlog = (await fresh.getSingleMetricAsString('berth_webhook_backlog')).split(' ').pop()
  expect(Number(backlog)).toBeGreaterThanOrEqual(2)
})
