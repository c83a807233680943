// The outbox: a row for each person and occasion, written once, with the job that sends it in the same transaction.
import type { Mail } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import type { MailKind } from './kinds.ts'
import type { MailEvent, Occasion } from './occasions.ts'
import { countWaiting, lockRecipients } from './statements.ts'

export type MailKey = Pick<Mail, 'recipient' | 'about'>

const hourMs = 60 * 60_000

/** Of one kind, to one person. What is more is told in the last of them, as a number. */
export const maxPerHour = 10

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
      const dueAt = await placeOf(db, recipient, kind)
      if (dueAt === null) continue
      await db.mail.create({ data: { ...row, recipient, dueAt } })
      await queueSending(db, { recipient, about }, dueAt)
    }
  })
}

export async function queueSending(db: Db, { recipient, about }: MailKey, runAt: Date): Promise<void> {
  const key = `${recipient} ${about}`
  await enqueue(db, { kind: 'mail', key, payload: { recipient, about }, runAt: runAt > new Date() ? runAt : null })
}

/**
 * When a mail of the kind goes to the person, who is locked; null if one that still waits tells of it, as a number. Such
 * a number has no row for each event: whoever makes thousands of events must not make as many rows for each member.
 */
async function placeOf(db: Db, recipient: string, kind: MailKind): Promise<Date | null> {
  const now = new Date()
  const recent = await db.mail.findMany({
    where: { recipient, kind, dueAt: { gt: new Date(now.getTime() - hourMs) } },
    orderBy: { dueAt: 'desc' },
    take: maxPerHour,
  })
  if (recent.length < maxPerHour) return now
  for (const { about } of recent.filter(({ state, begunAt }) => state === 'WAITING' && begunAt === null)) {
    // Who begins to send it at this moment reads the number after this, or this finds that it has begun.
    const where = { recipient, about, state: 'WAITING', begunAt: null }
    const { count } = await db.mail.updateMany({ where, data: { more: { increment: 1 } } })
    if (count > 0) return null
  }
  return new Date(recent.at(-1)!.dueAt.getTime() + hourMs)
}

// One that was given up is sent after all where the operator queues its job again.
const open = { in: ['WAITING', 'FAILED'] }

/** The mail, if it is still to be sent; from now on it tells of nothing more, so that a repeat says the same. */
export async function beginMail(db: Db, { recipient, about }: MailKey): Promise<Mail | null> {
  await db.mail.updateMany({ where: { recipient, about, begunAt: null }, data: { begunAt: new Date() } })
  return db.mail.findFirst({ where: { recipient, about, state: open } })
}

/** Notes why an attempt failed after which there will be another one. */
export async function noteFailure(db: Db, { recipient, about }: MailKey, reason: string): Promise<void> {
  await db.mail.updateMany({ where: { recipient, about, state: 'WAITING' }, data: { reason } })
}

export type MailEnd = { state: 'SENT' } | { state: 'FAILED' | 'DROPPED'; reason: string }

/** Settles a mail; false if that was done before. */
export async function endMail(db: Db, { recipient, about }: MailKey, end: MailEnd): Promise<boolean> {
  const { count } = await db.mail.updateMany({
    where: { recipient, about, state: open },
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
