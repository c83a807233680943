// The sending side of webhooks in the database: which worker holds a webhook, and which of its deliveries are next.
// A worker holds a whole webhook and not single deliveries: that keeps its events in order, bounds what one receiver
// is sent at a time over all workers, and costs one statement per round instead of one per delivery.
import { type Database, rows, type Sql, sql } from '../db.ts'

export type TakenLane = { webhookId: string; accountId: string }

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
}

// A receiver that failed this often in a row is only probed, one delivery at a time, until it succeeds.
export const circuitFailures = 5
// Waits between probes. The first ones are short, for a receiver that restarts; a minute is the most that a recovery
// goes unnoticed, and costs nothing even with thousands of dead receivers.
export const probeDelaysMs = [5_000, 10_000, 20_000, 40_000, 60_000] as const
// Events of one webhook are sent in the order of (xid, seq), which is final once no older transaction runs. Ours end
// after 15 s; one that takes longer is somebody's terminal, and is not waited for.
const settleSeconds = 20
/**
 * Part of statements whose loss in a crash of the database would only mean that something is sent again, which a
 * receiver must bear with anyway: their commit does not wait for the disk, for which the changes of users queue up.
 */
export const lazily = sql`lazily AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS setting)`

const lostText = 'the worker stopped or was lost before the outcome was known'

/** Webhooks of these accounts, or of all, that have something to send. */
function pendingOf(accountIds: readonly string[] | 'all'): Sql {
  if (accountIds !== 'all') return sql`SELECT id FROM webhook WHERE account_id = ANY(${[...accountIds]}::text[])`
  // From one webhook to the next within the index, because a dead one may have a hundred thousand rows in it.
  return sql`(WITH RECURSIVE step AS (
      (SELECT webhook_id AS id FROM delivery WHERE state = 'PENDING' AND attempts = 0 ORDER BY webhook_id LIMIT 1)
      UNION ALL
      SELECT (SELECT d.webhook_id FROM delivery d WHERE d.state = 'PENDING' AND d.attempts = 0 AND d.webhook_id > step.id
              ORDER BY d.webhook_id LIMIT 1) FROM step WHERE step.id IS NOT NULL)
    SELECT id FROM step WHERE id IS NOT NULL
    UNION SELECT webhook_id FROM delivery WHERE state = 'PENDING' AND requested)`
}

/** Takes the webhooks that have something to send, that nobody holds, and that are not waiting out a failure. */
export async function takePending(
  db: Database,
  worker: string,
  leaseMs: number,
  accountIds: readonly string[] | 'all',
): Promise<TakenLane[]> {
  const ready = sql`SELECT w.id, w.account_id FROM (${pendingOf(accountIds)}) candidate
    JOIN webhook w ON w.id = candidate.id LEFT JOIN webhook_lane k ON k.webhook_id = w.id
    WHERE (k.leased_by IS NULL OR k.wake_at <= now())
      AND ((w.active AND (k.paused_until IS NULL OR k.paused_until <= now())
            AND EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id AND d.state = 'PENDING' AND d.attempts = 0))
        OR EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id AND d.state = 'PENDING' AND d.requested
                     AND (d.attempts = 0 OR d.next_attempt_at <= now())))
    ORDER BY w.id FOR KEY SHARE OF w SKIP LOCKED`
  return take(db, worker, leaseMs, ready)
}

/** Takes the webhooks whose next delivery is due, and those whose worker died. */
export async function takeDue(db: Database, worker: string, leaseMs: number): Promise<TakenLane[]> {
  const due = sql`SELECT w.id, w.account_id FROM webhook_lane k JOIN webhook w ON w.id = k.webhook_id
    WHERE k.wake_at <= now() ORDER BY w.id LIMIT 1000 FOR KEY SHARE OF w SKIP LOCKED`
  return take(db, worker, leaseMs, due)
}

async function take(db: Database, worker: string, leaseMs: number, source: Sql): Promise<TakenLane[]> {
  const taken = await rows<TakenLane>(
    db,
    sql`WITH source AS MATERIALIZED (${source}),
        taken AS (
          INSERT INTO webhook_lane AS k (webhook_id, leased_by, wake_at)
          SELECT id, ${worker}, now() + ${leaseMs}::int * interval '1 ms' FROM source ORDER BY id
          ON CONFLICT (webhook_id) DO UPDATE SET leased_by = excluded.leased_by, wake_at = excluded.wake_at
          WHERE k.leased_by IS NULL OR k.wake_at <= now() RETURNING webhook_id)
        SELECT t.webhook_id AS "webhookId", s.account_id AS "accountId" FROM taken t JOIN source s ON s.id = t.webhook_id`,
  )
  if (taken.length > 0) await recordLost(db, taken)
  return taken
}

/** What a dead worker had begun is on record as such, and is tried again at once: it may have arrived or not. */
async function recordLost(db: Database, taken: TakenLane[]): Promise<void> {
  const ids = taken.map((lane) => lane.webhookId)
  await rows(
    db,
    sql`WITH lost AS (
          UPDATE delivery SET next_attempt_at = now(), error = ${lostText}
          WHERE webhook_id = ANY(${ids}::text[]) AND state = 'PENDING' AND attempts > 0 AND next_attempt_at IS NULL
          RETURNING id, attempts, attempted_at)
        INSERT INTO delivery_attempt (delivery_id, attempt, started_at, error)
        SELECT id, attempts, attempted_at, ${lostText} FROM lost ON CONFLICT DO NOTHING RETURNING delivery_id`,
  )
}

/** Tells which of them are still this worker's. */
export async function renewLanes(db: Database, worker: string, leaseMs: number, ids: string[]): Promise<string[]> {
  const kept = await rows<{ id: string }>(
    db,
    sql`UPDATE webhook_lane SET wake_at = now() + ${leaseMs}::int * interval '1 ms'
        WHERE webhook_id = ANY(${ids}::text[]) AND leased_by = ${worker} RETURNING webhook_id AS id`,
  )
  return kept.map((row) => row.id)
}

/** Gives webhooks back, and leaves word when somebody has to look at them again. */
export async function releaseLanes(db: Database, worker: string, ids: string[]): Promise<void> {
  await rows(
    db,
    sql`UPDATE webhook_lane k SET leased_by = NULL, wake_at = LEAST(
          CASE WHEN w.active AND COALESCE(first.at, retry.at) IS NOT NULL
            THEN GREATEST(LEAST(first.at, retry.at), k.paused_until) END,
          requested.at,
          -- Begun, and cut off by a worker that stops.
          CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING' AND attempts > 0
                              AND next_attempt_at IS NULL) THEN now() END)
        FROM webhook w,
          LATERAL (SELECT (SELECT created_at FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING'
                             AND attempts = 0 ORDER BY xid, seq LIMIT 1) AS at) first,
          LATERAL (SELECT min(next_attempt_at) AS at FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING'
                     AND attempts > 0) retry,
          LATERAL (SELECT min(next_attempt_at) AS at FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING'
                     AND requested) requested
        WHERE k.webhook_id = ANY(${ids}::text[]) AND w.id = k.webhook_id AND k.leased_by = ${worker}
        RETURNING k.webhook_id`,
  )
}

type ClaimedRow = Omit<Claimed, 'event' | 'secrets'> & {
  secret: string
  oldSecret: string | null
  type: string | null
  eventCreatedAt: Date
  actor: string
  subject: string
  data: string
  unsettled: string[] | null
}

/**
 * The next deliveries of webhooks that this worker holds, counted as attempted: `free` of them at most for each, and
 * where the receiver keeps failing, one if none is `busy`. Also tells which webhooks have some whose order is not
 * known yet, because an older transaction is still running.
 */
export async function claimDeliveries(
  db: Database,
  worker: string,
  lanes: { webhookId: string; free: number; busy: number }[],
): Promise<{ claimed: Claimed[]; unsettled: string[] }> {
  const found = await rows<ClaimedRow>(
    db,
    sql`WITH lane AS MATERIALIZED (
        SELECT w.id, w.url, encode(w.secret, 'base64') AS secret, k.failures,
          CASE WHEN w.old_secret_until > now() THEN encode(w.old_secret, 'base64') END AS old_secret,
          NOT w.active OR COALESCE(k.paused_until > now(), false) AS only_requested,
          CASE WHEN k.failures >= ${circuitFailures}::int AND w.active AND (k.paused_until IS NULL OR k.paused_until <= now())
            THEN GREATEST(1 - asked.busy, 0) ELSE asked.free END AS free
        FROM unnest(${lanes.map((lane) => lane.webhookId)}::text[], ${lanes.map((lane) => lane.free)}::int[],
                    ${lanes.map((lane) => lane.busy)}::int[]) AS asked(id, free, busy)
        JOIN webhook_lane k ON k.webhook_id = asked.id AND k.leased_by = ${worker} AND k.wake_at > now()
        JOIN webhook w ON w.id = asked.id FOR KEY SHARE OF w SKIP LOCKED),
      ${lazily}, horizon AS (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin FROM lazily),
      due AS MATERIALIZED (
        SELECT next.id, next.settled, l.id AS webhook_id FROM lane l, horizon h, LATERAL (
          (SELECT d.id, d.xid, d.seq, d.xid < h.xmin OR d.created_at < now() - ${settleSeconds}::int * interval '1 s' AS settled
           FROM delivery d WHERE NOT l.only_requested AND d.webhook_id = l.id AND d.state = 'PENDING' AND d.attempts = 0
           ORDER BY d.xid, d.seq LIMIT l.free)
          UNION ALL
          (SELECT d.id, d.xid, d.seq, true FROM delivery d
           WHERE NOT l.only_requested AND d.webhook_id = l.id AND d.state = 'PENDING' AND d.attempts > 0
             AND d.next_attempt_at <= now() ORDER BY d.next_attempt_at LIMIT l.free)
          UNION ALL
          (SELECT d.id, d.xid, d.seq, true FROM delivery d
           WHERE l.only_requested AND d.webhook_id = l.id AND d.state = 'PENDING' AND d.requested
             AND d.next_attempt_at <= now() ORDER BY d.id LIMIT l.free)
          ORDER BY xid, seq LIMIT l.free) next),
      claimed AS (
        UPDATE delivery d SET attempts = d.attempts + 1, attempted_at = now(), next_attempt_at = NULL
        FROM due WHERE d.id = due.id AND due.settled AND d.state = 'PENDING' RETURNING d.*),
      waiting AS (SELECT array_agg(DISTINCT webhook_id) AS unsettled FROM due WHERE NOT settled)
      SELECT waiting.unsettled, c.id, c.webhook_id AS "webhookId", c.attempts AS attempt, c.created_at AS "createdAt",
        l.url, l.secret, l.old_secret AS "oldSecret", l.failures, c.event_id AS "eventId", e.type,
        e.created_at AS "eventCreatedAt", e.actor, e.subject, e.data::text AS data
      FROM waiting LEFT JOIN claimed c ON true LEFT JOIN lane l ON l.id = c.webhook_id LEFT JOIN event e ON e.id = c.event_id
      ORDER BY c.xid, c.seq`,
  )
  return { claimed: found.filter((row) => row.id !== null).map(readClaimed), unsettled: found[0]?.unsettled ?? [] }
}

function readClaimed(row: ClaimedRow): Claimed {
  const { type, actor, subject, data } = row
  return {
    id: row.id,
    webhookId: row.webhookId,
    attempt: row.attempt,
    createdAt: row.createdAt,
    url: row.url,
    secrets: row.oldSecret === null ? [row.secret] : [row.secret, row.oldSecret],
    failures: row.failures,
    eventId: row.eventId,
    event: type === null ? null : { type, createdAt: row.eventCreatedAt, actor, subject, data },
  }
}
