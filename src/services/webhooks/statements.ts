// Webhooks and deliveries in SQL; leases of workers and what they claim are in sending-statements.ts.
import {
  boolean,
  int4,
  int8,
  json,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../platform/database/statement.ts'
import { asyncCommit, circuitFailures } from './sending-statements.ts'

function lock(name: string, strength: string) {
  return statement(`webhooks.lock_to_${name}`, {
    reason: 'row lock',
    in: { id: text(), accountId: text() },
    out: { id: text() },
    sql: (p) => `SELECT id FROM webhook WHERE id = ${p.id} AND account_id = ${p.accountId} ${strength}`,
  })
}

/**
 * Locks on a webhook until the transaction ends. Each new event locks the webhooks of its account against deletion: a
 * deletion waits for that lock, a change does not.
 */
export const lockWebhook = {
  change: lock('change', 'FOR NO KEY UPDATE'),
  delete: lock('delete', 'FOR UPDATE'),
  deliver: lock('deliver', 'FOR KEY SHARE'),
}

/** A place in the order of events, for a delivery of an old event. */
export const nextEventSeq = statement('webhooks.next_seq', {
  reason: 'sequence',
  in: {},
  out: { seq: int8() },
  sql: () => `SELECT nextval('event_seq_seq') AS seq`,
})

export type ResultRow = {
  id: string
  attempt: number
  started: Date
  duration: number
  status: number | null
  body: string | null
  /** Recorded with the attempt, also if it succeeded; `error` is recorded with the delivery. */
  note: string | null
  error: string | null
  state: string
  /** Milliseconds until the next attempt. */
  delay: number | null
}

export const recordAttempts = statement('webhooks.record', {
  reason: 'several writes in one statement',
  in: { results: json<ResultRow[]>(), webhookIds: textArray() },
  out: { id: text() },
  sql: (p) => `
    WITH ${asyncCommit}, result AS (
      SELECT r.* FROM async_commit, json_to_recordset(${p.results}) AS r(id text, attempt int, started timestamptz,
        duration int, status int, body text, note text, error text, state text, delay int)),
    -- Locked against deletion before their deliveries are, as deleting a webhook does it: no deadlock that way.
    hook AS MATERIALIZED (SELECT id FROM webhook WHERE id = ANY(${p.webhookIds}) ORDER BY id FOR KEY SHARE),
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
})

// Waits between probes. The first ones are short, for a receiver that restarts; a minute is the most that a recovery
// goes unnoticed, and costs nothing even with thousands of dead receivers.
const probeDelaysMs = [5_000, 10_000, 20_000, 40_000, 60_000]

export type FailureChange = {
  webhookId: string
  /** A success came, before the failures that are counted here. */
  reset: boolean
  failures: number
}

// After only failures for this long, the receiver counts as gone.
const goneAfter = `interval '5 days'`

export const updateFailures = statement('webhooks.count_failures', {
  reason: 'several writes in one statement',
  in: { changes: json<FailureChange[]>() },
  out: { webhookId: text(), lasting: boolean() },
  sql: (p) => `
    WITH change AS (
      SELECT s.webhook_id, c.reset,
        -- Those under way together fail together: beyond the fifth they count as one, or the first pause would be long.
        CASE WHEN c.failures = 0 THEN 0 ELSE LEAST(before.failures + c.failures,
          GREATEST(before.failures + 1, ${circuitFailures})) END AS failures
      FROM json_to_recordset(${p.changes}) AS c("webhookId" text, reset boolean, failures int)
      JOIN webhook_lane s ON s.webhook_id = c."webhookId",
        LATERAL (SELECT CASE WHEN c.reset THEN 0 ELSE s.failures END AS failures) before
      ORDER BY s.webhook_id FOR UPDATE OF s)
    UPDATE webhook_lane s SET failures = c.failures,
      failing_since = CASE WHEN c.failures = 0 THEN NULL WHEN c.reset THEN now()
        ELSE COALESCE(s.failing_since, now()) END,
      paused_until = CASE WHEN c.failures >= ${circuitFailures} THEN now() + interval '1 ms' *
        (ARRAY[${probeDelaysMs.join(', ')}])[LEAST(c.failures - ${circuitFailures} + 1, ${probeDelaysMs.length})] END
    FROM change c WHERE s.webhook_id = c.webhook_id
    RETURNING s.webhook_id AS "webhookId", COALESCE(s.failing_since < now() - ${goneAfter}, false) AS lasting`,
})

/** Those that are under way are never among them; `after` and `beforeId` are ids, which sort by time. */
export const deleteOldDeliveries = statement('webhooks.prune', {
  reason: 'SKIP LOCKED',
  in: { after: text(), beforeId: text(), before: timestamptz(), limit: int4() },
  out: { id: text() },
  sql: (p) => `
    WITH old AS MATERIALIZED (
      SELECT id FROM delivery
      WHERE id > ${p.after} AND id < ${p.beforeId} AND created_at < ${p.before} AND state <> 'PENDING'
      ORDER BY id LIMIT ${p.limit} FOR UPDATE SKIP LOCKED)
    DELETE FROM delivery d USING old WHERE d.id = old.id RETURNING d.id`,
})

/** Of each webhook, those that have ended and are older than its newest `most`; up to `limit` of each. */
export const deleteSurplusDeliveries = statement('webhooks.prune_surplus', {
  reason: 'lateral join',
  in: { webhookIds: textArray(), most: int4(), limit: int4() },
  out: { id: text() },
  sql: (p) => `
    WITH surplus AS MATERIALIZED (
      SELECT older.id FROM unnest(${p.webhookIds}) AS w(id), LATERAL (
        SELECT id, state FROM delivery WHERE webhook_id = w.id ORDER BY id DESC OFFSET ${p.most} LIMIT ${p.limit}) older
      WHERE older.state <> 'PENDING')
    DELETE FROM delivery d USING surplus WHERE d.id = surplus.id AND d.state <> 'PENDING' RETURNING d.id`,
})

/** Each kind up to 10,000. Prisma would sort the rows, and pass the conditions of partial indexes as parameters. */
export const countWaitingDeliveries = statement('webhooks.count_waiting', {
  reason: 'literal for a partial index',
  in: {},
  out: { count: int4() },
  sql: () => `
    SELECT count(*)::int AS count FROM (
      (SELECT 1 FROM delivery WHERE state = 'PENDING' AND attempts = 0 LIMIT 10000)
      UNION ALL (SELECT 1 FROM delivery WHERE state = 'PENDING' AND attempts > 0 LIMIT 10000)) waiting`,
})
