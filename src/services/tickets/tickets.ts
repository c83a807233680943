// Support tickets: opened, read and listed, by their account or by support. Statuses change in states.ts alone.
import { domainToASCII } from 'node:url'
import type { Static } from '@sinclair/typebox'
import type { Account, Ticket, TicketMessage } from '../../generated/client.ts'
import { initialOf } from '../../platform/database/columns.ts'
import type { Db } from '../../platform/database/database.ts'
import { pageBounds } from '../../platform/database/facet-statements.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault, invalidField } from '../../platform/errors.ts'
import { newId, timeOf } from '../../platform/ids.ts'
import type { OperatorTicket } from '../../schemas/operator.ts'
import {
  type CreateTicket,
  TicketMessage as MessageSchema,
  type TicketQuery,
  Ticket as TicketSchema,
  ticketPriorities,
  ticketStatuses,
} from '../../schemas/tickets.ts'
import { eventOf, eventValues } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { createTicketRows, ticketPage, ticketSearch } from './statements.ts'

type TicketFilter = Pick<Static<typeof TicketQuery>, 'status' | 'priority' | 'search'>
export type TicketView = Static<typeof TicketSchema>
export type OperatorTicketView = Static<typeof OperatorTicket>
export type MessageView = Static<typeof MessageSchema>

/** Who wrote or asks: the account that opened the ticket, or the staff. */
export type Side = MessageView['author']

export type TicketRow = Ticket & { account: Pick<Account, 'name'> }

/** Who asks: a customer sees those of its account, support sees all, and each in its own view. */
export type Caller<View> = { side: Side; actor: Actor; view(row: TicketRow): View }

export const asCustomer = (actor: Actor): Caller<TicketView> => ({ side: 'customer', actor, view: viewTicket })

export const asSupport = (actor: Actor): Caller<OperatorTicketView> => ({
  side: 'support',
  actor,
  view: (row) => ({ ...viewTicket(row), account: { id: row.accountId, name: row.account.name } }),
})

const viewOfTicket = viewOf(TicketSchema)
const viewOfMessage = viewOf(MessageSchema)
const withAccount = { account: { select: { name: true } } }
const seenFrom = ({ side, actor }: Caller<unknown>) => (side === 'support' ? {} : { accountId: actor.accountId })

export const viewTicket = (row: Ticket): TicketView => viewOfTicket(row)
export const viewMessage = (row: TicketMessage): MessageView => viewOfMessage(row)

export async function findTicket(db: Db, caller: Caller<unknown>, id: string): Promise<TicketRow> {
  const row = await db.ticket.findFirst({ where: { id, ...seenFrom(caller) }, include: withAccount })
  if (!row) throw new Fault('not_found', `There is no ticket ${id}.`)
  return row
}

export async function getTicket<View>(db: Db, caller: Caller<View>, id: string): Promise<View> {
  return caller.view(await findTicket(db, caller, id))
}

export async function listTickets<View>(
  db: Db,
  caller: Caller<View>,
  filter: TicketFilter,
  page: PageRequest,
): Promise<PageOf<View>> {
  const ids = await pageIds(db, caller, filter, page)
  const { where, ...rest } = byId(page, 'tkt')
  const found = await db.ticket.findMany({
    where: ids ? { id: { in: ids } } : { ...where, ...seenFrom(caller) },
    include: withAccount,
    ...rest,
  })
  return pageOf(found, page, caller.view, (row) => [row.id])
}

/** The ids of the page, all such as the caller sees; null without a filter, when there is no need of them. */
async function pageIds(
  db: Db,
  { side, actor }: Caller<unknown>,
  { status, priority, search }: TicketFilter,
  page: PageRequest,
): Promise<string[] | null> {
  if (status === undefined && priority === undefined && search === undefined) return null
  const { accountId } = actor
  const filter = {
    statuses: status ?? ticketStatuses,
    priorities: priority ?? ticketPriorities,
    ...pageBounds(page, 'tkt'),
  }
  const { order } = page
  const all = side === 'support'
  const found =
    search !== undefined
      ? await ticketSearch[all ? 'all' : 'account'][order](db, { ...filter, accountId: all ? null : accountId, search })
      : all
        ? await ticketPage.all[order](db, filter)
        : await ticketPage.account[order](db, { ...filter, accountIds: [accountId] })
  return found.map(({ id }) => id)
}

export async function listMessages(
  db: Db,
  caller: Caller<unknown>,
  ticketId: string,
  page: PageRequest,
): Promise<PageOf<MessageView>> {
  const ticket = await findTicket(db, caller, ticketId)
  const { where, ...rest } = byId(page, 'msg')
  const found = await db.ticketMessage.findMany({ where: { ...where, ticketId: ticket.id }, ...rest })
  return pageOf(found, page, viewMessage, (row) => [row.id])
}

/**
 * What a ticket is about, as it is stored: a deployment or a domain must be the account's own. A request id cannot be
 * checked further than its form, because requests are in the log and not in the database.
 */
export async function checkRelated(db: Db, { accountId }: Actor, related: string): Promise<string> {
  if (related.startsWith('dpl_')) {
    if ((await db.deployment.count({ where: { id: related, accountId } })) > 0) return related
    throw invalidField('#/related', 'not_found', `there is no deployment ${related}`)
  }
  const names = [domainToASCII(related.toLowerCase()), related.toLowerCase()]
  const domain = await db.domain.findFirst({ where: { accountId, name: { in: names } }, select: { name: true } })
  if (domain) return domain.name
  if (/^[A-Za-z0-9._-]{1,128}$/.test(related)) return related
  throw invalidField('#/related', 'not_found', 'must be a deployment or domain of the account, or a request id')
}

const initialTicket = initialOf('Ticket')

export async function createTicket(db: Db, actor: Actor, input: Static<typeof CreateTicket>): Promise<TicketView> {
  const id = newId('tkt')
  const now = timeOf(id)
  const row = {
    ...initialTicket,
    id,
    accountId: actor.accountId,
    subject: input.subject,
    status: 'OPEN',
    priority: input.priority ?? 'normal',
    related: input.related === undefined ? null : await checkRelated(db, actor, input.related),
    createdAt: now,
    updatedAt: now,
  }
  const view = viewTicket(row)
  await createTicketRows(db, {
    ...row,
    messageId: newId('msg'),
    message: input.message,
    ...eventValues(eventOf(actor, 'ticket.created', { subject: row.id, projectId: null, data: view })),
  })
  return view
}
