// Decides which events cause emails: of a streak of failures, for example, only the first one and the recovery.
import type { Event } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import type { EventType } from '../events/index.ts'
import type { TicketView } from '../tickets/index.ts'
import { type AnyMailKind, mailEvents } from './kinds.ts'
import { firstFailure } from './statements.ts'

export type MailEvent = Omit<Event, 'seq'>

export type Occasion = {
  kind: AnyMailKind
  /** Each person gets one email about this id. */
  about: string
  /** Only people who got the email about this id get this one. */
  after: string | null
}

/** Returns null if the event causes no email. */
export async function occasionOf(db: Db, event: MailEvent): Promise<Occasion | null> {
  const kind = mailEvents[event.type as EventType]
  if (!kind) return null
  const occasion = { kind, about: event.id, after: null }
  switch (kind) {
    case 'production-failed':
      return (await findFailure(db, event)) === null ? occasion : null
    case 'production-recovered': {
      const after = await findFailure(db, event)
      return after === null ? null : { ...occasion, after }
    }
    case 'domain-lost':
      return (await wasVerified(db, event)) ? occasion : null
    case 'ticket-reply':
      return (await isFromSupport(db, event)) ? occasion : null
    // Every account of the person has an event of the sign-in, so use the session's id.
    case 'new-sign-in':
      return { ...occasion, about: (event.data as { id: string }).id }
    case 'address':
      return (await isUnproved(db, event)) ? occasion : null
    default:
      return occasion
  }
}

/** Whether the person's email is unproved. Each of their accounts has the event, but only the first one counts. */
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

/** The event also reports claims that were never verified; the domain's previous event has its state. */
async function wasVerified(db: Db, { id, accountId, subject }: MailEvent): Promise<boolean> {
  const before = await db.event.findFirst({
    where: { accountId, subject, type: { startsWith: 'domain.' }, id: { lt: id } },
    orderBy: { id: 'desc' },
  })
  return (before?.data as { verified?: boolean } | undefined)?.verified === true
}

/** The event of a reply lacks its author; find the message by the time of the ticket's change. */
async function isFromSupport(db: Db, { subject, data }: MailEvent): Promise<boolean> {
  const createdAt = new Date((data as TicketView).updatedAt)
  return (await db.ticketMessage.count({ where: { ticketId: subject, author: 'support', createdAt } })) > 0
}
