import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ticketPriorities } from '../../../src/schemas/tickets.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { type Answer, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let operator: string
beforeAll(async () => {
  api = await sharedApi()
  operator = (await createAccount(api.db, 'support desk', ['operator'])).token
})
afterAll(() => api.stop())

async function open(body: object = {}, token = api.token): Promise<Answer['body']> {
  const made = await api.call('POST', '/tickets', { body: { subject: 'Help', message: 'It broke.', ...body }, token })
  expect(made.status, made.text).toBe(201)
  return made.body
}

async function statusOf(id: string): Promise<string> {
  return (await api.call('GET', `/tickets/${id}`)).body.status
}

async function eventsOf(id: string): Promise<string[]> {
  const found = await api.db.event.findMany({ where: { subject: id }, orderBy: { id: 'asc' } })
  return found.map((event) => event.type)
}

function narrowed(projectId: string) {
  const scopes = ['*' as const]
  return insertToken(api.db, { accountId: api.accountId, name: 'n', scopes, projectIds: [projectId], expiresAt: null })
}

describe('opening a ticket', () => {
  test('answers 201 with the planned fields first, in order, OPEN and of normal priority', async () => {
    const { status, headers, body } = await api.call('POST', '/tickets', {
      body: { subject: 'Help', message: 'It broke.' },
    })
    expect(status).toBe(201)
    expect(headers.location).toBe(`/api/tickets/${body.id}`)
    expect(Object.keys(body)).toEqual(['id', 'subject', 'status', 'priority', 'createdAt', 'updatedAt', 'related'])
    expect(body.id).toMatch(/^tkt_[0-9a-hjkmnp-tv-z]{24}$/)
    expect(body).toMatchObject({ subject: 'Help', status: 'OPEN', priority: 'normal', related: null })
    expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  })

  test('keeps the message as the first of the conversation and shows it nowhere else', async () => {
    const made = await open({ message: 'a very peculiar text' })
    const read = await api.call('GET', `/tickets/${made.id}`)
    const list = await api.call('GET', '/tickets')
    for (const text of [JSON.stringify(made), read.text, list.text]) expect(text).not.toContain('peculiar')
    const { body } = await api.call('GET', `/tickets/${made.id}/messages`)
    expect(body.messages).toEqual([
      {
        id: expect.stringMatching(/^msg_/),
        author: 'customer',
        message: 'a very peculiar text',
        createdAt: made.createdAt,
      },
    ])
    expect(body.hasMore).toBe(false)
  })

  test('writes the event ticket.created of the same view', async () => {
    const made = await open()
    const [event] = await api.db.event.findMany({ where: { subject: made.id } })
    expect(event).toMatchObject({ type: 'ticket.created', accountId: api.accountId, projectId: null, data: made })
  })

  test('stores subject and message as they were sent', async () => {
    const subject = '  Ünïcode 🚢 ‘; DROP TABLE ticket; --  '
    const message = '\n\tcode\r\n  ends with blanks  \n'
    const made = await open({ subject, message })
    expect(made.subject).toBe(subject)
    const { body } = await api.call('GET', `/tickets/${made.id}/messages`)
    expect(body.messages[0].message).toBe(message)
  })

  test.each(ticketPriorities)('takes the priority %s', async (priority) => {
    expect((await open({ priority })).priority).toBe(priority)
  })

  test('takes 200 characters of subject and 20,000 of message', async () => {
    await open({ subject: 's'.repeat(200), message: 'm'.repeat(20_000) })
  })

  const fine = { subject: 'Help', message: 'It broke.' }
  test.each([
    ['no subject', { message: 'm' }, ['#/subject required']],
    ['nothing', {}, ['#/subject required', '#/message required']],
    ['an empty subject', { ...fine, subject: '' }, ['#/subject too_short']],
    ['a blank subject', { ...fine, subject: ' \u00a0 ' }, ['#/subject bad_format']],
    ['a subject of two lines', { ...fine, subject: 'a\nBcc: b' }, ['#/subject bad_format']],
    ['a long subject', { ...fine, subject: 's'.repeat(201) }, ['#/subject too_long']],
    ['a subject that is a number', { ...fine, subject: 1 }, ['#/subject wrong_type']],
    ['a blank message', { ...fine, message: ' \n\t ' }, ['#/message bad_format']],
    ['a long message', { ...fine, message: 'm'.repeat(20_001) }, ['#/message too_long']],
    ['an unknown priority', { ...fine, priority: 'HIGH' }, ['#/priority not_allowed']],
    ['a status', { ...fine, status: 'OPEN' }, ['#/status unknown_field']],
    ['an empty related', { ...fine, related: '' }, ['#/related too_short']],
    ['a related null', { ...fine, related: null }, ['#/related wrong_type']],
    ['NUL in the message', { ...fine, message: 'a\0b' }, ['#/message bad_characters']],
  ])('refuses %s and names the field', async (_name, body, expected) => {
    const { status, body: problem } = await api.call('POST', '/tickets', { body })
    expect(status).toBe(422)
    expect(problem.errors.map((e: { pointer: string; code: string }) => `${e.pointer} ${e.code}`)).toEqual(expected)
  })

  test('answers a repeated Idempotency-Key with the same ticket, made once', async () => {
    const send = () => api.call('POST', '/tickets', { body: fine, headers: { 'idempotency-key': 'ticket-once' } })
    const [first, second] = [await send(), await send()]
    expect(second.body).toEqual(first.body)
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(await api.db.ticketMessage.count({ where: { ticketId: first.body.id } })).toBe(1)
    expect(await eventsOf(first.body.id)).toEqual(['ticket.created'])
  })
})

describe('reading tickets', () => {
  test('lists them newest first, by status and priority, page by page', async () => {
    const { token } = await api.newAccount()
    const ids: string[] = []
    for (const priority of ['low', 'high', 'high']) ids.push((await open({ priority }, token)).id)
    const seen = (answer: Answer) => answer.body.tickets.map((ticket: { id: string }) => ticket.id)
    expect(seen(await api.call('GET', '/tickets', { token }))).toEqual([...ids].reverse())
    expect(seen(await api.call('GET', '/tickets?order=asc', { token }))).toEqual(ids)
    expect(seen(await api.call('GET', '/tickets?priority=high', { token }))).toEqual([ids[2], ids[1]])
    expect(seen(await api.call('GET', '/tickets?status=CLOSED', { token }))).toEqual([])
    const first = await api.call('GET', '/tickets?limit=2', { token })
    expect(seen(first)).toEqual([ids[2], ids[1]])
    expect(first.headers.link).toContain('rel="next"')
    const second = await api.call('GET', `/tickets?limit=2&cursor=${first.body.nextCursor}`, { token })
    expect(seen(second)).toEqual([ids[0]])
    expect(second.body).toMatchObject({ hasMore: false, nextCursor: null })
    expect((await api.call('GET', '/tickets?status=open', { token })).status).toBe(422)
    expect((await api.call('GET', '/tickets?cursor=zzz', { token })).body.code).toBe('invalid_cursor')
  })

  test('carries an ETag that answers 304, and 412 to a change of an old version', async () => {
    const { id } = await open()
    const etag = (await api.call('GET', `/tickets/${id}`)).headers.etag!
    expect((await api.call('GET', `/tickets/${id}`, { headers: { 'if-none-match': etag } })).status).toBe(304)
    const change = () =>
      api.call('PATCH', `/tickets/${id}`, { body: { priority: 'low' }, headers: { 'if-match': etag } })
    const changed = await change()
    expect(changed.body).toMatchObject({ id, priority: 'low', status: 'OPEN' })
    expect(changed.headers.etag).not.toBe(etag)
    expect((await change()).body.code).toBe('precondition_failed')
  })

  test('another account finds none of it', async () => {
    const { id } = await open()
    const { token } = await api.newAccount()
    const answers = [
      await api.call('GET', `/tickets/${id}`, { token }),
      await api.call('PATCH', `/tickets/${id}`, { token, body: { status: 'CLOSED' } }),
      await api.call('GET', `/tickets/${id}/messages`, { token }),
      await api.call('POST', `/tickets/${id}/messages`, { token, body: { message: 'm' } }),
    ]
    expect(answers.map((answer) => answer.status)).toEqual([404, 404, 404, 404])
    expect((await api.call('GET', '/tickets', { token })).body.tickets).toEqual([])
    expect(await statusOf(id)).toBe('OPEN')
  })

  test('a token narrowed to projects sees no ticket: 403 for the list, 404 for one', async () => {
    const { id } = await open()
    const { secret: token } = await narrowed((await api.newProject('narrow')).id)
    const list = await api.call('GET', '/tickets', { token })
    expect([list.status, list.body.code]).toEqual([403, 'token_limited_to_projects'])
    const made = await api.call('POST', '/tickets', { token, body: { subject: 's', message: 'm' } })
    expect(made.status).toBe(403)
    expect((await api.call('GET', `/tickets/${id}`, { token })).status).toBe(404)
    expect((await api.call('POST', `/tickets/${id}/messages`, { token, body: { message: 'm' } })).status).toBe(404)
  })

  test('tickets:read reads and does not write', async () => {
    const { id } = await open()
    const made = await insertToken(api.db, {
      accountId: api.accountId,
      name: 'reader',
      scopes: ['tickets:read'],
      projectIds: [],
      expiresAt: null,
    })
    const token = made.secret
    expect((await api.call('GET', `/tickets/${id}`, { token })).status).toBe(200)
    const refused = await api.call('PATCH', `/tickets/${id}`, { token, body: { priority: 'low' } })
    expect(refused.body).toMatchObject({ code: 'insufficient_scope', requiredScope: 'tickets:write' })
  })
})

describe('the conversation', () => {
  test('is read newest first, or from the beginning, page by page', async () => {
    const { id } = await open({ message: 'one' })
    await api.call('POST', `/operator/tickets/${id}/messages`, { token: operator, body: { message: 'two' } })
    await api.call('POST', `/tickets/${id}/messages`, { body: { message: 'three' } })
    const texts = (answer: Answer) => answer.body.messages.map((m: { message: string }) => m.message)
    expect(texts(await api.call('GET', `/tickets/${id}/messages`))).toEqual(['three', 'two', 'one'])
    const first = await api.call('GET', `/tickets/${id}/messages?order=asc&limit=2`)
    expect(texts(first)).toEqual(['one', 'two'])
    const rest = await api.call('GET', `/tickets/${id}/messages?order=asc&limit=2&cursor=${first.body.nextCursor}`)
    expect(texts(rest)).toEqual(['three'])
    expect(first.body.messages.map((m: { author: string }) => m.author)).toEqual(['customer', 'support'])
  })

  test('takes no blank reply and no author', async () => {
    const { id } = await open()
    const blank = await api.call('POST', `/tickets/${id}/messages`, { body: { message: '  ' } })
    expect(blank.body.errors).toMatchObject([{ pointer: '#/message', code: 'bad_format' }])
    const forged = await api.call('POST', `/tickets/${id}/messages`, { body: { message: 'm', author: 'support' } })
    expect(forged.body.errors).toMatchObject([{ pointer: '#/author', code: 'unknown_field' }])
  })

  test('takes a reply with a repeated Idempotency-Key once', async () => {
    const { id } = await open()
    const options = { body: { message: 'm' }, headers: { 'idempotency-key': 'reply-once' } }
    const first = await api.call('POST', `/tickets/${id}/messages`, options)
    const second = await api.call('POST', `/tickets/${id}/messages`, options)
    expect(second.body).toEqual(first.body)
    expect(await api.db.ticketMessage.count({ where: { ticketId: id } })).toBe(2)
  })
})
