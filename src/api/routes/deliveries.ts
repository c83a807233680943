// /webhooks/{id}/deliveries: list, read, redeliver.
import { Named } from '../../schemas/common.ts'
import {
  Delivery,
  DeliveryList,
  DeliveryParams,
  DeliveryQuery,
  DeliveryWithAttempts,
  WebhookParams,
} from '../../schemas/webhooks.ts'
import { findDelivery, listDeliveries, redeliver } from '../../services/webhooks/index.ts'
import { sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import type { RoutePlugin } from './route.ts'

const reads = { scope: 'webhooks:read', accountWide: true } as const

export const deliveryRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db } = deps

  app.get(
    '/webhooks/:id/deliveries',
    {
      config: reads,
      schema: {
        operationId: 'listDeliveries',
        tags: ['Webhooks'],
        summary: 'List deliveries',
        description: 'What was sent to the webhook, or is about to be, newest first.',
        params: WebhookParams,
        querystring: DeliveryQuery,
        response: { 200: Named(DeliveryList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'deliveries')
      const deliveries = await listDeliveries(db, request.actor, request.params.id, page)
      return sendPage(request, reply, page, { deliveries })
    },
  )

  app.get(
    '/webhooks/:id/deliveries/:delivery',
    {
      config: reads,
      schema: {
        operationId: 'getDelivery',
        tags: ['Webhooks'],
        summary: 'Read a delivery',
        description:
          'One delivery with every attempt: when, how long, what was answered or what went wrong. Kept for 30 days, or as long as the operator has set.',
        params: DeliveryParams,
        response: { 200: Named(DeliveryWithAttempts) },
      },
    },
    async (request, reply) => {
      const { id, delivery } = request.params
      return sendSingle(request, reply, await findDelivery(db, request.actor, id, delivery))
    },
  )

  app.post(
    '/webhooks/:id/deliveries/:delivery/redeliver',
    {
      config: { scope: 'webhooks:write', accountWide: true },
      schema: {
        operationId: 'redeliver',
        tags: ['Webhooks'],
        summary: 'Send an event again',
        description: 'Makes a new delivery of the same event, with the same `webhook-id`.',
        params: DeliveryParams,
        response: { 202: Named(Delivery) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 202,
        work: (db) => redeliver(db, request.actor, request.params.id, request.params.delivery),
      }),
  )
}
