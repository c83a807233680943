// Deliveries: one event on its way to one webhook. The trigger `event_deliver` on the table event makes one for every
// active webhook that subscribes to a new event; here are those asked for by hand, and the log of all of them.
import type { Static } from '@sinclair/typebox'
import type { Delivery } from '../../generated/client.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { byId, type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { viewOf } from '../../platform/database/views.ts'
import { Fault } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import {
  DeliveryAttempt,
  Delivery as DeliverySchema,
  type DeliveryWithAttempts as WithAttemptsSchema,
} from '../../schemas/webhooks.ts'
import { eventOf } from '../events/index.ts'
import type { Actor } from '../identity/index.ts'
import { wakeSending } from './sending.ts'
import { lockWebhook, nextEventSeq } from './statements.ts'
import { findWebhook, viewWebhook } from './webhooks.ts'

export type DeliveryView = Static<typeof DeliverySchema>
export type DeliveryWithAttempts = Static<typeof WithAttemptsSchema>

const viewOfDelivery = viewOf(DeliverySchema)

export const viewDelivery = (row: Delivery): DeliveryView => viewOfDelivery(row)

export async function listDeliveries(
  db: Db,
  actor: Actor,
  webhookId: string,
  page: PageRequest,
): Promise<PageOf<DeliveryView>> {
  const webhook = await findWebhook(db, actor, webhookId)
  const { where, ...rest } = byId(page, 'dlv')
  const found = await db.delivery.findMany({ where: { ...where, webhookId: webhook.id }, ...rest })
  return pageOf(found, page, viewDelivery, (row) => [row.id])
}

const viewAttempt = viewOf(DeliveryAttempt)

/** A delivery with every attempt that was made, the first one first. */
export async function findDelivery(
  db: Db,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<DeliveryWithAttempts> {
  const webhook = await findWebhook(db, actor, webhookId)
  // The attempts are read first: one that is counted but not on record yet is under way, never the other way round.
  const log = await db.deliveryAttempt.findMany({ where: { deliveryId }, orderBy: { attempt: 'asc' } })
  const row = await db.delivery.findFirst({ where: { id: deliveryId, webhookId: webhook.id } })
  if (!row) throw new Fault('not_found', `The webhook has no delivery ${deliveryId}.`)
  return { ...viewDelivery(row), attemptLog: log.map((attempt) => viewAttempt(attempt)) }
}

type RequestedEvent = Pick<Delivery, 'webhookId' | 'eventId' | 'eventType' | 'seq'>

/** Makes a delivery asked for by hand, due now; `db` is the handle of a transaction that holds the webhook. */
async function requestDelivery(db: Db, event: RequestedEvent): Promise<Delivery> {
  const now = new Date()
  const made = { ...event, id: newId('dlv'), state: 'PENDING', createdAt: now, nextAttemptAt: now, requested: true }
  const row = await db.delivery.create({ data: made })
  await wakeSending(db, event.webhookId)
  return row
}

/** Sends a `webhook.ping` to this webhook alone, whatever it subscribed to and also while it is inactive. */
export async function pingWebhook(db: Db, actor: Actor, webhookId: string): Promise<DeliveryView> {
  return inTransaction(db, async (db) => {
    await lockWebhook.deliver(db, { id: webhookId, accountId: actor.accountId })
    const webhook = viewWebhook(await findWebhook(db, actor, webhookId))
    const event = eventOf(actor, 'webhook.ping', { subject: webhookId, projectId: null, data: webhook })
    const ping = { ...event, id: newId('evt'), data: webhook, createdAt: new Date() }
    const { id: eventId, type: eventType, seq } = await db.event.create({ data: ping })
    return viewDelivery(await requestDelivery(db, { webhookId, eventId, eventType, seq }))
  })
}

/** Sends the event of a delivery again, as a new delivery; what became of the first one stays on record. */
export async function redeliver(db: Db, actor: Actor, webhookId: string, deliveryId: string): Promise<DeliveryView> {
  const { accountId } = actor
  return inTransaction(db, async (db) => {
    await lockWebhook.deliver(db, { id: webhookId, accountId })
    const first = await db.delivery.findFirst({ where: { id: deliveryId, webhookId, webhook: { accountId } } })
    if (!first) throw new Fault('not_found', `The webhook has no delivery ${deliveryId}.`)
    const { eventId, eventType } = first
    const [next] = await nextEventSeq(db, {})
    return viewDelivery(await requestDelivery(db, { webhookId, eventId, eventType, seq: BigInt(next!.seq) }))
  })
}
