// The state machine of tickets: the table, and the one guarded statement that moves a ticket along it.
import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import type { Ticket } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import type { ChangeTicketAsSupport } from '../../schemas/operator.ts'
import { append, type EventType, type NewEvent } from '../events/index.ts'
import { actorName } from '../identity/index.ts'
import { lockTicket } from './statements.ts'
import {
  type Caller,
  findTicket,
  type MessageView,
  type Side,
  type TicketRow,
  type TicketView,
  viewMessage,
  viewTicket,
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
function eventOn(row: TicketRow, { actor }: Caller<unknown>, type: EventType): NewEvent {
  const { id: subject, accountId } = row
  return { accountId, projectId: null, type, actor: actorName(actor), subject, data: viewTicket(row) }
}

/** The ticket, held against other changes until the transaction ends. */
async function findDomainToChange(db: Db, caller: Caller<unknown>, id: string): Promise<TicketRow> {
  await lockTicket(db, { id })
  return findTicket(db, caller, id)
}

/** Writes the change if the status is still that of `before`, and the event of a changed status. */
async function move(db: Db, caller: Caller<unknown>, before: TicketRow, change: Partial<Ticket>): Promise<void> {
  const moved = await db.ticket.updateMany({ where: { id: before.id, status: before.status }, data: change })
  if (moved.count === 0) throw new Fault('invalid_transition', `The ticket is no longer ${before.status}.`)
  const after = { ...before, ...change }
  if (after.status !== before.status) await append(db, [eventOn(after, caller, 'ticket.status_changed')])
}

function refuseClosed(row: TicketRow): void {
  if (row.status === 'CLOSED') throw new Fault('ticket_closed')
}

/** A customer sets the priority or ends the ticket; support moves it along the table. */
export async function changeTicket<View>(
  db: Db,
  caller: Caller<View>,
  id: string,
  { input, precondition }: { input: Static<typeof ChangeTicketAsSupport>; precondition: (view: View) => void },
): Promise<View> {
  return inTransaction(db, async (db) => {
    const before = await findDomainToChange(db, caller, id)
    precondition(caller.view(before))
    const wanted = { ...before, ...input }
    // A change that was made already may be sent again, by who has not got its answer.
    if (isDeepStrictEqual(wanted, before)) return caller.view(before)
    refuseClosed(before)
    const allowed = transitions.some(
      (step) =>
        step.by === caller.side && step.when === 'sets it' && step.from === before.status && step.to === wanted.status,
    )
    if (wanted.status !== before.status && !allowed) {
      throw new Fault('invalid_transition', `The ticket is ${before.status} and cannot become ${wanted.status}.`)
    }
    const change = { ...input, updatedAt: new Date() }
    await move(db, caller, before, change)
    return caller.view({ ...before, ...change })
  })
}

/** Adds a message, and moves the ticket if the table says that a reply of this side does. */
export async function replyToTicket(
  db: Db,
  caller: Caller<unknown>,
  id: string,
  message: string,
): Promise<MessageView> {
  return inTransaction(db, async (db) => {
    const before = await findDomainToChange(db, caller, id)
    refuseClosed(before)
    const step = transitions.find(
      (step) => step.by === caller.side && step.when === 'replies' && step.from === before.status,
    )
    const now = new Date()
    const said = { id: newId('msg'), ticketId: id, author: caller.side, message, createdAt: now }
    await db.ticketMessage.create({ data: said })
    const change = { status: step?.to ?? before.status, updatedAt: now }
    // The text stays out of the log, which is kept for ever and sent to webhooks.
    await append(db, [eventOn({ ...before, ...change }, caller, 'ticket.replied')])
    await move(db, caller, before, change)
    return viewMessage(said)
  })
}
