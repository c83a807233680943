import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { insertToken } from '../../../src/services/tokens/tokens.ts'
import { type CallOptions, sharedApi, type TestApi } from '../../helpers/api.ts'

let api: TestApi
let operator: { token: string; accountId: string }
beforeAll(async () => {
  api = await sharedApi()
  const made = await createAccount(api.db, 'the desk', ['operator'])
  operator = { token: made.token, accountId: made.account.id }
})
afterAll(() => api.stop())

const desk = (method: string, path: string, options: CallOptions = {}) =>
  api.call(method, `/operator${path}`, { token: operator.token, ...options })

async function openTicket(token = api.token, body: object = {}): Promise<string> {
  const sent = { subject: 'Help', message: 'It broke.', ...body }
  return (await api.call('POST', '/tickets', { body: sent, token })).body.id
}

describe('the operator scope', () => {
  const operations: [string, string, object?][] = [
    ['GET', '/tickets'],
    ['GET', '/tickets/tkt_x'],
    ['PATCH', '/tickets/tkt_x', { status: 'RESOLVED' }],
    ['GET', '/tickets/tkt_x/messages'],
    ['POST', '/tickets/tkt_x/messages', { message: 'm' }],
    ['GET', '/accounts'],
    ['POST', '/accounts', { name: 'sneaked in' }],
    ['GET', '/accounts/acc_x'],
    ['PATCH', '/accounts/acc_x', { suspended: true }],
  ]

  test.each(operations)('%s %s is refused to a token with *, and to nobody’s', async (method, path, body) => {
    const answer = await desk(method, path, { token: api.token, body })
    expect(answer.status).toBe(403)
    expect(answer.body).toMatchObject({ code: 'insufficient_scope', requiredScope: 'operator' })
    expect(answer.headers['www-authenticate']).toContain('scope="operator"')
    expect((await desk(method, path, { token: null, body })).status).toBe(401)
  })

  test.each(operations.filter(([, path]) => path.includes('_x')))('%s %s answers 404', async (method, path, body) => {
    expect((await desk(method, path, { body })).status).toBe(404)
  })

  test('an operator’s token opens no door of an account, not even its own', async () => {
    const id = await openTicket()
    expect((await api.call('GET', `/tickets/${id}`, { token: operator.token })).status).toBe(403)
    expect((await api.call('GET', '/projects', { token: operator.token })).status).toBe(403)
  })

  test('an operator’s token narrowed to projects is no operator’s', async () => {
    const project = await api.newProject('desk')
    const { secret: token } = await insertToken(api.db, {
      accountId: api.accountId,
      name: 'narrow',
      scopes: ['operator'],
      projectIds: [project.id],
      expiresAt: null,
    })
    expect((await desk('GET', '/accounts', { token })).body.code).toBe('token_limited_to_projects')
    expect((await desk('GET', `/accounts/${api.accountId}`, { token })).status).toBe(404)
  })
})

describe('tickets at the desk', () => {
  test('are those of all accounts, each with its account, by status and priority', async () => {
    const other = await api.newAccount('ticketing')
    const mine = await openTicket(api.token, { priority: 'urgent' })
    const theirs = await openTicket(other.token)
    const { body } = await desk('GET', '/tickets')
    expect(body.tickets.slice(0, 2)).toMatchObject([
      { id: theirs, account: { id: other.accountId, name: 'ticketing' } },
      { id: mine, account: { id: api.accountId } },
    ])
    expect(Object.keys(body.tickets[0])).toEqual([
      'id',
      'subject',
      'status',
      'priority',
      'createdAt',
      'updatedAt',
      'related',
      'account',
    ])
    expect(JSON.stringify(body)).not.toContain('It broke.')
    const urgent = await desk('GET', '/tickets?priority=urgent&status=OPEN')
    expect(urgent.body.tickets.map((ticket: { id: string }) => ticket.id)).toEqual([mine])
    const page = await desk('GET', '/tickets?limit=1')
    const next = await desk('GET', `/tickets?limit=1&cursor=${page.body.nextCursor}`)
    expect(next.body.tickets[0].id).toBe(mine)
  })

  test('are read, answered and moved; the customer sees it, and the event is the customer’s', async () => {
    const customer = await api.newAccount()
    const id = await openTicket(customer.token, { message: 'where is my site?' })
    const read = await desk('GET', `/tickets/${id}/messages`)
    expect(read.body.messages).toMatchObject([{ author: 'customer', message: 'where is my site?' }])
    await desk('POST', `/tickets/${id}/messages`, { body: { message: 'which one?' } })
    const conversation = await api.call('GET', `/tickets/${id}/messages`, { token: customer.token })
    expect(conversation.body.messages[0]).toMatchObject({ author: 'support', message: 'which one?' })
    const etag = (await desk('GET', `/tickets/${id}`)).headers.etag!
    const change = { body: { status: 'RESOLVED', priority: 'low' }, headers: { 'if-match': etag } }
    const moved = await desk('PATCH', `/tickets/${id}`, change)
    expect(moved.body).toMatchObject({ status: 'RESOLVED', priority: 'low', account: { id: customer.accountId } })
    expect((await desk('PATCH', `/tickets/${id}`, change)).body.code).toBe('precondition_failed')
    const seen = await api.call('GET', `/tickets/${id}`, { token: customer.token })
    expect(seen.body).toMatchObject({ status: 'RESOLVED', priority: 'low' })
    expect(seen.text).not.toContain('account')
    const events = await api.db.event.findMany({ where: { subject: id }, orderBy: { id: 'asc' } })
    expect(events.map((event) => event.type)).toEqual([
      'ticket.created',
      'ticket.replied',
      'ticket.status_changed',
      'ticket.status_changed',
    ])
    expect(new Set(events.map((event) => event.accountId))).toEqual(new Set([customer.accountId]))
    expect(events[3]!.data).toEqual(seen.body)
  })

  test('take no unknown status, no subject and no empty change', async () => {
    const id = await openTicket()
    for (const [body, pointer] of [
      [{ status: 'DONE' }, '#/status'],
      [{ subject: 'x' }, '#/subject'],
      [{}, '#'],
    ] as const) {
      expect((await desk('PATCH', `/tickets/${id}`, { body })).body.errors).toMatchObject([{ pointer }])
    }
  })
})
