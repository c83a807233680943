// The outbox: one row per person and occasion, written in the same transaction as the job that sends it.
import type { Mail } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { deleteInBatches } from '../../platform/batches.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import type { MailKind } from './kinds.ts'
import type { MailEvent, Occasion } from './occasions.ts'
import { countWaiting, lockRecipients } from './statements.ts'

export type MailKey = Pick<Mail, 'recipient' | 'about'>

const hourMs = 60 * 60_000

/** Emails of one kind to one person. The last one mentions the number of further events. */
export const maxPerHour = 10

/** Older events are no longer news. */
export const maxAgeMs = 24 * hourMs

/** Stores whether there is a mail server. Without one, no emails are queued, and waiting ones are dropped. */
export async function setMailEnabled(db: Db, on: boolean): Promise<void> {
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

/** Queues one email to each person, however often it is called. */
export async function queueMails(
  db: Db,
  event: MailEvent,
  { kind, about }: Occasion & { kind: MailKind },
  recipients: readonly string[],
): Promise<void> {
  await inTransaction(db, async (db) => {
    await lockRecipients(db, { ids: recipients })
    const queued = await db.mail.findMany({ where: { about, recipient: { in: [...recipients] } } })
    const row = { about, eventId: event.id, accountId: event.accountId, kind, state: 'WAITING' }
    for (const recipient of recipients.filter((id) => !queued.some((mail) => mail.recipient === id))) {
      const dueAt = await scheduleMail(db, recipient, kind)
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
 * Decides when an email of the kind goes to the locked person. Returns null if a waiting email counts the event
 * instead: a client that causes thousands of events must not cause as many rows for each member.
 */
async function scheduleMail(db: Db, recipient: string, kind: MailKind): Promise<Date | null> {
  const now = new Date()
  const recent = await db.mail.findMany({
    where: { recipient, kind, dueAt: { gt: new Date(now.getTime() - hourMs) } },
    orderBy: { dueAt: 'desc' },
    take: maxPerHour,
  })
  if (recent.length < maxPerHour) return now
  for (const { about } of recent.filter(({ state, begunAt }) => state === 'WAITING' && begunAt === null)) {
    // The guard on begunAt is atomic: a concurrent sender reads the new number, or this update finds no row.
    const where = { recipient, about, state: 'WAITING', begunAt: null }
    const { count } = await db.mail.updateMany({ where, data: { more: { increment: 1 } } })
    if (count > 0) return null
  }
  return new Date(recent.at(-1)!.dueAt.getTime() + hourMs)
}

// The operator can requeue the job of a failed email, which is then sent.
const unsettled = { in: ['WAITING', 'FAILED'] }

/** Finds an unsettled email and freezes its number of events, so that a retry sends the same text. */
export async function startMail(db: Db, { recipient, about }: MailKey): Promise<Mail | null> {
  await db.mail.updateMany({ where: { recipient, about, begunAt: null }, data: { begunAt: new Date() } })
  return db.mail.findFirst({ where: { recipient, about, state: unsettled } })
}

/** Records why an attempt failed that will be retried. */
export async function recordFailure(db: Db, { recipient, about }: MailKey, reason: string): Promise<void> {
  await db.mail.updateMany({ where: { recipient, about, state: 'WAITING' }, data: { reason } })
}

export type MailOutcome = { state: 'SENT' } | { state: 'FAILED' | 'DROPPED'; reason: string }

/** Settles an email. Returns false if it was settled before. */
export async function endMail(db: Db, { recipient, about }: MailKey, end: MailOutcome): Promise<boolean> {
  const { count } = await db.mail.updateMany({
    where: { recipient, about, state: unsettled },
    data: { reason: null, ...end, endedAt: new Date() },
  })
  return count > 0
}

export async function findMailState(db: Db, { recipient, about }: MailKey): Promise<string | null> {
  const row = await db.mail.findUnique({ where: { recipient_about: { recipient, about } }, select: { state: true } })
  return row?.state ?? null
}

/** The number of due waiting emails, counted up to 10,000. */
export async function countWaitingMails(db: Db): Promise<number> {
  const [row] = await countWaiting(db, {})
  return row!.count
}

/** Deletes settled emails due before that time and returns their number. */
export function deleteOldMails(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  const where = { dueAt: { lt: before }, state: { not: 'WAITING' } }
  return deleteInBatches(signal, (limit) => db.mail.deleteMany({ where, limit }))
}
