// From an event to the mails about it: decided once, by a job that the event's own transaction has queued.
import type { Db } from '../../platform/database/database.ts'
import { timeOf } from '../../platform/ids.ts'
import { audienceOf } from './audience.ts'
import { occasionOf } from './occasions.ts'
import { queueMails, worthTellingMs } from './outbox.ts'
import { queueToAddress } from './to-addresses.ts'

/** Queues a mail to everybody who is told of the event; nothing more happens when it is called again. */
export async function notify(db: Db, eventId: string): Promise<void> {
  if (timeOf(eventId).getTime() < Date.now() - worthTellingMs) return
  const event = await db.event.findUnique({ where: { id: eventId } })
  const occasion = event && (await occasionOf(db, event))
  if (!occasion) return
  const { kind, after } = occasion
  if (kind === 'invitation' || kind === 'address') return queueToAddress(db, event, kind)
  const people = (await audienceOf(db, kind, event)).map(({ id }) => id)
  const recipients = after === null ? people : await toldOf(db, after, people)
  await queueMails(db, event, { ...occasion, kind }, recipients)
}

/** Those who were told of the other occasion, or will be. */
async function toldOf(db: Db, about: string, people: string[]): Promise<string[]> {
  const where = { about, recipient: { in: people }, state: { in: ['SENT', 'WAITING'] } }
  return (await db.mail.findMany({ where, select: { recipient: true } })).map(({ recipient }) => recipient)
}
