// The sending side of webhooks in the database: which worker holds a webhook, and which of its deliveries are next.
// A worker holds a whole webhook and not single deliveries: that keeps its events in order, bounds what one receiver
// is sent at a time over all workers, and costs one statement per round instead of one per delivery.
import type { Database, Db } from '../../platform/database/database.ts'
import {
  claimDueDeliveries,
  recordLostAttempts,
  releaseWebhookLeases,
  renewWebhookLeases,
  takeAllPending,
  takeDueWebhooks,
  takePendingOfAccounts,
} from './sending-statements.ts'

/** A webhook that this worker sends to, and no other, until the lease ends. */
export type LeasedWebhook = { webhookId: string; accountId: string }

export type Lease = { worker: string; leaseMs: number }

/** A delivery whose next attempt has been counted and is to be made now. */
export type Claimed = {
  id: string
  webhookId: string
  attempt: number
  createdAt: Date
  url: string
  /** Sealed, in base64; more than one while a rotation overlaps. */
  secrets: string[]
  /** Failed attempts of the webhook in a row, before this one. */
  failures: number
  eventId: string
  /** Null when the event is not there any more. */
  event: { type: string; createdAt: Date; actor: string; subject: string; data: string } | null
  /** The trace of the change that the event tells of. */
  trace: string | null
}

const lostText = 'the worker stopped or was lost before the outcome was known'

/** Takes the webhooks that have something to send, that nobody holds, and that are not waiting out a failure. */
export async function takePending(
  db: Database,
  lease: Lease,
  accountIds: readonly string[] | 'all',
): Promise<LeasedWebhook[]> {
  const taken =
    accountIds === 'all' ? await takeAllPending(db, lease) : await takePendingOfAccounts(db, { ...lease, accountIds })
  await recordLost(db, taken)
  return taken
}

/** Takes the webhooks whose next delivery is due, and those whose worker died. */
export async function takeDue(db: Database, lease: Lease): Promise<LeasedWebhook[]> {
  const taken = await takeDueWebhooks(db, lease)
  await recordLost(db, taken)
  return taken
}

/** What a dead worker had begun is on record as such, and is tried again at once: it may have arrived or not. */
async function recordLost(db: Database, taken: LeasedWebhook[]): Promise<void> {
  if (taken.length === 0) return
  await recordLostAttempts(db, { webhookIds: taken.map(({ webhookId }) => webhookId), error: lostText })
}

/** Tells which of them are still this worker's. */
export async function renewLeases(db: Database, lease: Lease, webhookIds: string[]): Promise<string[]> {
  const kept = await renewWebhookLeases(db, { ...lease, webhookIds })
  return kept.map(({ id }) => id)
}

/** Gives webhooks back, and sets when a worker has to look at them again. */
export async function releaseLeases(db: Database, worker: string, webhookIds: string[]): Promise<void> {
  await releaseWebhookLeases(db, { worker, webhookIds })
}

/** Has a worker look at the webhook now; one that holds the webhook looks by itself. */
export async function wakeSending(db: Db, webhookId: string): Promise<void> {
  const wakeAt = new Date()
  await db.webhookSending.createMany({ data: [{ webhookId, wakeAt }], skipDuplicates: true })
  await db.webhookSending.updateMany({ where: { webhookId, leasedBy: null }, data: { wakeAt } })
}

/** Forgets the failures of a receiver, and has what waits sent at once; `db` is the handle of a transaction. */
export async function resetSending(db: Db, webhookId: string): Promise<void> {
  const data = { failures: 0, failingSince: null, pausedUntil: null }
  // Also locks the row, so that the lease stays as it is until the second update.
  await db.webhookSending.updateMany({ where: { webhookId }, data })
  await db.webhookSending.updateMany({ where: { webhookId, leasedBy: null }, data: { wakeAt: new Date() } })
}

/** Has workers look at all webhooks of an account now: while it was suspended, nothing was due. */
export async function wakeSendingOf(db: Db, accountId: string): Promise<void> {
  const where = { leasedBy: null, webhook: { accountId } }
  await db.webhookSending.updateMany({ where, data: { wakeAt: new Date() } })
}

/** How many deliveries of a webhook may be claimed, and how many are under way. */
export type Share = { webhookId: string; free: number; busy: number }

/**
 * The next deliveries of webhooks that this worker holds, counted as attempted: `free` of them at most for each, and
 * where the receiver keeps failing, one if none is `busy`. Also tells which webhooks have some whose order is not
 * known yet, because an older transaction is still running.
 */
export async function claimDeliveries(
  db: Database,
  worker: string,
  shares: Share[],
): Promise<{ claimed: Claimed[]; unsettled: readonly string[] }> {
  const found = await claimDueDeliveries(db, {
    worker,
    webhookIds: shares.map(({ webhookId }) => webhookId),
    free: shares.map(({ free }) => free),
    busy: shares.map(({ busy }) => busy),
  })
  return { claimed: found.flatMap(readClaimed), unsettled: found[0]?.unsettled ?? [] }
}

function readClaimed(row: Awaited<ReturnType<typeof claimDueDeliveries>>[number]): Claimed[] {
  const { id, webhookId, attempt, createdAt, url, failures, eventId, type, actor, subject, data, trace } = row
  if (id === null) return []
  const secrets = row.oldSecret === null ? [row.secret] : [row.secret, row.oldSecret]
  const event = type === null ? null : { type, createdAt: row.eventCreatedAt, actor, subject, data }
  return [{ id, webhookId, attempt, createdAt, url, secrets, failures, eventId, event, trace }]
}
