// The sending of webhooks in SQL. A row of webhook_lane is how the sending of one webhook stands: which worker has the
// lease, when a worker has to look next, and how often the receiver failed in a row.
import { leaseEnd } from '../../platform/database/lease.ts'
import {
  int4,
  int4Array,
  optional,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../platform/database/statement.ts'
import { horizon } from '../events/index.ts'

// A receiver that failed this often in a row is only probed, one delivery at a time, until it succeeds.
export const circuitFailures = 5
// Events of one webhook are sent in the order of (xid, seq), which is final once no older transaction runs. Ours end
// after 15 s; one that takes longer was begun by hand in a terminal, and is not waited for.
const settleSeconds = 20
/**
 * Commits without waiting for the disk, which the changes of users wait for. Part of statements whose loss in a crash
 * of the database would only mean that something is sent again; receivers have to expect that anyway.
 */
export const asyncCommit = `async_commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS setting)`

const takeIn = { worker: text(), leaseMs: int4() }
const taken = { webhookId: text(), accountId: text() }

/** Leases the webhooks of `query`, which locks them and has the columns id and account_id. */
function take(p: { [K in keyof typeof takeIn]: string }, query: string): string {
  return `
    WITH source AS MATERIALIZED (${query}),
    taken AS (
      INSERT INTO webhook_lane AS s (webhook_id, leased_by, wake_at)
      SELECT id, ${p.worker}, ${leaseEnd(p.leaseMs)} FROM source ORDER BY id
      ON CONFLICT (webhook_id) DO UPDATE SET leased_by = excluded.leased_by, wake_at = excluded.wake_at
      WHERE s.leased_by IS NULL OR s.wake_at <= now() RETURNING webhook_id)
    SELECT t.webhook_id AS "webhookId", source.account_id AS "accountId"
    FROM taken t JOIN source ON source.id = t.webhook_id`
}

/**
 * The webhooks of `ids`, a query, that have something to send, that no worker holds, and that are not paused. While an
 * account is suspended, its deliveries wait, except those that were asked for and the operator's own notices.
 */
function ready(ids: string): string {
  return `SELECT w.id, w.account_id FROM (${ids}) candidate
    JOIN webhook w ON w.id = candidate.id JOIN account a ON a.id = w.account_id
      LEFT JOIN webhook_lane s ON s.webhook_id = w.id
    WHERE (s.leased_by IS NULL OR s.wake_at <= now())
      AND ((w.active AND a.suspended_at IS NULL AND (s.paused_until IS NULL OR s.paused_until <= now())
            AND EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id AND d.state = 'PENDING' AND d.attempts = 0))
        OR EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id AND d.state = 'PENDING' AND d.requested
                     AND (d.attempts = 0 OR d.next_attempt_at <= now())))
    ORDER BY w.id FOR KEY SHARE OF w SKIP LOCKED`
}

export const takePendingOfAccounts = statement('webhooks.take_pending_of_accounts', {
  reason: 'lease',
  in: { ...takeIn, accountIds: textArray() },
  out: taken,
  sql: (p) => take(p, ready(`SELECT id FROM webhook WHERE account_id = ANY(${p.accountIds})`)),
})

/** Steps from one webhook to the next in the index, because a dead one may have a hundred thousand rows there. */
export const takeAllPending = statement('webhooks.take_all_pending', {
  reason: 'lease',
  in: takeIn,
  out: taken,
  sql: (p) =>
    take(
      p,
      ready(`
    (WITH RECURSIVE step AS (
      (SELECT webhook_id AS id FROM delivery WHERE state = 'PENDING' AND attempts = 0 ORDER BY webhook_id LIMIT 1)
      UNION ALL
      SELECT (SELECT d.webhook_id FROM delivery d
              WHERE d.state = 'PENDING' AND d.attempts = 0 AND d.webhook_id > step.id
              ORDER BY d.webhook_id LIMIT 1) FROM step WHERE step.id IS NOT NULL)
    SELECT id FROM step WHERE id IS NOT NULL
    UNION SELECT webhook_id FROM delivery WHERE state = 'PENDING' AND requested)`),
    ),
})

export const takeDueWebhooks = statement('webhooks.take_due', {
  reason: 'lease',
  in: takeIn,
  out: taken,
  sql: (p) =>
    take(
      p,
      `SELECT w.id, w.account_id FROM webhook_lane s JOIN webhook w ON w.id = s.webhook_id
    WHERE s.wake_at <= now() ORDER BY w.id LIMIT 1000 FOR KEY SHARE OF w SKIP LOCKED`,
    ),
})

/** Records the attempts that a dead worker had begun as lost; they are due again at once. */
export const recordLostAttempts = statement('webhooks.record_lost', {
  reason: 'lease',
  in: { webhookIds: textArray(), error: text() },
  out: { id: text() },
  sql: (p) => `
    WITH lost AS (
      UPDATE delivery SET next_attempt_at = now(), error = ${p.error}
      WHERE webhook_id = ANY(${p.webhookIds}) AND state = 'PENDING' AND attempts > 0 AND next_attempt_at IS NULL
      RETURNING id, attempts, attempted_at)
    INSERT INTO delivery_attempt (delivery_id, attempt, started_at, error)
    SELECT id, attempts, attempted_at, ${p.error} FROM lost ON CONFLICT DO NOTHING RETURNING delivery_id AS id`,
})

export const renewWebhookLeases = statement('webhooks.renew', {
  reason: 'lease',
  in: { ...takeIn, webhookIds: textArray() },
  out: { id: text() },
  sql: (p) => `
    UPDATE webhook_lane SET wake_at = ${leaseEnd(p.leaseMs)}
    WHERE webhook_id = ANY(${p.webhookIds}) AND leased_by = ${p.worker} RETURNING webhook_id AS id`,
})

/** Ends the lease, and sets when a worker has to look at the webhook again. */
export const releaseWebhookLeases = statement('webhooks.release', {
  reason: 'lease',
  in: { worker: text(), webhookIds: textArray() },
  out: { id: text() },
  sql: (p) => `
    UPDATE webhook_lane s SET leased_by = NULL, wake_at = LEAST(
      CASE WHEN w.active AND a.suspended_at IS NULL AND COALESCE(first.at, retry.at) IS NOT NULL
        THEN GREATEST(LEAST(first.at, retry.at), s.paused_until) END,
      requested.at,
      -- Begun, and cut off by a worker that stops.
      CASE WHEN EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING' AND attempts > 0
                          AND next_attempt_at IS NULL) THEN now() END)
    FROM webhook w JOIN account a ON a.id = w.account_id,
      LATERAL (SELECT (SELECT created_at FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING'
                         AND attempts = 0 ORDER BY xid, seq LIMIT 1) AS at) first,
      LATERAL (SELECT min(next_attempt_at) AS at FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING'
                 AND attempts > 0) retry,
      LATERAL (SELECT min(next_attempt_at) AS at FROM delivery d WHERE d.webhook_id = w.id AND state = 'PENDING'
                 AND requested) requested
    WHERE s.webhook_id = ANY(${p.webhookIds}) AND w.id = s.webhook_id AND s.leased_by = ${p.worker}
    RETURNING s.webhook_id AS id`,
})

/**
 * Counts the next attempt of deliveries that are due and gives what sending them takes. In every row `unsettled` tells
 * which webhooks have some whose order is not final; if nothing was claimed, there is one row with nothing else in it.
 */
export const claimDueDeliveries = statement('webhooks.claim', {
  reason: 'lease',
  in: { worker: text(), webhookIds: textArray(), free: int4Array(), busy: int4Array() },
  out: {
    unsettled: optional(textArray()),
    id: optional(text()),
    webhookId: text(),
    attempt: int4(),
    createdAt: timestamptz(),
    url: text(),
    secret: text(),
    oldSecret: optional(text()),
    failures: int4(),
    eventId: text(),
    type: optional(text()),
    eventCreatedAt: timestamptz(),
    actor: text(),
    subject: text(),
    data: text(),
    trace: optional(text()),
  },
  sql: (p) => `
    WITH held AS MATERIALIZED (
      SELECT w.id, w.url, encode(w.secret, 'base64') AS secret, s.failures,
        CASE WHEN w.old_secret_until > now() THEN encode(w.old_secret, 'base64') END AS old_secret,
        NOT w.active OR a.suspended_at IS NOT NULL OR COALESCE(s.paused_until > now(), false) AS only_requested,
        CASE WHEN s.failures >= ${circuitFailures} AND w.active AND (s.paused_until IS NULL OR s.paused_until <= now())
          THEN GREATEST(1 - asked.busy, 0) ELSE asked.free END AS free
      FROM unnest(${p.webhookIds}, ${p.free}, ${p.busy}) AS asked(id, free, busy)
      JOIN webhook_lane s ON s.webhook_id = asked.id AND s.leased_by = ${p.worker} AND s.wake_at > now()
      JOIN webhook w ON w.id = asked.id JOIN account a ON a.id = w.account_id FOR KEY SHARE OF w SKIP LOCKED),
    ${asyncCommit}, horizon AS MATERIALIZED (SELECT ${horizon} AS xid FROM async_commit),
    due AS MATERIALIZED (
      SELECT next.id, next.settled, held.id AS webhook_id FROM held, horizon h, LATERAL (
        (SELECT d.id, d.xid, d.seq,
           d.xid < h.xid OR d.created_at < now() - ${settleSeconds} * interval '1 s' AS settled
         FROM delivery d
         WHERE NOT held.only_requested AND d.webhook_id = held.id AND d.state = 'PENDING' AND d.attempts = 0
         ORDER BY d.xid, d.seq LIMIT held.free)
        UNION ALL
        (SELECT d.id, d.xid, d.seq, true FROM delivery d
         WHERE NOT held.only_requested AND d.webhook_id = held.id AND d.state = 'PENDING' AND d.attempts > 0
           AND d.next_attempt_at <= now() ORDER BY d.next_attempt_at LIMIT held.free)
        UNION ALL
        (SELECT d.id, d.xid, d.seq, true FROM delivery d
         WHERE held.only_requested AND d.webhook_id = held.id AND d.state = 'PENDING' AND d.requested
           AND d.next_attempt_at <= now() ORDER BY d.id LIMIT held.free)
        ORDER BY xid, seq LIMIT held.free) next),
    claimed AS (
      UPDATE delivery d SET attempts = d.attempts + 1, attempted_at = now(), next_attempt_at = NULL
      FROM due WHERE d.id = due.id AND due.settled AND d.state = 'PENDING' RETURNING d.*),
    waiting AS (SELECT array_agg(DISTINCT webhook_id) AS unsettled FROM due WHERE NOT settled)
    SELECT waiting.unsettled, c.id, c.webhook_id AS "webhookId", c.attempts AS attempt, c.created_at AS "createdAt",
      held.url, held.secret, held.old_secret AS "oldSecret", held.failures, c.event_id AS "eventId", e.type,
      e.created_at AS "eventCreatedAt", e.actor, e.subject, e.data::text AS data, e.trace
    FROM waiting LEFT JOIN claimed c ON true LEFT JOIN held ON held.id = c.webhook_id
      LEFT JOIN event e ON e.id = c.event_id
    ORDER BY c.xid, c.seq`,
})
