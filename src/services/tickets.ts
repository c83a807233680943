// Support tickets: opened, read and listed, by their account or by support. Statuses change in ticket-states.ts alone.
import { domainToASCII } from 'node:url'
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, rows, type Sql, sql } from '../db.ts'
import { Fault, invalidField } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { OperatorTicket } from '../schemas/operator.ts'
import type {
  CreateTicket,
  TicketMessage as MessageSchema,
  TicketQuery,
  Ticket as TicketSchema,
} from '../schemas/tickets.ts'
import { eventOf, eventSql } from './events.ts'

export type TicketView = Static<typeof TicketSchema>
export type OperatorTicketView = Static<typeof OperatorTicket>
export type MessageView = Static<typeof MessageSchema>

/** Which side of the counter the caller stands on: a customer sees the tickets of its account, support sees all. */
export type Side = MessageView['author']

export type TicketRow = {
  id: string
  accountId: string
  accountName: string
  subject: string
  status: TicketView['status']
  priority: TicketView['priority']
  related: string | null
  createdAt: Date
  updatedAt: Date
}

export type MessageRow = { id: string; author: Side; message: string; createdAt: Date }

const columns = sql`t.id, t.account_id AS "accountId", a.name AS "accountName", t.subject, t.status, t.priority,
  t.related, t.created_at AS "createdAt", t.updated_at AS "updatedAt"`

function seenBy(side: Side, actor: Actor): Sql {
  return side === 'support' ? sql`TRUE` : sql`t.account_id = ${actor.accountId}`
}

export function viewTicket(row: Omit<TicketRow, 'accountId' | 'accountName'>): TicketView {
  return {
    id: row.id,
    subject: row.subject,
    status: row.status,
    priority: row.priority,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    related: row.related,
  }
}

export function viewTicketForSupport(row: TicketRow): OperatorTicketView {
  return { ...viewTicket(row), account: { id: row.accountId, name: row.accountName } }
}

export function viewMessage(row: MessageRow): MessageView {
  return { id: row.id, author: row.author, message: row.message, createdAt: row.createdAt.toISOString() }
}

export async function findTicket(db: Db, actor: Actor, side: Side, id: string, lock = false): Promise<TicketRow> {
  const [row] = await rows<TicketRow>(
    db,
    sql`SELECT ${columns} FROM ticket t JOIN account a ON a.id = t.account_id
        WHERE t.id = ${id} AND ${seenBy(side, actor)} ${lock ? sql`FOR UPDATE OF t` : sql``}`,
  )
  if (!row) throw new Fault('not_found', `There is no ticket ${id}.`)
  return row
}

export async function listTickets<T>(
  db: Db,
  actor: Actor,
  side: Side,
  filter: Static<typeof TicketQuery>,
  page: PageRequest,
  view: (row: TicketRow) => T,
): Promise<PageOf<T>> {
  const conditions = [seenBy(side, actor)]
  if (filter.status) conditions.push(sql`t.status = ${filter.status}`)
  if (filter.priority) conditions.push(sql`t.priority = ${filter.priority}`)
  const descending = page.order === 'desc'
  if (page.after) conditions.push(descending ? sql`t.id < ${page.after[0]}` : sql`t.id > ${page.after[0]}`)
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`)
  const found = await rows<TicketRow>(
    db,
    sql`SELECT ${columns} FROM ticket t JOIN account a ON a.id = t.account_id WHERE ${where}
        ORDER BY t.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, view, (row) => [row.id])
}

export async function listMessages(
  db: Db,
  actor: Actor,
  side: Side,
  ticketId: string,
  page: PageRequest,
): Promise<PageOf<MessageView>> {
  const ticket = await findTicket(db, actor, side, ticketId)
  const descending = page.order === 'desc'
  const conditions = [sql`m.ticket_id = ${ticket.id}`]
  if (page.after) conditions.push(descending ? sql`m.id < ${page.after[0]}` : sql`m.id > ${page.after[0]}`)
  const where = conditions.reduce((all, one) => sql`${all} AND ${one}`)
  const found = await rows<MessageRow>(
    db,
    sql`SELECT m.id, m.author, m.message, m.created_at AS "createdAt" FROM ticket_message m WHERE ${where}
        ORDER BY m.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, viewMessage, (row) => [row.id])
}

/**
 * What a ticket is about, as it is stored: a deployment or a domain must be the account's own. A request id cannot be
 * checked further than its form, because requests are in the log and not in the database.
 */
async function checkRelated(db: Db, actor: Actor, related: string): Promise<string> {
  if (related.startsWith('dpl_')) {
    const [own] = await rows(
      db,
      sql`SELECT 1 FROM deployment WHERE id = ${related} AND account_id = ${actor.accountId}`,
    )
    if (own) return related
    throw invalidField('#/related', 'not_found', `there is no deployment ${related}`)
  }
  const name = domainToASCII(related.toLowerCase())
  const [domain] = await rows<{ name: string }>(
    db,
    sql`SELECT name FROM domain WHERE account_id = ${actor.accountId} AND name IN (${name}, ${related.toLowerCase()})`,
  )
  if (domain) return domain.name
  if (/^[A-Za-z0-9._-]{1,128}$/.test(related)) return related
  throw invalidField('#/related', 'not_found', 'must be a deployment or domain of the account, or a request id')
}

/** Ticket, first message and event in one statement. */
export async function createTicket(db: Db, actor: Actor, input: Static<typeof CreateTicket>): Promise<TicketView> {
  const now = new Date()
  const row = {
    id: newId('tkt'),
    subject: input.subject,
    status: 'OPEN',
    priority: input.priority ?? 'normal',
    related: input.related === undefined ? null : await checkRelated(db, actor, input.related),
    createdAt: now,
    updatedAt: now,
  } as const
  const view = viewTicket(row)
  await rows(
    db,
    sql`WITH made AS (
          INSERT INTO ticket (id, account_id, subject, status, priority, related, created_at, updated_at)
          VALUES (${row.id}, ${actor.accountId}, ${row.subject}, ${row.status}, ${row.priority}, ${row.related},
            ${now}::timestamptz, ${now}::timestamptz) RETURNING id),
        said AS (INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
          SELECT ${newId('msg')}, made.id, 'customer', ${input.message}, ${now}::timestamptz FROM made),
        logged AS (${eventSql(eventOf(actor, 'ticket.created', row.id, null, view), sql`made`)})
        SELECT id FROM made`,
  )
  return view
}
