import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ticketStatuses } from '../../../src/schemas/tickets.ts'
import { createAccount } from '../../../src/services/accounts/accounts.ts'
import { transitions } from '../../../src/services/tickets/states.ts'
import { sharedApi, type TestApi } from '../../helpers/api.ts'

type Status = (typeof ticketStatuses)[number]

let api: TestApi
let operator: string
beforeAll(async () => {
  api = await sharedApi()
  operator = (await createAccount(api.db, 'support desk', ['operator'])).token
})
afterAll(() => api.stop())

async function open(): Promise<string> {
  const made = await api.call('POST', '/tickets', { body: { subject: 'Help', message: 'It broke.' } })
  return made.body.id
}

/** A ticket put into a status by hand, so that every pair of states can be tried. */
async function openIn(status: Status): Promise<string> {
  const id = await open()
  await api.db.ticket.update({ where: { id }, data: { status } })
  return id
}

async function statusOf(id: string): Promise<Status> {
  return (await api.call('GET', `/tickets/${id}`)).body.status
}

async function eventsOf(id: string): Promise<string[]> {
  const found = await api.db.event.findMany({ where: { subject: id }, orderBy: { id: 'asc' } })
  return found.map((event) => event.type)
}

/** The transactions that wrote the ticket, its last message and its events since `type`. */
async function transactionsOf(id: string, type: string): Promise<number> {
  const [found] = await api.db.$queryRaw<{ count: number }[]>`
    SELECT count(DISTINCT x)::int AS count FROM (
      SELECT xmin::text AS x FROM ticket WHERE id = ${id}
      UNION ALL SELECT xmin::text FROM event WHERE subject = ${id}
        AND id >= (SELECT max(id) FROM event WHERE subject = ${id} AND type = ${type})
      UNION ALL (SELECT xmin::text FROM ticket_message WHERE ticket_id = ${id} AND ${type} <> 'ticket.status_changed'
        ORDER BY id DESC LIMIT 1)) AS written`
  return found!.count
}

test('a ticket, its message and its events are written by one transaction', async () => {
  const id = await open()
  expect(await transactionsOf(id, 'ticket.created')).toBe(1)
  await api.call('PATCH', `/operator/tickets/${id}`, { token: operator, body: { status: 'IN_PROGRESS' } })
  expect(await transactionsOf(id, 'ticket.status_changed')).toBe(1)
  await api.call('POST', `/operator/tickets/${id}/messages`, { token: operator, body: { message: 'which one?' } })
  expect(await eventsOf(id)).toEqual([
    'ticket.created',
    'ticket.status_changed',
    'ticket.replied',
    'ticket.status_changed',
  ])
  expect(await transactionsOf(id, 'ticket.replied')).toBe(1)
})

describe('the states', () => {
  const pairs = ticketStatuses.flatMap((from) => ticketStatuses.map((to) => [from, to] as const))

  test.each(pairs)(
    'support moves %s to %s if and only if the table says so, and to what it is already without an event',
    async (from, to) => {
      const id = await openIn(from)
      const answer = await api.call('PATCH', `/operator/tickets/${id}`, { token: operator, body: { status: to } })
      const allowed = transitions.some(
        (t) => t.by === 'support' && t.when === 'sets it' && t.from === from && t.to === to,
      )
      if (from === to) {
        // Sent again by who has not got the answer.
        expect([answer.status, answer.body.status]).toEqual([200, to])
        expect(await eventsOf(id)).toEqual(['ticket.created'])
      } else if (allowed) {
        expect([answer.status, answer.body.status]).toEqual([200, to])
        expect(await eventsOf(id)).toEqual(['ticket.created', 'ticket.status_changed'])
      } else {
        expect(answer.status).toBe(409)
        expect(answer.body.code).toBe(from === 'CLOSED' ? 'ticket_closed' : 'invalid_transition')
        if (from !== 'CLOSED') expect(answer.body.detail).toBe(`The ticket is ${from} and cannot become ${to}.`)
        expect(await statusOf(id)).toBe(from)
        expect(await eventsOf(id)).toEqual(['ticket.created'])
      }
    },
  )

  test('the table allows support exactly the line of the contract', () => {
    const steps = transitions.filter((t) => t.by === 'support' && t.when === 'sets it').map((t) => `${t.from} ${t.to}`)
    expect(steps.sort()).toEqual([
      'IN_PROGRESS RESOLVED',
      'IN_PROGRESS WAITING',
      'OPEN IN_PROGRESS',
      'RESOLVED CLOSED',
      'WAITING IN_PROGRESS',
      'WAITING RESOLVED',
    ])
  })

  test.each(ticketStatuses)('a customer closes a ticket that is %s, unless it is closed', async (from) => {
    const id = await openIn(from)
    const answer = await api.call('PATCH', `/tickets/${id}`, { body: { status: 'CLOSED', priority: 'high' } })
    if (from === 'CLOSED') return expect([answer.status, answer.body.code]).toEqual([409, 'ticket_closed'])
    expect(answer.body).toMatchObject({ status: 'CLOSED', priority: 'high' })
    const [, event] = await api.db.event.findMany({ where: { subject: id }, orderBy: { id: 'asc' } })
    expect(event).toMatchObject({ type: 'ticket.status_changed', accountId: api.accountId, data: answer.body })
  })

  test.each([
    ['a status other than CLOSED', { status: 'RESOLVED' }, '#/status not_allowed'],
    ['nothing', {}, '# too_short'],
    ['the subject', { subject: 'x' }, '#/subject unknown_field'],
    ['the message', { message: 'x' }, '#/message unknown_field'],
  ])('a customer does not change %s', async (_name, body, expected) => {
    const id = await open()
    const answer = await api.call('PATCH', `/tickets/${id}`, { body })
    expect(answer.status).toBe(422)
    expect(answer.body.errors.map((e: { pointer: string; code: string }) => `${e.pointer} ${e.code}`)).toEqual([
      expected,
    ])
  })

  test.each([
    ['customer', 'OPEN', 'OPEN'],
    ['customer', 'IN_PROGRESS', 'IN_PROGRESS'],
    ['customer', 'WAITING', 'IN_PROGRESS'],
    ['customer', 'RESOLVED', 'OPEN'],
    ['support', 'OPEN', 'WAITING'],
    ['support', 'IN_PROGRESS', 'WAITING'],
    ['support', 'WAITING', 'WAITING'],
    ['support', 'RESOLVED', 'RESOLVED'],
  ] as const)('a reply of %s to %s leaves it %s', async (author, from, to) => {
    const id = await openIn(from)
    const before = (await api.call('GET', `/tickets/${id}`)).body
    const path = author === 'support' ? `/operator/tickets/${id}/messages` : `/tickets/${id}/messages`
    const token = author === 'support' ? operator : api.token
    const said = await api.call('POST', path, { token, body: { message: 'and another thing' } })
    expect(said.status).toBe(201)
    expect(said.headers.location).toBe(`/api${path}`)
    expect(said.body).toEqual({
      id: expect.stringMatching(/^msg_/),
      author,
      message: 'and another thing',
      createdAt: expect.any(String),
    })
    const after = (await api.call('GET', `/tickets/${id}`)).body
    expect(after).toEqual({ ...before, status: to, updatedAt: said.body.createdAt })
    const moved = from === to ? [] : ['ticket.status_changed']
    expect(await eventsOf(id)).toEqual(['ticket.created', 'ticket.replied', ...moved])
    const replied = await api.db.event.findFirstOrThrow({ where: { subject: id, type: 'ticket.replied' } })
    expect(replied).toMatchObject({ accountId: api.accountId, data: after })
    expect(JSON.stringify(replied.data)).not.toContain('another')
  })

  test('a closed ticket takes no reply and no change, from neither side', async () => {
    const id = await openIn('CLOSED')
    const answers = [
      await api.call('POST', `/tickets/${id}/messages`, { body: { message: 'm' } }),
      await api.call('PATCH', `/tickets/${id}`, { body: { priority: 'high' } }),
      await api.call('POST', `/operator/tickets/${id}/messages`, { token: operator, body: { message: 'm' } }),
      await api.call('PATCH', `/operator/tickets/${id}`, { token: operator, body: { priority: 'high' } }),
    ]
    for (const answer of answers) expect([answer.status, answer.body.code]).toEqual([409, 'ticket_closed'])
    expect(await api.db.ticketMessage.count({ where: { ticketId: id } })).toBe(1)
    expect(await eventsOf(id)).toEqual(['ticket.created'])
  })

  test('of many that close a ticket at the same time one does, and one event tells it', async () => {
    const id = await openIn('RESOLVED')
    const close = (side: number) =>
      side % 2 === 0
        ? api.call('PATCH', `/tickets/${id}`, { body: { status: 'CLOSED' } })
        : api.call('PATCH', `/operator/tickets/${id}`, { token: operator, body: { status: 'CLOSED' } })
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => close(i)))
    for (const answer of answers) expect([answer.status, answer.body.status]).toEqual([200, 'CLOSED'])
    expect(await eventsOf(id)).toEqual(['ticket.created', 'ticket.status_changed'])
  })

  test('replies at the same time are all kept, and reopen once', async () => {
    const id = await openIn('RESOLVED')
    const reply = (i: number) => api.call('POST', `/tickets/${id}/messages`, { body: { message: `reply ${i}` } })
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => reply(i)))
    expect(answers.map((answer) => answer.status)).toEqual(Array(8).fill(201))
    expect(await statusOf(id)).toBe('OPEN')
    expect((await eventsOf(id)).filter((type) => type === 'ticket.status_changed')).toHaveLength(1)
    const { body } = await api.call('GET', `/tickets/${id}/messages`)
    expect(body.messages).toHaveLength(9)
  })
})
