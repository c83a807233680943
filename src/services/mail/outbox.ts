// The outbox: a row for each person and occasion, written once, with the job that sends it in the same transaction.
import type { Mail } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database.ts'
import type { MailKind } from './kinds.ts'
import type { MailEvent, Occasion } from './occasions.ts'
import { countWaiting, lockRecipients } from './statements.ts'

export type MailKey = Pick<Mail, 'recipient' | 'about'>

const hourMs = 60 * 60_000

/** Of one kind, to one person. What is more is told in the last of them, as a number. */
export const mostPerHour = 10

/** What is older than this is no news any more. */
export const worthTellingMs = 24 * hourMs

/** Says whether there is a mail server: without one nothing is written, and what still waits is dropped. */
export async function switchMail(db: Db, on: boolean): Promise<void> {
  await inTransaction(db, async (db) => {
    const before = await db.mailSwitch.findUnique({ where: { id: 1 } })
    if ((before?.on ?? false) === on) return
    await db.mailSwitch.upsert({ where: { id: 1 }, create: { on }, update: { on } })
    if (on) return
    await db.job.deleteMany({ where: { kind: { in: ['notify', 'mail'] }, lockedBy: null } })
    const dropped = { state: 'DROPPED', reason: 'mail was turned off', endedAt: new Date() }
    await db.mail.updateMany({ where: { state: 'WAITING' }, data: dropped })
  })
}

/** Queues a mail to each person, once however often it is called. */
export async function queueMails(
  db: Db,
  event: MailEvent,
  { kind, about }: Occasion & { kind: MailKind },
  recipients: readonly string[],
): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockRecipients(db, { ids: recipients })
    const known = await db.mail.findMany({ where: { about, recipient: { in: [...recipients] } } })
    const row = { about, eventId: event.id, accountId: event.accountId, kind, state: 'WAITING' }
    for (const recipient of recipients.filter((id) => !known.some((one) => one.recipient === id))) {
      const { dueAt, toldWith } = await placeOf(db, recipient, kind)
      await db.mail.create({ data: { ...row, recipient, dueAt, toldWith } })
      if (toldWith === null) await queueSending(db, { recipient, about }, dueAt)
    }
  })
}

export async function queueSending(db: Db, { recipient, about }: MailKey, runAt: Date): Promise<void> {
  const key = `${recipient} ${about}`
  await enqueue(db, { kind: 'mail', key, payload: { recipient, about }, runAt: runAt > new Date() ? runAt : null })
}

/** When the next mail of the kind goes to the person, or which waiting one tells of it. The person is locked. */
async function placeOf(db: Db, recipient: string, kind: MailKind): Promise<{ dueAt: Date; toldWith: string | null }> {
  const now = new Date()
  const recent = await db.mail.findMany({
    where: { recipient, kind, toldWith: null, dueAt: { gt: new Date(now.getTime() - hourMs) } },
    orderBy: { dueAt: 'desc' },
    take: mostPerHour,
  })
  if (recent.length < mostPerHour) return { dueAt: now, toldWith: null }
  for (const { about } of recent) {
    // Holds it: who begins to send it waits, and counts what it tells of after this.
    const where = { recipient, about, state: 'WAITING', begunAt: null }
    const { count } = await db.mail.updateMany({ where, data: { state: 'WAITING' } })
    if (count > 0) return { dueAt: now, toldWith: about }
  }
  return { dueAt: new Date(recent.at(-1)!.dueAt.getTime() + hourMs), toldWith: null }
}

export type BegunMail = Mail & {
  /** How many others it tells of. */
  more: number
}

/** The mail, if it is still to be sent; from now on it tells of nothing more, so that a repeat says the same. */
export async function beginMail(db: Db, { recipient, about }: MailKey): Promise<BegunMail | null> {
  await db.mail.updateMany({ where: { recipient, about, begunAt: null }, data: { begunAt: new Date() } })
  const row = await db.mail.findUnique({ where: { recipient_about: { recipient, about } } })
  if (row?.state !== 'WAITING') return null
  return { ...row, more: await db.mail.count({ where: { recipient, toldWith: about } }) }
}

/** Notes why an attempt failed after which there will be another one. */
export async function noteFailure(db: Db, { recipient, about }: MailKey, reason: string): Promise<void> {
  await db.mail.updateMany({ where: { recipient, about, state: 'WAITING' }, data: { reason } })
}

export type MailEnd = { state: 'SENT' } | { state: 'FAILED' | 'DROPPED'; reason: string }

/** Settles a mail and those it told of; false if that was done before. */
export async function endMail(db: Db, { recipient, about }: MailKey, end: MailEnd): Promise<boolean> {
  const { count } = await db.mail.updateMany({
    where: { recipient, state: 'WAITING', OR: [{ about }, { toldWith: about }] },
    data: { reason: null, ...end, endedAt: new Date() },
  })
  return count > 0
}

export async function stateOfMail(db: Db, { recipient, about }: MailKey): Promise<string | null> {
  const row = await db.mail.findUnique({ where: { recipient_about: { recipient, about } }, select: { state: true } })
  return row?.state ?? null
}

/** How many mails wait that are due, counted up to 10,000. */
export async function waitingMails(db: Db): Promise<number> {
  const [row] = await countWaiting(db, {})
  return row!.count
}

/** Deletes mails that were settled and due before that time, and tells how many. */
export function forgetOldMails(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  const where = { dueAt: { lt: before }, state: { not: 'WAITING' } }
  return deleteInBatches(signal, (limit) => db.mail.deleteMany({ where, limit }))
}
