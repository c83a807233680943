// The state machine of tickets: the table, and the one guarded statement that moves a ticket along it.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import type { ChangeTicketAsSupport } from '../schemas/operator.ts'
import type { ChangeTicket } from '../schemas/tickets.ts'
import { append, type EventType, type NewEvent } from './events.ts'
import {
  findTicket,
  type MessageRow,
  type MessageView,
  type OperatorTicketView,
  type Side,
  type TicketRow,
  type TicketView,
  viewMessage,
  viewTicket,
  viewTicketForSupport,
} from './tickets.ts'

type Status = TicketView['status']

/** What moves a ticket: a side sets the status, or writes a message that changes it by itself. */
type Cause = 'sets it' | 'replies'

export const transitions: { from: Status; to: Status; by: Side; when: Cause }[] = [
  { from: 'OPEN', to: 'IN_PROGRESS', by: 'support', when: 'sets it' },
  { from: 'IN_PROGRESS', to: 'WAITING', by: 'support', when: 'sets it' },
  { from: 'WAITING', to: 'IN_PROGRESS', by: 'support', when: 'sets it' },
  { from: 'IN_PROGRESS', to: 'RESOLVED', by: 'support', when: 'sets it' },
  { from: 'WAITING', to: 'RESOLVED', by: 'support', when: 'sets it' },
  { from: 'RESOLVED', to: 'CLOSED', by: 'support', when: 'sets it' },
  { from: 'OPEN', to: 'CLOSED', by: 'customer', when: 'sets it' },
  { from: 'IN_PROGRESS', to: 'CLOSED', by: 'customer', when: 'sets it' },
  { from: 'WAITING', to: 'CLOSED', by: 'customer', when: 'sets it' },
  { from: 'RESOLVED', to: 'CLOSED', by: 'customer', when: 'sets it' },
  // An answer of support is a question or a proposal: the ticket waits for the customer.
  { from: 'OPEN', to: 'WAITING', by: 'support', when: 'replies' },
  { from: 'IN_PROGRESS', to: 'WAITING', by: 'support', when: 'replies' },
  // What support waited for is here, so whoever had the ticket goes on with it.
  { from: 'WAITING', to: 'IN_PROGRESS', by: 'customer', when: 'replies' },
  // Nobody has a resolved ticket any more, so it goes back to the queue.
  { from: 'RESOLVED', to: 'OPEN', by: 'customer', when: 'replies' },
]

/** The transitions of one side as a sentence of the reference. */
export function transitionsOf(side: Side, cause: Cause): string {
  return transitions
    .filter((step) => step.by === side && step.when === cause)
    .map((step) => `${step.from} → ${step.to}`)
    .join(', ')
}

// Of the ticket's account, whichever side made it: the customer hears of what support did.
function eventOn(row: TicketRow, actor: Actor, type: EventType): NewEvent {
  const { id: subject, accountId } = row
  return { accountId, projectId: null, type, actor: actor.tokenId, subject, data: viewTicket(row) }
}

/** Writes the row as `after` has it if the status is still that of `before`, and the event of a changed status. */
async function move(db: Db, actor: Actor, before: TicketRow, after: TicketRow): Promise<void> {
  const moved = await rows(
    db,
    sql`UPDATE ticket SET status = ${after.status}, priority = ${after.priority},
          updated_at = ${after.updatedAt}::timestamptz
        WHERE id = ${before.id} AND status = ${before.status} RETURNING id`,
  )
  if (moved.length === 0) throw new Fault('invalid_transition', `The ticket is no longer ${before.status}.`)
  if (after.status !== before.status) await append(db, [eventOn(after, actor, 'ticket.status_changed')])
}

function refuseClosed(row: TicketRow): void {
  if (row.status === 'CLOSED') throw new Fault('ticket_closed')
}

type Change = Static<typeof ChangeTicketAsSupport>

async function change(
  db: Db,
  actor: Actor,
  side: Side,
  id: string,
  { status, priority }: Change,
  precondition: (row: TicketRow) => void,
): Promise<TicketRow> {
  return inTransaction(db, async (db) => {
    const before = await findTicket(db, actor, side, id, true)
    precondition(before)
    refuseClosed(before)
    const allowed = transitions.some(
      (step) => step.by === side && step.when === 'sets it' && step.from === before.status && step.to === status,
    )
    if (status && !allowed) {
      throw new Fault('invalid_transition', `The ticket is ${before.status} and cannot become ${status}.`)
    }
    const after = {
      ...before,
      status: status ?? before.status,
      priority: priority ?? before.priority,
      updatedAt: new Date(),
    }
    await move(db, actor, before, after)
    return after
  })
}

/** The customer's change: the priority, or the end of the ticket. */
export async function changeTicket(
  db: Db,
  actor: Actor,
  id: string,
  input: Static<typeof ChangeTicket>,
  precondition: (view: TicketView) => void,
): Promise<TicketView> {
  return viewTicket(await change(db, actor, 'customer', id, input, (row) => precondition(viewTicket(row))))
}

export async function changeTicketAsSupport(
  db: Db,
  actor: Actor,
  id: string,
  input: Change,
  precondition: (view: OperatorTicketView) => void,
): Promise<OperatorTicketView> {
  const row = await change(db, actor, 'support', id, input, (row) => precondition(viewTicketForSupport(row)))
  return viewTicketForSupport(row)
}

/** Adds a message, and moves the ticket if the table says that a reply of this side does. */
export async function replyToTicket(
  db: Db,
  actor: Actor,
  side: Side,
  id: string,
  message: string,
): Promise<MessageView> {
  return inTransaction(db, async (db) => {
    const before = await findTicket(db, actor, side, id, true)
    refuseClosed(before)
    const step = transitions.find((step) => step.by === side && step.when === 'replies' && step.from === before.status)
    const now = new Date()
    const said: MessageRow = { id: newId('msg'), author: side, message, createdAt: now }
    await rows(
      db,
      sql`INSERT INTO ticket_message (id, ticket_id, author, message, created_at)
          VALUES (${said.id}, ${before.id}, ${said.author}, ${said.message}, ${now}::timestamptz) RETURNING id`,
    )
    const after = { ...before, status: step?.to ?? before.status, updatedAt: now }
    // The text stays out of the log, which is kept for ever and sent to webhooks.
    await append(db, [eventOn(after, actor, 'ticket.replied')])
    await move(db, actor, before, after)
    return viewMessage(said)
  })
}
