import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { until } from '../../helpers/until.ts'
import { answers, type Behaviour } from './receiver.ts'
import { type Hook, startWorld, type World } from './world.ts'

const timeoutMs = 2_000
let world: World
beforeAll(async () => {
  world = await startWorld()
  world.work({ timeoutMs, pollMs: 100 })
})
afterAll(() => world.stop())

const only = async (hook: Hook) => world.delivery(hook, (await world.deliveries(hook))[0].id)

/** What passes in hours, at once: every delivery of the webhook is due, and its pause is over. */
async function passTime(hook: Hook): Promise<void> {
  const due = { nextAttemptAt: new Date() }
  await world.api.db.delivery.updateMany({ where: { webhookId: hook.id, nextAttemptAt: { not: null } }, data: due })
  await world.api.db.webhookSending.updateMany({ where: { webhookId: hook.id }, data: { pausedUntil: null } })
  const free = { webhookId: hook.id, leasedBy: null }
  await world.api.db.webhookSending.updateMany({ where: free, data: { wakeAt: new Date() } })
}

const hangs: Behaviour = () => {}
const drops: Behaviour = (_response, request) => request.socket.destroy()
const announces: Behaviour = (_response, request) => request.socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))
const stallsInBody: Behaviour = (response) => response.writeHead(200).write('begun')
const endless: Behaviour = (response) => {
  response.writeHead(200)
  const write = () => {
    while (!response.destroyed && response.write('x'.repeat(16_384)));
    response.once('drain', write)
  }
  write()
}

describe('the log tells the truth of', () => {
  test.each<[string, Behaviour, object]>([
    [
      'an error, with the answer',
      answers(503, {}, 'try later'),
      { responseStatus: 503, error: 'the receiver answered 503', responseBody: 'try later' },
    ],
    [
      'a redirect, which is not followed',
      answers(302, { location: 'http://127.0.0.1:1/' }),
      { responseStatus: 302, error: 'the receiver answered 302, and redirects are not followed' },
    ],
    [
      'a receiver that hangs',
      hangs,
      { responseStatus: null, error: 'there was no full answer within 2 s', responseBody: null },
    ],
    [
      'a receiver that only announces an answer',
      announces,
      {
        responseStatus: null,
        error: 'the request failed: more than 20 answers came before the real one',
        responseBody: null,
      },
    ],
    [
      'a dropped connection',
      drops,
      { responseStatus: null, error: 'the connection was closed before an answer came', responseBody: null },
    ],
  ])('%s', async (_name, behaviour, expected) => {
    const hook = await world.hook(behaviour)
    await world.emit(hook)
    await until(
      async () => (await world.deliveries(hook))[0]?.nextAttemptAt && (await only(hook)).attemptLog.length === 1,
    )
    const failed = await only(hook)
    expect(failed.attemptLog[0]).toMatchObject({ attempt: 1, ...expected })
    expect(failed).toMatchObject({ state: 'PENDING', attempts: 1, error: failed.attemptLog[0].error })
    const nextMs = Date.parse(failed.nextAttemptAt)
    expect(nextMs - Date.parse(failed.attemptedAt)).toBeGreaterThanOrEqual(5_000)
    expect(nextMs - Date.now()).toBeLessThanOrEqual(5_000)
    // It comes back.
    hook.receiver.behave(answers(200, {}, 'ok'))
    await passTime(hook)
    await until(async () => (await only(hook)).state === 'DELIVERED')
    const delivered = await only(hook)
    expect(delivered).toMatchObject({ attempts: 2, responseStatus: 200, error: null, nextAttemptAt: null })
    expect(delivered.attemptLog[0]).toEqual(failed.attemptLog[0])
    expect(delivered.attemptLog[1]).toMatchObject({ attempt: 2, responseStatus: 200, error: null, responseBody: 'ok' })
    expect(hook.receiver.received.map((one) => one.path)).toEqual(['/hook', '/hook'])
  })

  test('a refused connection', async () => {
    const hook = await world.hook()
    await hook.receiver.close()
    await world.emit(hook)
    await until(async () => (await only(hook)).attemptLog.length === 1)
    expect((await only(hook)).attemptLog[0]).toMatchObject({
      responseStatus: null,
      error: 'the connection was refused',
    })
  })

  test('a success whose answer stalls or never ends: it is delivered, and no more than 4 KB are kept', async () => {
    const [stalled, flooded] = [await world.hook(stallsInBody), await world.hook(endless)]
    await world.emit(stalled)
    await world.emit(flooded)
    await until(async () => (await only(stalled)).state === 'DELIVERED' && (await only(flooded)).state === 'DELIVERED')
    expect((await only(stalled)).attemptLog[0]).toMatchObject({
      responseStatus: 200,
      responseBody: 'begun',
      error: 'there was no full answer within 2 s',
    })
    expect((await only(flooded)).attemptLog[0]).toMatchObject({
      responseBody: 'x'.repeat(4096),
      error: 'the answer was longer than 64 KB',
    })
  })

  test('an answer that is no text', async () => {
    const hook = await world.hook((response) => response.writeHead(500).end(Buffer.from([0, 0xff, 0x41])))
    await world.emit(hook)
    await until(async () => (await only(hook)).attemptLog.length === 1)
    expect((await only(hook)).attemptLog[0].responseBody).toBe('\uFFFD\uFFFDA')
  })
})

describe('a delivery', () => {
  test('is tried by the contract’s table, then has failed, and can be sent again by hand', async () => {
    const hook = await world.hook(answers(500))
    await world.emit(hook)
    const minutes = [5, 30, 120, 300, 600, 840, 1200, 1440].map((each) => each * 60_000)
    for (const [index, waitMs] of [5_000, ...minutes].entries()) {
      await until(async () => (await only(hook)).attemptLog.length === index + 1)
      const { nextAttemptAt, attemptedAt } = await only(hook)
      // Counted from the end of the attempt, which is between its start and now.
      expect(Date.parse(nextAttemptAt) - Date.parse(attemptedAt)).toBeGreaterThanOrEqual(waitMs)
      expect(Date.parse(nextAttemptAt) - Date.now()).toBeLessThanOrEqual(waitMs)
      await passTime(hook)
    }
    await until(async () => (await only(hook)).state === 'FAILED')
    const failed = await only(hook)
    expect(failed).toMatchObject({ attempts: 10, nextAttemptAt: null, responseStatus: 500 })
    expect(failed.attemptLog.map((one: { attempt: number }) => one.attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    hook.receiver.behave(answers(204))
    const again = `/webhooks/${hook.id}/deliveries/${failed.id}/redeliver`
    const { id } = (await world.api.call('POST', again, { token: hook.token })).body
    await until(async () => (await world.delivery(hook, id)).state === 'DELIVERED')
    expect(await only(hook)).toEqual(failed)
  })

  test('whose webhook is deleted while it is under way is gone, and the others go on', async () => {
    const gate = Promise.withResolvers<void>()
    const [doomed, other] = [
      await world.hook((response) => void gate.promise.then(() => response.end())),
      await world.hook(),
    ]
    await world.emit(doomed, 3)
    await until(() => doomed.receiver.received.length > 0)
    await world.api.call('DELETE', `/webhooks/${doomed.id}`, { token: doomed.token })
    gate.resolve()
    await world.emit(other)
    await until(async () => (await only(other)).state === 'DELIVERED')
    expect(await world.api.db.delivery.count({ where: { webhookId: doomed.id } })).toBe(0)
  })
})

describe('a webhook', () => {
  test('whose receiver keeps failing is probed by one delivery at a time; the others wait uncounted, and none is lost', async () => {
    const hook = await world.hook(answers(500))
    await world.emit(hook, 40)
    const sending = () => world.api.db.webhookSending.findUniqueOrThrow({ where: { webhookId: hook.id } })
    await until(async () => (await world.deliveries(hook)).filter((one) => one.attempts > 0).length >= 5)
    await until(async () => (await sending()).failures >= 5 && (await sending()).pausedUntil)
    const sent = hook.receiver.received.length
    expect(sent).toBeLessThanOrEqual(16)
    expect((await world.deliveries(hook)).filter((one) => one.attempts === 0).length).toBe(40 - sent)
    const pauseMs = (await sending()).pausedUntil!.getTime() - Date.now()
    expect(pauseMs).toBeLessThanOrEqual(20_000)
    await passTime(hook)
    await until(async () => (await sending()).pausedUntil)
    expect(hook.receiver.received.length).toBe(sent + 1)
    hook.receiver.behave(answers(200))
    await passTime(hook)
    await until(async () => (await world.deliveries(hook)).every(({ state }) => state === 'DELIVERED'))
    expect(await sending()).toMatchObject({ failures: 0, failingSince: null, pausedUntil: null })
    expect(new Set(hook.receiver.received.map((one) => one.event.id)).size).toBe(40)
  })

  test('that answers 410 is turned off at once, and the account is told', async () => {
    const hook = await world.hook(answers(410))
    const body = { url: hook.receiver.url, events: ['webhook.*'] }
    const witness = (await world.api.call('POST', '/webhooks', { token: hook.token, body })).body.id
    await world.emit(hook)
    const read = () => world.api.call('GET', `/webhooks/${hook.id}`, { token: hook.token })
    await until(async () => !(await read()).body.active)
    expect(await only(hook)).toMatchObject({ state: 'FAILED', attempts: 1, responseStatus: 410, nextAttemptAt: null })
    // The witness gets a 410 too, and may already be off.
    const path = `/events?type=webhook.disabled&subject=${hook.id}`
    const { events } = (await world.api.call('GET', path, { token: hook.token })).body
    expect(events).toMatchObject([{ subject: hook.id, actor: 'system', data: (await read()).body }])
    // The others of the account are told by delivery too.
    const told = await world.api.db.delivery.findMany({ where: { webhookId: witness } })
    expect(told.map((delivery) => delivery.eventType)).toEqual(['webhook.disabled'])
  })

  test('is turned off no sooner by a clock that jumps a week ahead, and tried again in time when it jumps back', async () => {
    const hook = await world.hook(answers(500))
    const failed = (times: number) => until(async () => (await only(hook))?.attempts === times)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 7 * 86_400_000 })
    try {
      await world.emit(hook)
      const where = { webhookId: hook.id, failures: 1 }
      await until(async () => (await world.api.db.webhookSending.count({ where })) > 0)
    } finally {
      vi.useRealTimers()
    }
    await passTime(hook)
    await failed(2)
    expect(await world.api.db.webhook.findUniqueOrThrow({ where: { id: hook.id } })).toMatchObject({ active: true })
  })

  test('that did nothing but fail for five days is turned off; turned on again, it begins anew with what waits', async () => {
    const hook = await world.hook(answers(500))
    await world.emit(hook, 9)
    const sending = world.api.db.webhookSending
    const where = { webhookId: hook.id }
    await until(async () => (await sending.findUnique({ where }))?.pausedUntil)
    const read = async () => (await world.api.call('GET', `/webhooks/${hook.id}`, { token: hook.token })).body
    expect((await read()).active).toBe(true)
    await sending.update({ where, data: { failingSince: new Date(Date.now() - 5 * 86_400_000 - 1000) } })
    await passTime(hook)
    await until(async () => !(await read()).active)
    const calls = hook.receiver.received.length
    await passTime(hook)
    // What comes later is sent meanwhile.
    const other = await world.hook()
    await world.emit(other)
    await until(async () => (await only(other)).state === 'DELIVERED')
    expect(hook.receiver.received.length).toBe(calls)
    hook.receiver.behave(answers(200))
    await world.api.call('PATCH', `/webhooks/${hook.id}`, { token: hook.token, body: { active: true } })
    expect(await sending.findUnique({ where })).toMatchObject({ failures: 0, failingSince: null, pausedUntil: null })
    await until(async () => (await world.deliveries(hook)).every(({ state }) => state === 'DELIVERED'))
  })
})
