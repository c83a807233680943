// What became of attempts: written in batches, with when the next one is due and how often the receiver failed.
import { inBatches } from '../../platform/batches.ts'
import type { Database } from '../../platform/database/database.ts'
import { idAt } from '../../platform/ids.ts'
import {
  countWaitingDeliveries,
  deleteOldDeliveries,
  deleteSurplusDeliveries,
  type FailureChange,
  type ResultRow,
  recordAttempts,
  updateFailures,
} from './statements.ts'

export type Outcome = {
  startedAt: Date
  durationMs: number
  /** HTTP status, if an answer came. */
  status: number | null
  /** The first 4 KB of the answer. */
  body: string | null
  /** Why the attempt failed, or what was wrong with the answer of one that did not. */
  error: string | null
}

export type Result = Outcome & { deliveryId: string; webhookId: string; attempt: number }

// Waits after the first, second, … failure. The contract's table: a restart is bridged in seconds, an outage in hours,
// a weekend in three days; then the delivery has failed for good.
export const retryDelaysMs = [
  5_000,
  5 * 60_000,
  30 * 60_000,
  2 * 3_600_000,
  5 * 3_600_000,
  10 * 3_600_000,
  14 * 3_600_000,
  20 * 3_600_000,
  24 * 3_600_000,
] as const

const pruneBatch = 1_000
// An account writes thirty events a second and more, for fifty webhooks, each with 4 KB of an answer of its own receiver.
const maxKept = 10_000
const webhooksAtOnce = 100

export function succeeded({ status }: Outcome): boolean {
  return status !== null && status >= 200 && status < 300
}

/** The receiver says that it is gone for good, so nothing is tried again. */
export function isGone({ status }: Outcome): boolean {
  return status === 410
}

function rowOf(result: Result): ResultRow {
  const delivered = succeeded(result)
  const delayMs = delivered || isGone(result) ? undefined : retryDelaysMs[result.attempt - 1]
  return {
    id: result.deliveryId,
    attempt: result.attempt,
    started: result.startedAt,
    duration: Math.round(result.durationMs),
    status: result.status,
    body: result.body,
    note: result.error,
    error: delivered ? null : result.error,
    state: delivered ? 'DELIVERED' : delayMs === undefined ? 'FAILED' : 'PENDING',
    delay: delayMs ?? null,
  }
}

/**
 * Records attempts. Deliveries that were deleted meanwhile are passed over. A result that comes late, after another
 * worker began the next attempt, still goes on record, and still delivers if it was a success.
 */
export async function recordResults(db: Database, results: Result[]): Promise<void> {
  const webhookIds = [...new Set(results.map((result) => result.webhookId))]
  await recordAttempts(db, { results: results.map(rowOf), webhookIds })
}

/** `lasting`: for so long that the receiver counts as gone. */
export type Failures = { webhookId: string; lasting: boolean }

/**
 * Counts failures of receivers, in the order in which they came. From the fifth in a row on, the webhook is paused for
 * longer and longer, and then probed; a success ends the count and the pause.
 */
export async function countFailures(db: Database, results: Result[]): Promise<Failures[]> {
  const changes = new Map<string, FailureChange>()
  for (const result of results) {
    const before = changes.get(result.webhookId) ?? { webhookId: result.webhookId, reset: false, failures: 0 }
    if (succeeded(result)) changes.set(result.webhookId, { ...before, reset: true, failures: 0 })
    else changes.set(result.webhookId, { ...before, failures: before.failures + 1 })
  }
  return updateFailures(db, { changes: [...changes.values()] })
}

/** Deletes deliveries of before that time with their attempts, unless they still wait, and tells how many. */
export function pruneDeliveries(db: Database, before: Date, signal?: AbortSignal): Promise<number> {
  let after = ''
  return inBatches(signal, async () => {
    const pruned = await deleteOldDeliveries(db, { after, beforeId: idAt('dlv', before), before, limit: pruneBatch })
    const ids = pruned.map(({ id }) => id).sort()
    // What was passed over, because it waits or is locked, is not read again.
    after = ids.at(-1) ?? after
    return { count: ids.length, more: ids.length === pruneBatch }
  })
}

/** Deletes what ended before the newest `most` deliveries of its webhook, and tells how many. */
export async function pruneSurplus(db: Database, signal?: AbortSignal, most = maxKept): Promise<number> {
  let total = 0
  for (let after = ''; ; ) {
    const where = { id: { gt: after } }
    const webhooks = await db.webhook.findMany({
      where,
      select: { id: true },
      orderBy: { id: 'asc' },
      take: webhooksAtOnce,
    })
    const webhookIds = webhooks.map(({ id }) => id)
    total += await inBatches(signal, async () => {
      const { length } = await deleteSurplusDeliveries(db, { webhookIds, most, limit: pruneBatch })
      return { count: length, more: length > 0 }
    })
    if (webhooks.length < webhooksAtOnce) return total
    after = webhookIds.at(-1)!
  }
}

/** How many deliveries wait, counted up to a bound: the figure is asked for every few seconds. */
export async function countWaiting(db: Database): Promise<number> {
  const [waiting] = await countWaitingDeliveries(db, {})
  return waiting!.count
}
