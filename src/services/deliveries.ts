// Deliveries: one event on its way to one webhook. Made here with their job; sent by the delivery engine.
import type { Static } from '@sinclair/typebox'
import type { Actor } from '../actor.ts'
import { type Db, rows, type Sql, sql } from '../db.ts'
import { Fault } from '../errors.ts'
import { newId } from '../ids.ts'
import { jobSql } from '../jobs/queue.ts'
import { type PageOf, type PageRequest, pageOf } from '../page.ts'
import type { Delivery as DeliverySchema } from '../schemas/webhooks.ts'
import { eventOf, eventSql } from './events.ts'
import { findWebhook, viewWebhook } from './webhooks.ts'

export type DeliveryView = Static<typeof DeliverySchema>

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

/** The parts of a statement that make a delivery, due now, and its job; `source` has columns webhook, event and type. */
function deliverySql(id: string, source: Sql): Sql {
  const now = new Date()
  return sql`made AS (
      INSERT INTO delivery AS d (id, webhook_id, event_id, event_type, state, created_at, next_attempt_at)
      SELECT ${id}, webhook, event, type, 'PENDING', ${now}::timestamptz, ${now}::timestamptz FROM ${source}
      RETURNING ${columns}),
    queued AS (${jobSql('deliver', id, { deliveryId: id }, sql`made`)})`
}

/** Sends a `webhook.ping` to this webhook alone, whatever it subscribed to and also while it is inactive. */
export async function pingWebhook(db: Db, actor: Actor, webhookId: string): Promise<DeliveryView> {
  const webhook = await findWebhook(db, actor, webhookId)
  const ping = eventOf(actor, 'webhook.ping', webhook.id, null, viewWebhook(webhook))
  // Locked against deletion by reading it here, so a missing row means that it went meanwhile.
  const [row] = await rows<DeliveryRow>(
    db,
    sql`WITH target AS (SELECT id FROM webhook WHERE id = ${webhook.id} FOR KEY SHARE),
        logged AS (${eventSql(ping, sql`target`)} RETURNING id, type),
        due AS (SELECT target.id AS webhook, logged.id AS event, logged.type FROM target, logged),
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
    sql`WITH due AS (
          SELECT w.id AS webhook, f.event_id AS event, f.event_type AS type
          FROM delivery f JOIN webhook w ON w.id = f.webhook_id
          WHERE f.id = ${deliveryId} AND w.id = ${webhookId} AND w.account_id = ${actor.accountId}
          FOR KEY SHARE OF w),
        ${deliverySql(newId('dlv'), sql`due`)}
        SELECT * FROM made`,
  )
  if (!row) throw new Fault('not_found', `The webhook has no delivery ${deliveryId}.`)
  return viewDelivery(row)
}
