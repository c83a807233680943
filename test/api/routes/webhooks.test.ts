import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { placeOf } from '../../../src/platform/secrets/secrets.ts'
import { eventTypes } from '../../../src/schemas/events.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { subscribes } from '../../../src/services/webhooks/webhooks.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
beforeAll(async () => {
  api = await sharedApi()
})
afterAll(() => api.stop())

const url = 'https://hooks.example.com/berth'

async function make(body: object = {}, token = api.token): Promise<Answer['body']> {
  const made = await api.call('POST', '/webhooks', { body: { url, events: ['*'], ...body }, token })
  expect(made.status, made.text).toBe(201)
  return made.body
}

function refusals(answer: Answer): string[] {
  expect(answer.status, answer.text).toBe(422)
  return answer.body.errors.map((error: { pointer: string; code: string }) => `${error.pointer} ${error.code}`)
}

describe('making a webhook', () => {
  test('answers 201 with the contract’s fields and a secret of Standard Webhooks', async () => {
    const { status, headers, body } = await api.call('POST', '/webhooks', { body: { url, events: ['deployment.*'] } })
    expect(status).toBe(201)
    expect(headers.location).toBe(`/api/webhooks/${body.id}`)
    expect(Object.keys(body)).toEqual(['id', 'url', 'events', 'active', 'createdAt', 'updatedAt', 'secret'])
    expect(body).toMatchObject({ url, events: ['deployment.*'], active: true })
    expect(body.id).toMatch(/^whk_/)
    expect(body.secret).toMatch(/^whsec_/)
    expect(Buffer.from(body.secret.slice(6), 'base64')).toHaveLength(32)
  })

  test('shows the secret once: no read, list or change has it, and the database holds it sealed', async () => {
    const { id, secret } = await make()
    const answers = [
      await api.call('GET', `/webhooks/${id}`),
      await api.call('GET', '/webhooks'),
      await api.call('PATCH', `/webhooks/${id}`, { body: { active: false } }),
      await api.call('POST', `/webhooks/${id}/ping`),
    ]
    for (const { text } of answers) expect(text).not.toMatch(/secret|whsec_/)
    const stored = await api.db.webhook.findUniqueOrThrow({ where: { id } })
    expect(api.deps.vault.open(stored.secret, placeOf.webhook(id)).toString()).toBe(secret)
    expect(Buffer.from(stored.secret).toString('latin1')).not.toContain(secret.slice(6))
    const events = await api.db.event.findMany({ where: { subject: id } })
    expect(JSON.stringify(events, (_, value) => (typeof value === 'bigint' ? 0 : value))).not.toContain('whsec_')
  })

  test('gives the same secret again to a repeated Idempotency-Key, and makes one webhook', async () => {
    const { token, accountId } = await api.newAccount()
    const options = { body: { url, events: ['*'] }, token, headers: { 'idempotency-key': 'hook-once' } }
    const first = await api.call('POST', '/webhooks', options)
    const second = await api.call('POST', '/webhooks', options)
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(second.body).toEqual(first.body)
    expect(await api.db.webhook.count({ where: { accountId } })).toBe(1)
  })

  test.each([
    ['*'],
    ['deployment.ready'],
    ['deployment.*', 'dns.record.*', 'domain.ssl.*', 'webhook.disabled', 'ticket.replied'],
  ])('takes the events %s', async (...events) => {
    expect((await make({ events })).events).toEqual(events)
  })

  test.each([
    ['an unknown type', ['deployment.ready', 'deployment.exploded'], ['#/events/1 unknown_event']],
    ['a prefix of nothing', ['nothing.*', '*', 'deploy.*'], ['#/events/0 unknown_event', '#/events/2 unknown_event']],
    ['half a prefix', ['deployment.'], ['#/events/0 unknown_event']],
    ['a wildcard inside', ['*.created', 'deployment.re*'], ['#/events/0 unknown_event', '#/events/1 unknown_event']],
    ['a ping, which nobody subscribes to', ['webhook.ping'], ['#/events/0 unknown_event']],
    ['no event', [], ['#/events too_short']],
    ['an event twice', ['*', '*'], ['#/events not_valid']],
    ['an event that is no text', [1], ['#/events/0 wrong_type']],
    ['a text instead of a list', '*', ['#/events wrong_type']],
  ])('refuses %s and names it', async (_name, events, expected) => {
    expect(refusals(await api.call('POST', '/webhooks', { body: { url, events } }))).toEqual(expected)
  })

  test('names a bad url and bad events at once, and missing and unknown fields too', async () => {
    const bad = await api.call('POST', '/webhooks', { body: { url: 'ftp://example.com', events: ['x'] } })
    expect(refusals(bad)).toEqual(['#/url bad_url', '#/events/0 unknown_event'])
    expect(refusals(await api.call('POST', '/webhooks', { body: { secret: 'whsec_mine' } })).sort()).toEqual([
      '#/events required',
      '#/secret unknown_field',
      '#/url required',
    ])
  })
})

describe('reading and changing', () => {
  test('lists newest first, page by page', async () => {
    const { token } = await api.newAccount()
    const ids: string[] = []
    for (let i = 0; i < 3; i++) ids.push((await make({}, token)).id)
    const first = await api.call('GET', '/webhooks?limit=2', { token })
    expect(first.body.webhooks.map((hook: { id: string }) => hook.id)).toEqual([ids[2], ids[1]])
    const second = await api.call('GET', `/webhooks?limit=2&cursor=${first.body.nextCursor}`, { token })
    expect(second.body.webhooks.map((hook: { id: string }) => hook.id)).toEqual([ids[0]])
    const ascending = await api.call('GET', '/webhooks?order=asc', { token })
    expect(ascending.body.webhooks.map((hook: { id: string }) => hook.id)).toEqual(ids)
  })

  test('PATCH changes what is named and keeps the rest; an old ETag is refused', async () => {
    const { id } = await make()
    const read = await api.call('GET', `/webhooks/${id}`)
    const etag = read.headers.etag!
    expect((await api.call('GET', `/webhooks/${id}`, { headers: { 'if-none-match': etag } })).status).toBe(304)
    const body = { events: ['ticket.*'], active: false }
    const changed = await api.call('PATCH', `/webhooks/${id}`, { body, headers: { 'if-match': etag } })
    expect(changed.body).toEqual({ ...read.body, ...body, updatedAt: expect.any(String) })
    for (const method of ['PATCH', 'DELETE']) {
      const late = await api.call(method, `/webhooks/${id}`, {
        headers: { 'if-match': etag },
        ...(method === 'PATCH' && { body }),
      })
      expect(late.body.code).toBe('precondition_failed')
    }
  })

  test('PATCH holds the rules of creation', async () => {
    const { id } = await make()
    const patch = (body: object) => api.call('PATCH', `/webhooks/${id}`, { body })
    expect(refusals(await patch({ url: 'https://127.0.0.1/', events: ['nope'] }))).toEqual([
      '#/url bad_url',
      '#/events/0 unknown_event',
    ])
    expect(refusals(await patch({}))).toEqual(['# too_short'])
    expect(refusals(await patch({ id: 'whk_x' }))).toEqual(['#/id unknown_field'])
    expect((await api.call('GET', `/webhooks/${id}`)).body.url).toBe(url)
  })

  test('DELETE takes it and its deliveries away', async () => {
    const { id } = await make()
    await api.call('POST', `/webhooks/${id}/ping`)
    expect((await api.call('DELETE', `/webhooks/${id}`)).status).toBe(204)
    expect((await api.call('GET', `/webhooks/${id}`)).status).toBe(404)
    expect((await api.call('DELETE', `/webhooks/${id}`)).status).toBe(404)
    expect(await api.db.delivery.count({ where: { webhookId: id } })).toBe(0)
  })

  test('another account, and a token narrowed to projects, find none of it', async () => {
    const { id } = await make()
    const ping = await api.call('POST', `/webhooks/${id}/ping`)
    const project = await api.newProject('hooked')
    const narrow = await insertToken(api.db, {
      accountId: api.accountId,
      name: 'narrow',
      scopes: ['*'],
      projectIds: [project.id],
      expiresAt: null,
    })
    for (const token of [(await api.newAccount()).token, narrow.secret]) {
      const answers = [
        await api.call('GET', `/webhooks/${id}`, { token }),
        await api.call('PATCH', `/webhooks/${id}`, { token, body: { active: false } }),
        await api.call('DELETE', `/webhooks/${id}`, { token }),
        await api.call('POST', `/webhooks/${id}/ping`, { token }),
        await api.call('POST', `/webhooks/${id}/rotate-secret`, { token, body: {} }),
        await api.call('GET', `/webhooks/${id}/deliveries`, { token }),
        await api.call('POST', `/webhooks/${id}/deliveries/${ping.body.id}/redeliver`, { token }),
      ]
      expect(answers.map((answer) => answer.status)).toEqual(Array(7).fill(404))
    }
    expect((await api.call('GET', '/webhooks', { token: narrow.secret })).body.code).toBe('token_limited_to_projects')
  })
})

test('a webhook gets what its patterns name, and never somebody else’s ping', () => {
  const got = (...patterns: string[]) => eventTypes.filter((type) => subscribes(patterns, type))
  expect(got('*')).toEqual(eventTypes.filter((type) => type !== 'webhook.ping'))
  expect(got('webhook.*')).toEqual(['webhook.disabled'])
  expect(got('domain.ssl.*')).toEqual([
    'domain.ssl.active',
    'domain.ssl.renewed',
    'domain.ssl.error',
    'domain.ssl.failing',
    'domain.ssl.expired',
  ])
  expect(got('domain.*')).toHaveLength(11)
  expect(got('ticket.replied', 'token.created')).toEqual(['ticket.replied', 'token.created'])
})
