// Which events are worth a mail: the first failure of a streak and its end, what was lost, and answers of support.
import type { Event } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import type { EventType } from '../events/index.ts'
import type { TicketView } from '../tickets/index.ts'
import { type AnyMailKind, mailEvents } from './kinds.ts'
import { firstFailure } from './statements.ts'

export type MailEvent = Omit<Event, 'seq'>

export type Occasion = {
  kind: AnyMailKind
  /** The mail tells of this once to each person. */
  about: string
  /** Only those are told who were told of this before. */
  after: string | null
}

/** Null if nobody is told of it by mail. */
export async function occasionOf(db: Db, event: MailEvent): Promise<Occasion | null> {
  const kind = mailEvents[event.type as EventType]
  if (!kind) return null
  const usual = { kind, about: event.id, after: null }
  switch (kind) {
    case 'production-failed':
      return (await findFailure(db, event)) === null ? usual : null
    case 'production-recovered': {
      const after = await findFailure(db, event)
      return after === null ? null : { ...usual, after }
    }
    case 'domain-lost':
      return (await wasVerified(db, event)) ? usual : null
    case 'ticket-reply':
      return (await isFromSupport(db, event)) ? usual : null
    // Every account of the person has an event of the sign-in.
    case 'new-sign-in':
      return { ...usual, about: (event.data as { id: string }).id }
    case 'address':
      return (await isUnproved(db, event)) ? usual : null
    default:
      return usual
  }
}

/** Whether the person has come with an address that is not proved, or has taken one. Each account of theirs has the event. */
async function isUnproved(db: Db, { type, actor, subject: id, accountId, data }: MailEvent): Promise<boolean> {
  if (type === 'member.updated' && actor !== id) return false
  const { email } = data as { email: string }
  const first = { orderBy: { id: 'asc' }, take: 1 } as const
  const user = await db.user.findFirst({ where: { id, email, emailProvedAt: null }, include: { memberships: first } })
  return user?.memberships[0]?.accountId === accountId
}

/** The first failure of production since its last success, before this event. */
export async function findFailure(db: Db, { id, accountId, projectId }: MailEvent): Promise<string | null> {
  if (projectId === null) return null
  const [first] = await firstFailure(db, { accountId, projectId, before: id })
  return first?.id ?? null
}

/** The same event tells of claims that end without ever being proved: the event before it has how the domain was. */
async function wasVerified(db: Db, { id, accountId, subject }: MailEvent): Promise<boolean> {
  const before = await db.event.findFirst({
    where: { accountId, subject, type: { startsWith: 'domain.' }, id: { lt: id } },
    orderBy: { id: 'desc' },
  })
  return (before?.data as { verified?: boolean } | undefined)?.verified === true
}

/** An event of a reply does not say who wrote it; the message has the time that the ticket was changed at. */
async function isFromSupport(db: Db, { subject, data }: MailEvent): Promise<boolean> {
  const createdAt = new Date((data as TicketView).updatedAt)
  return (await db.ticketMessage.count({ where: { ticketId: subject, author: 'support', createdAt } })) > 0
}
