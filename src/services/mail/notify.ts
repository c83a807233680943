// Queues the emails about an event, in a job that the event's own transaction has queued.
import type { Db } from '../../platform/database/database.ts'
import { timeOf } from '../../platform/ids.ts'
import { queueAddressMail } from './address-mails.ts'
import { audienceOf } from './audience.ts'
import { occasionOf } from './occasions.ts'
import { maxAgeMs, queueMails } from './outbox.ts'

/** Queues an email to every recipient of the event. Calling it again has no effect. */
export async function notify(db: Db, eventId: string): Promise<void> {
  if (timeOf(eventId).getTime() < Date.now() - maxAgeMs) return
  const event = await db.event.findUnique({ where: { id: eventId } })
  const occasion = event && (await occasionOf(db, event))
  if (!occasion) return
  const { kind, after } = occasion
  if (kind === 'invitation' || kind === 'address') return queueAddressMail(db, event, kind)
  const people = (await audienceOf(db, kind, event)).map(({ id }) => id)
  const recipients = after === null ? people : await recipientsOf(db, after, people)
  await queueMails(db, event, { ...occasion, kind }, recipients)
}

/** The people who got, or will get, the email about another occasion. */
async function recipientsOf(db: Db, about: string, people: string[]): Promise<string[]> {
  const where = { about, recipient: { in: people }, state: { in: ['SENT', 'WAITING'] } }
  return (await db.mail.findMany({ where, select: { recipient: true } })).map(({ recipient }) => recipient)
}
