// Tickets in SQL.
import { byOrder, facetedPage } from '../../platform/facet-statements.ts'
import { int4, optional, statement, text, textArray, timestamptz } from '../../platform/statement.ts'
import { eventIn, insertEvent } from '../events/statements.ts'

export const createTicketRows = statement('tickets.create', {
  reason: 'change with its event and job',
  in: {
    id: text(),
    accountId: text(),
    subject: text(),
    status: text(),
    priority: text(),
    related: optional(text()),
    now: timestamptz(),
    messageId: text(),
    message: text(),
    ...eventIn,
  },
  out: { id: text() },
  sql: (p) => `
    WITH made AS (
      INSERT INTO ticket (id, account_id, subject, status, priority, related, created_at, updated_at)
      VALUES (${p.id}, ${p.accountId}, ${p.subject}, ${p.status}, ${p.priority}, ${p.related}, ${p.now}, ${p.now})
      RETURNING id),
    said AS (
      INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
      SELECT ${p.messageId}, made.id, 'customer', ${p.message}, ${p.now} FROM made),
    logged AS (${insertEvent(p, 'made')})
    SELECT id FROM made`,
})

/** Holds the ticket against other changes until the transaction ends. */
export const lockTicket = statement('tickets.lock', {
  reason: 'not in Prisma',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM ticket WHERE id = ${p.id} FOR UPDATE`,
})

const filteredIn = { statuses: textArray(), priorities: textArray(), after: text(), limit: int4() }

/** Ids of tickets by filter: of an account, or of all. */
export const ticketPage = {
  account: byOrder((order) =>
    statement(`tickets.page.account.${order}`, {
      reason: 'not in Prisma',
      in: { accountIds: textArray(), ...filteredIn },
      out: { id: text() },
      sql: (p) =>
        facetedPage('ticket', order, { account_id: p.accountIds, status: p.statuses, priority: p.priorities }, p),
    }),
  ),
  all: byOrder((order) =>
    statement(`tickets.page.all.${order}`, {
      reason: 'not in Prisma',
      in: filteredIn,
      out: { id: text() },
      sql: (p) => facetedPage('ticket', order, { status: p.statuses, priority: p.priorities }, p),
    }),
  ),
}
