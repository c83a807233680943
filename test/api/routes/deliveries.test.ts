import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { idAt } from '../../../src/platform/ids.ts'
import { placeOf } from '../../../src/platform/secrets/secrets.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { pruneDeliveries, pruneSurplus } from '../../../src/services/webhooks/results.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

async function make(body: object = {}): Promise<Answer['body']> {
  const url = 'https://hooks.example.com/berth'
  const made = await api.call('POST', '/webhooks', { body: { url, events: ['*'], ...body } })
  expect(made.status, made.text).toBe(201)
  return made.body
}

async function opened(id: string) {
  const row = await api.db.webhook.findUniqueOrThrow({ where: { id } })
  return {
    secret: api.deps.vault.open(row.secret, placeOf.webhook(id)).toString(),
    old: row.oldSecret && api.deps.vault.open(row.oldSecret, placeOf.webhook(id)).toString(),
    until: row.oldSecretUntil,
  }
}

describe('the signing secret', () => {
  test('rotates: the new one is shown once, the old one stays valid for a day', async () => {
    const made = await make()
    const { status, body } = await api.call('POST', `/webhooks/${made.id}/rotate-secret`)
    expect(status).toBe(200)
    expect(body.secret).toMatch(/^whsec_/)
    expect(body.secret).not.toBe(made.secret)
    const stored = await opened(made.id)
    expect(stored).toMatchObject({ secret: body.secret, old: made.secret })
    expect(Math.abs(stored.until!.getTime() - Date.now() - 86_400_000)).toBeLessThan(60_000)
  })

  test('rotates with the overlap that was asked for, down to none', async () => {
    const { id } = await make()
    await api.call('POST', `/webhooks/${id}/rotate-secret`, { body: { overlapSeconds: 600 } })
    expect(Math.abs((await opened(id)).until!.getTime() - Date.now() - 600_000)).toBeLessThan(60_000)
    await api.call('POST', `/webhooks/${id}/rotate-secret`, { body: { overlapSeconds: 0 } })
    expect(await opened(id)).toMatchObject({ old: null, until: null })
  })

  test.each([-1, 604_801, 1.5, '60', null])('refuses an overlap of %s', async (overlapSeconds) => {
    const { id } = await make()
    const answer = await api.call('POST', `/webhooks/${id}/rotate-secret`, { body: { overlapSeconds } })
    expect(answer.status).toBe(422)
    expect(answer.body.errors[0].pointer).toBe('#/overlapSeconds')
  })

  test('rotates once for a repeated Idempotency-Key', async () => {
    const { id } = await make()
    const options = { body: {}, headers: { 'idempotency-key': 'rotate-once' } }
    const first = await api.call('POST', `/webhooks/${id}/rotate-secret`, options)
    const second = await api.call('POST', `/webhooks/${id}/rotate-secret`, options)
    expect(second.body.secret).toBe(first.body.secret)
    expect((await opened(id)).secret).toBe(first.body.secret)
  })
})

describe('deliveries', () => {
  test('a ping makes an event, a delivery that is due now, and word to the worker, in one transaction', async () => {
    const { id, secret, ...webhook } = await make({ active: false })
    const { status, body } = await api.call('POST', `/webhooks/${id}/ping`)
    expect(status).toBe(202)
    expect(body).toEqual({
      id: expect.stringMatching(/^dlv_/),
      eventId: expect.stringMatching(/^evt_/),
      eventType: 'webhook.ping',
      state: 'PENDING',
      attempts: 0,
      responseStatus: null,
      error: null,
      createdAt: expect.any(String),
      attemptedAt: null,
      nextAttemptAt: body.createdAt,
    })
    const event = await api.db.event.findUniqueOrThrow({ where: { id: body.eventId } })
    expect(event).toMatchObject({
      type: 'webhook.ping',
      subject: id,
      accountId: api.accountId,
      data: { id, ...webhook },
    })
    const [together] = await api.db.$queryRaw<{ xids: number }[]>`
      SELECT count(DISTINCT x)::int AS xids FROM (
        SELECT xmin::text AS x FROM event WHERE id = ${body.eventId}
        UNION ALL SELECT xmin::text FROM delivery WHERE id = ${body.id}
        UNION ALL SELECT xmin::text FROM webhook_lane WHERE webhook_id = ${id}) AS written`
    expect(together!.xids).toBe(1)
    const sending = await api.db.webhookSending.findUniqueOrThrow({ where: { webhookId: id } })
    expect(sending.wakeAt!.getTime()).toBeLessThanOrEqual(Date.now())
  })

  test('a redelivery is a new delivery of the same event, and the first stays as it was', async () => {
    const { id } = await make()
    const first = (await api.call('POST', `/webhooks/${id}/ping`)).body
    const data = { state: 'FAILED', attempts: 10, responseStatus: 500, error: 'HTTP 500', nextAttemptAt: null }
    await api.db.delivery.update({ where: { id: first.id }, data: { ...data, attemptedAt: new Date() } })
    const { status, body } = await api.call('POST', `/webhooks/${id}/deliveries/${first.id}/redeliver`)
    expect(status).toBe(202)
    expect(body).toMatchObject({ eventId: first.eventId, eventType: 'webhook.ping', state: 'PENDING', attempts: 0 })
    expect(body.id).not.toBe(first.id)
    expect(await api.db.delivery.findUnique({ where: { id: body.id } })).toMatchObject({ requested: true })
    const list = await api.call('GET', `/webhooks/${id}/deliveries`)
    expect(list.body.deliveries).toMatchObject([{ id: body.id }, { id: first.id, ...data }])
    const page = await api.call('GET', `/webhooks/${id}/deliveries?limit=1`)
    const next = await api.call('GET', `/webhooks/${id}/deliveries?limit=1&cursor=${page.body.nextCursor}`)
    expect(next.body.deliveries).toMatchObject([{ id: first.id }])
  })

  test('a delivery is read with its attempts, the first one first, and carries an ETag', async () => {
    const { id } = await make()
    const { body: ping } = await api.call('POST', `/webhooks/${id}/ping`)
    const path = `/webhooks/${id}/deliveries/${ping.id}`
    expect((await api.call('GET', path)).body).toEqual({ ...ping, attemptLog: [] })
    const startedAt = new Date()
    const attempt = {
      deliveryId: ping.id,
      startedAt,
      durationMs: 12,
      responseStatus: 500,
      responseBody: 'no',
      error: 'x',
    }
    const lost = { deliveryId: ping.id, startedAt, error: 'lost' }
    await api.db.deliveryAttempt.createMany({
      data: [
        { ...lost, attempt: 2 },
        { ...attempt, attempt: 1 },
      ],
    })
    const read = await api.call('GET', path)
    const { deliveryId, ...shown } = attempt
    expect(read.body.attemptLog).toEqual([
      { ...shown, attempt: 1, startedAt: startedAt.toISOString() },
      {
        attempt: 2,
        startedAt: startedAt.toISOString(),
        durationMs: null,
        responseStatus: null,
        responseBody: null,
        error: 'lost',
      },
    ])
    expect((await api.call('GET', path, { headers: { 'if-none-match': read.headers.etag! } })).status).toBe(304)
  })

  test('old deliveries are forgotten with their attempts, but not those that still wait, and no later ones', async () => {
    const { id } = await make()
    const ids: string[] = []
    for (const [days, state] of [
      [31, 'PENDING'],
      [31, 'DELIVERED'],
      [31, 'FAILED'],
      [29, 'DELIVERED'],
    ] as const) {
      const { body } = await api.call('POST', `/webhooks/${id}/ping`)
      const createdAt = new Date(Date.now() - days * 86_400_000)
      const old = `${idAt('dlv', createdAt)}${String(ids.length).padStart(14, '0')}`
      ids.push(old)
      await api.db.delivery.update({ where: { id: body.id }, data: { id: old, createdAt, state } })
      await api.db.deliveryAttempt.create({ data: { deliveryId: old, attempt: 1, startedAt: createdAt } })
    }
    expect(await pruneDeliveries(api.db, new Date(Date.now() - 30 * 86_400_000))).toBe(2)
    const left = [ids[0], ids[3]]
    const kept = await api.db.delivery.findMany({ where: { id: { in: ids } }, orderBy: { id: 'asc' } })
    expect(kept.map((row) => row.id)).toEqual(left)
    const attempts = await api.db.deliveryAttempt.findMany({ where: { deliveryId: { in: ids } } })
    expect(attempts.map((row) => row.deliveryId).sort()).toEqual(left)
  })

  test('of each webhook the newest deliveries are kept, and those that still wait', async () => {
    const [busy, quiet] = [await make(), await make()]
    await api.db.$executeRaw`
      INSERT INTO delivery (id, webhook_id, event_id, event_type, state, created_at, seq)
      SELECT 'dlv_surplus' || lpad(i::text, 4, '0'), ${busy.id}, 'evt_x', 'webhook.ping',
        CASE WHEN i % 500 = 0 THEN 'PENDING' ELSE 'DELIVERED' END, now(), i FROM generate_series(1, 2500) i`
    await api.call('POST', `/webhooks/${quiet.id}/ping`)
    expect(await pruneSurplus(api.db, undefined, 100)).toBe(2_396)
    const kept = await api.db.delivery.findMany({ where: { webhookId: busy.id }, orderBy: { id: 'asc' } })
    expect(kept.filter(({ state }) => state === 'PENDING').map(({ seq }) => Number(seq))).toEqual([
      500, 1000, 1500, 2000, 2500,
    ])
    expect(kept.filter(({ seq }) => seq > 2400n)).toHaveLength(100)
    expect(await api.db.delivery.count({ where: { webhookId: quiet.id } })).toBe(1)
  })

  test('a delivery belongs to its webhook', async () => {
    const [one, other] = [await make(), await make()]
    const { body } = await api.call('POST', `/webhooks/${one.id}/ping`)
    expect((await api.call('GET', `/webhooks/${other.id}/deliveries/${body.id}`)).status).toBe(404)
    expect((await api.call('POST', `/webhooks/${other.id}/deliveries/${body.id}/redeliver`)).status).toBe(404)
    expect((await api.call('GET', `/webhooks/${other.id}/deliveries`)).body.deliveries).toEqual([])
  })

  test('reading takes webhooks:read, a ping webhooks:write', async () => {
    const { id } = await make()
    const reader = await insertToken(api.db, {
      accountId: api.accountId,
      name: 'reader',
      scopes: ['webhooks:read'],
      projectIds: [],
      expiresAt: null,
    })
    const token = reader.secret
    expect((await api.call('GET', `/webhooks/${id}/deliveries`, { token })).status).toBe(200)
    const refused = await api.call('POST', `/webhooks/${id}/ping`, { token })
    expect(refused.body).toMatchObject({ code: 'insufficient_scope', requiredScope: 'webhooks:write' })
  })

  test('a ping with a repeated Idempotency-Key is sent once', async () => {
    const { id } = await make()
    const headers = { 'idempotency-key': 'ping-once' }
    const first = await api.call('POST', `/webhooks/${id}/ping`, { headers })
    expect((await api.call('POST', `/webhooks/${id}/ping`, { headers })).body).toEqual(first.body)
    expect(await api.db.delivery.count({ where: { webhookId: id } })).toBe(1)
  })
})
