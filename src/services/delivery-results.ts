// What became of attempts: written in batches, together with when the next one is due and how the receiver stands.
import { type Database, rows, sql } from '../db.ts'
import { circuitFailures, lazily, probeDelaysMs } from './delivery-lanes.ts'

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

const retentionDays = 30
const pruneBatch = 1_000

export function succeeded({ status }: Outcome): boolean {
  return status !== null && status >= 200 && status < 300
}

/** The receiver says that it is gone for good, so nothing is tried again. */
export function isGone({ status }: Outcome): boolean {
  return status === 410
}

function rowOf(result: Result): object {
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
  await rows(
    db,
    sql`WITH ${lazily}, result AS (
        SELECT r.* FROM lazily, json_to_recordset(${JSON.stringify(results.map(rowOf))}::json) AS r(id text, attempt int,
          started timestamptz, duration int, status int, body text, note text, error text, state text, delay int)),
      -- Locked against deletion before their deliveries are, as deleting a webhook does it: no deadlock that way.
      hook AS MATERIALIZED (SELECT id FROM webhook WHERE id = ANY(${webhookIds}::text[]) ORDER BY id FOR KEY SHARE),
      locked AS MATERIALIZED (
        SELECT d.id, d.attempts, d.state FROM result r JOIN delivery d ON d.id = r.id JOIN hook h ON h.id = d.webhook_id
        FOR UPDATE OF d),
      logged AS (
        INSERT INTO delivery_attempt (delivery_id, attempt, started_at, duration_ms, response_status, response_body, error)
        SELECT r.id, r.attempt, r.started, r.duration, r.status, r.body, r.note FROM result r JOIN locked USING (id)
        ON CONFLICT (delivery_id, attempt) DO UPDATE SET started_at = excluded.started_at,
          duration_ms = excluded.duration_ms, response_status = excluded.response_status,
          response_body = excluded.response_body, error = excluded.error)
      UPDATE delivery d SET state = r.state, response_status = r.status, error = r.error, attempted_at = r.started,
        next_attempt_at = now() + r.delay * interval '1 ms'
      FROM result r JOIN locked l ON l.id = r.id
      WHERE d.id = r.id AND l.state = 'PENDING' AND (l.attempts = r.attempt OR r.state = 'DELIVERED') RETURNING d.id`,
  )
}

export type Standing = { webhookId: string; failures: number; failingSince: Date | null }

/**
 * Counts failures of receivers, in the order in which they came. From the fifth in a row on, the webhook is paused for
 * longer and longer, and then probed; a success makes everything good.
 */
export async function recordStanding(db: Database, results: Result[]): Promise<Standing[]> {
  const changes = new Map<string, { webhookId: string; reset: boolean; failures: number }>()
  for (const result of results) {
    const before = changes.get(result.webhookId) ?? { webhookId: result.webhookId, reset: false, failures: 0 }
    if (succeeded(result)) changes.set(result.webhookId, { ...before, reset: true, failures: 0 })
    else changes.set(result.webhookId, { ...before, failures: before.failures + 1 })
  }
  return rows<Standing>(
    db,
    sql`WITH change AS (
        SELECT k.webhook_id, c.reset,
          -- Those under way together fail together: beyond the fifth they count as one, or the first pause would be long.
          CASE WHEN c.failures = 0 THEN 0 ELSE LEAST(before.failures + c.failures,
            GREATEST(before.failures + 1, ${circuitFailures}::int)) END AS failures
        FROM json_to_recordset(${JSON.stringify([...changes.values()])}::json) AS c("webhookId" text, reset boolean, failures int)
        JOIN webhook_lane k ON k.webhook_id = c."webhookId",
          LATERAL (SELECT CASE WHEN c.reset THEN 0 ELSE k.failures END AS failures) before ORDER BY k.webhook_id FOR UPDATE OF k)
      UPDATE webhook_lane k SET failures = c.failures,
        failing_since = CASE WHEN c.failures = 0 THEN NULL WHEN c.reset THEN now() ELSE COALESCE(k.failing_since, now()) END,
        paused_until = CASE WHEN c.failures >= ${circuitFailures}::int THEN now() + interval '1 ms' *
          (${[...probeDelaysMs]}::int[])[LEAST(c.failures - ${circuitFailures}::int + 1, ${probeDelaysMs.length}::int)] END
      FROM change c WHERE k.webhook_id = c.webhook_id
      RETURNING k.webhook_id AS "webhookId", k.failures, k.failing_since AS "failingSince"`,
  )
}

/** Deletes deliveries and attempts of long ago; true if there may be more. Ids sort by time, so the oldest are first. */
export async function pruneDeliveries(db: Database): Promise<boolean> {
  const pruned = await rows(
    db,
    sql`DELETE FROM delivery WHERE id IN (
          SELECT id FROM (SELECT id, created_at FROM delivery ORDER BY id LIMIT ${pruneBatch}::int) oldest
          WHERE created_at < now() - ${retentionDays}::int * interval '1 day')
        RETURNING id`,
  )
  return pruned.length === pruneBatch
}

/** How many deliveries wait, counted up to a bound: the figure is asked for every few seconds. */
export async function countWaiting(db: Database): Promise<number> {
  const [found] = await rows<{ count: number }>(
    db,
    sql`SELECT count(*)::int AS count FROM (
          (SELECT 1 FROM delivery WHERE state = 'PENDING' AND attempts = 0 LIMIT 10000)
          UNION ALL (SELECT 1 FROM delivery WHERE state = 'PENDING' AND attempts > 0 LIMIT 10000)) waiting`,
  )
  return found!.count
}
