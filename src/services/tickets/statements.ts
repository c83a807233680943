// Tickets in SQL.
import { columnsOf, inserted } from '../../platform/database/columns.ts'
import { byOrder, facetedPage, pageIn } from '../../platform/database/facet-statements.ts'
import type { Order } from '../../platform/database/page.ts'
import { optional, statement, text, textArray } from '../../platform/database/statement.ts'
import { eventIn, insertEvent } from '../events/index.ts'

const ticket = columnsOf('Ticket')

export const createTicketRows = statement('tickets.create', {
  reason: 'change with its event and job',
  in: {
    ...ticket,
    messageId: text(),
    message: text(),
    ...eventIn,
  },
  out: { id: text() },
  sql: (p) => `
    WITH made AS (
      INSERT INTO ticket ${inserted(ticket, p)}
      RETURNING id),
    said AS (
      INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
      SELECT ${p.messageId}, made.id, 'customer', ${p.message}, ${p.createdAt} FROM made),
    logged AS (${insertEvent(p, 'made')})
    SELECT id FROM made`,
})

/** Holds the ticket against other changes until the transaction ends. */
export const lockTicket = statement('tickets.lock', {
  reason: 'row lock',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM ticket WHERE id = ${p.id} FOR UPDATE`,
})

const filteredIn = { statuses: textArray(), priorities: textArray(), ...pageIn }

/** Ids of tickets by filter: of an account, or of all. */
export const ticketPage = {
  account: byOrder((order) =>
    statement(`tickets.page.account.${order}`, {
      reason: 'lateral join',
      in: { accountIds: textArray(), ...filteredIn },
      out: { id: text() },
      sql: (p) =>
        facetedPage('ticket', order, { account_id: p.accountIds, status: p.statuses, priority: p.priorities }, p),
    }),
  ),
  all: byOrder((order) =>
    statement(`tickets.page.all.${order}`, {
      reason: 'lateral join',
      in: filteredIn,
      out: { id: text() },
      sql: (p) => facetedPage('ticket', order, { status: p.statuses, priority: p.priorities }, p),
    }),
  ),
}

// How many tickets are looked through before the index of words is asked.
const nearby = 100

/**
 * Ids of tickets whose subject has the words. Those next to the cursor are looked through first: a word that many have
 * fills the page there, where its index would yield all of them. A rare word is left to the index.
 */
function searchSql(owned: string, order: Order, p: { [K in keyof typeof searchIn]: string }): string {
  const matches = 'ticket_words(t.account_id, t.status, t.priority, t.subject) @@ (SELECT words FROM q)'
  return `
    WITH q AS MATERIALIZED (
      SELECT ticket_query(${p.accountId}, ${p.statuses}, ${p.priorities}, ${p.search}) AS words),
    near AS MATERIALIZED (
      SELECT t.id FROM (
        SELECT t.* FROM ticket t WHERE ${owned} AND t.id > ${p.above} AND t.id < ${p.below}
        ORDER BY t.id ${order} LIMIT ${nearby}) t
      WHERE ${matches} ORDER BY t.id ${order} LIMIT ${p.limit}),
    far AS MATERIALIZED (SELECT t.id FROM ticket t WHERE (SELECT count(*) FROM near) < ${p.limit} AND ${matches})
    SELECT id FROM near UNION SELECT id FROM far WHERE id > ${p.above} AND id < ${p.below}
    ORDER BY id ${order} LIMIT ${p.limit}`
}

const searchIn = { accountId: optional(text()), search: text(), ...filteredIn }

export const ticketSearch = {
  account: byOrder((order) =>
    statement(`tickets.search.account.${order}`, {
      reason: 'full-text search',
      in: searchIn,
      out: { id: text() },
      sql: (p) => searchSql(`t.account_id = ${p.accountId}`, order, p),
    }),
  ),
  all: byOrder((order) =>
    statement(`tickets.search.all.${order}`, {
      reason: 'full-text search',
      in: searchIn,
      out: { id: text() },
      sql: (p) => searchSql('true', order, p),
    }),
  ),
}
