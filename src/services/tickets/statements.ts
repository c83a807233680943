// Tickets in SQL.
import { optional, statement, text, timestamptz } from '../../platform/statement.ts'
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
