// Deliveries: one event on its way to one webhook. The database makes one for every event that a webhook subscribes to;
// here are those asked for by hand, and the log of all of them.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, rows, type Sql, sql } from '../db.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { Delivery as DeliverySchema, DeliveryWithAttempts as WithAttemptsSchema } from '../schemas/webhooks.ts'
import { eventOf, eventSql } from './events.ts'
import { findWebhook, viewWebhook } from './webhooks.ts'

export type DeliveryView = Static<typeof DeliverySchema>
export type DeliveryWithAttempts = Static<typeof WithAttemptsSchema>

type DeliveryRow = {
  id: string
  eventId: string
  eventType: string
  state: DeliveryView['state']
  attempts: number
  responseStatus: number | null
  error: string | null
  createdAt: Date
  attemptedAt: Date | null
  nextAttemptAt: Date | null
}

const columns = sql`d.id, d.event_id AS "eventId", d.event_type AS "eventType", d.state, d.attempts,
  d.response_status AS "responseStatus", d.error, d.created_at AS "createdAt", d.attempted_at AS "attemptedAt",
  d.next_attempt_at AS "nextAttemptAt"`

export function viewDelivery(row: DeliveryRow): DeliveryView {
  return {
    id: row.id,
    eventId: row.eventId,
    eventType: row.eventType,
    state: row.state,
    attempts: row.attempts,
    responseStatus: row.responseStatus,
    error: row.error,
    createdAt: row.createdAt.toISOString(),
    attemptedAt: row.attemptedAt?.toISOString() ?? null,
    nextAttemptAt: row.nextAttemptAt?.toISOString() ?? null,
  }
}

export async function listDeliveries(
  db: Db,
  actor: Actor,
  webhookId: string,
  page: PageRequest,
): Promise<PageOf<DeliveryView>> {
  const webhook = await findWebhook(db, actor, webhookId)
  const descending = page.order === 'desc'
  const after = !page.after ? sql`` : descending ? sql`AND d.id < ${page.after[0]}` : sql`AND d.id > ${page.after[0]}`
  const found = await rows<DeliveryRow>(
    db,
    sql`SELECT ${columns} FROM delivery d WHERE d.webhook_id = ${webhook.id} ${after}
        ORDER BY d.id ${descending ? sql`DESC` : sql``} LIMIT ${page.limit + 1}::int`,
  )
  return pageOf(found, page, viewDelivery, (row) => [row.id])
}

type AttemptRow = Omit<DeliveryWithAttempts['attemptLog'][number], 'startedAt'> & { startedAt: Date }

/** A delivery with every attempt that was made, the first one first. */
export async function findDelivery(
  db: Db,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<DeliveryWithAttempts> {
  const webhook = await findWebhook(db, actor, webhookId)
  // The attempts are read first: one that is counted but not on record yet is under way, never the other way round.
  const log = await rows<AttemptRow>(
    db,
    sql`SELECT attempt, started_at AS "startedAt", duration_ms AS "durationMs", response_status AS "responseStatus",
          error, response_body AS "responseBody"
        FROM delivery_attempt WHERE delivery_id = ${deliveryId} ORDER BY attempt`,
  )
  const [row] = await rows<DeliveryRow>(
    db,
    sql`SELECT ${columns} FROM delivery d WHERE d.id = ${deliveryId} AND d.webhook_id = ${webhook.id}`,
  )
  if (!row) throw new Fault('not_found', `The webhook has no delivery ${deliveryId}.`)
  const attemptLog = log.map((attempt) => ({ ...attempt, startedAt: attempt.startedAt.toISOString() }))
  return { ...viewDelivery(row), attemptLog }
}

/**
 * The parts of a statement that make a delivery asked for by hand, due now; `source` has columns webhook, event, type
 * and seq. Whoever sends is told by the lane's time, unless a worker holds the lane and looks by itself.
 */
function deliverySql(id: string, source: Sql): Sql {
  const now = new Date()
  return sql`made AS (
      INSERT INTO delivery AS d (id, webhook_id, event_id, event_type, state, created_at, next_attempt_at, seq, requested)
      SELECT ${id}, webhook, event, type, 'PENDING', ${now}::timestamptz, ${now}::timestamptz, seq, true FROM ${source}
      RETURNING ${columns}),
    told AS (
      INSERT INTO webhook_lane AS k (webhook_id, wake_at) SELECT webhook, now() FROM ${source}
      ON CONFLICT (webhook_id) DO UPDATE SET wake_at = excluded.wake_at WHERE k.leased_by IS NULL)`
}

/** Sends a `webhook.ping` to this webhook alone, whatever it subscribed to and also while it is inactive. */
export async function pingWebhook(db: Db, actor: Actor, webhookId: string): Promise<DeliveryView> {
  const webhook = await findWebhook(db, actor, webhookId)
  const ping = eventOf(actor, 'webhook.ping', webhook.id, null, viewWebhook(webhook))
  // Locked against deletion by reading it here, so a missing row means that it went meanwhile.
  const [row] = await rows<DeliveryRow>(
    db,
    sql`WITH target AS (SELECT id FROM webhook WHERE id = ${webhook.id} FOR KEY SHARE),
        logged AS (${eventSql(ping, sql`target`)} RETURNING id, type, seq),
        due AS (SELECT target.id AS webhook, logged.id AS event, logged.type, logged.seq FROM target, logged),
        ${deliverySql(newId('dlv'), sql`due`)}
        SELECT * FROM made`,
  )
  if (!row) throw new Fault('not_found', `There is no webhook ${webhookId}.`)
  return viewDelivery(row)
}

/** Sends the event of a delivery again, as a new delivery; what became of the first one stays on record. */
export async function redeliver(db: Db, actor: Actor, webhookId: string, deliveryId: string): Promise<DeliveryView> {
  const [row] = await rows<DeliveryRow>(
    db,
    sql`WITH target AS (
          SELECT w.id AS webhook, f.event_id AS event, f.event_type AS type
          FROM delivery f JOIN webhook w ON w.id = f.webhook_id
          WHERE f.id = ${deliveryId} AND w.id = ${webhookId} AND w.account_id = ${actor.accountId}
          FOR KEY SHARE OF w),
        due AS MATERIALIZED (SELECT target.*, nextval('event_seq_seq') AS seq FROM target),
        ${deliverySql(newId('dlv'), sql`due`)}
        SELECT * FROM made`,
  )
  if (!row) throw new Fault('not_found', `The webhook has no delivery ${deliveryId}.`)
  return viewDelivery(row)
}
