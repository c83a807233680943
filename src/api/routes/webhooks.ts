// /webhooks: list, create, read, change, delete, ping, rotate the secret.
import { Named } from '../../schemas/common.ts'
import {
  ChangeWebhook,
  CreateWebhook,
  Delivery,
  RotateSecret,
  Webhook,
  WebhookList,
  WebhookParams,
  WebhookQuery,
  WebhookWithSecret,
} from '../../schemas/webhooks.ts'
import {
  changeWebhook,
  checkWebhook,
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  pingWebhook,
  rotateSecret,
  viewWebhook,
} from '../../services/webhooks/index.ts'
import { precondition, sendSingle } from '../http/responses/etag.ts'
import { readPage, sendPage } from '../http/responses/page.ts'
import { NoContent, type RoutePlugin, type SoundBody } from './route.ts'

const reads = { scope: 'webhooks:read', accountWide: true } as const
const writes = { scope: 'webhooks:write', accountWide: true } as const

export const webhookRoutes: RoutePlugin = async (app, { deps, once }) => {
  const { db, config, vault } = deps
  const meaning = (_request: unknown, body: SoundBody<typeof ChangeWebhook>) => checkWebhook(config, body)

  app.get(
    '/webhooks',
    {
      config: reads,
      schema: {
        operationId: 'listWebhooks',
        tags: ['Webhooks'],
        summary: 'List webhooks',
        description: 'The webhooks of the account, newest first, without their secrets.',
        querystring: WebhookQuery,
        response: { 200: Named(WebhookList) },
      },
    },
    async (request, reply) => {
      const page = readPage(request.query, 'webhooks')
      return sendPage(request, reply, page, { webhooks: await listWebhooks(db, request.actor, page) })
    },
  )

  app.post(
    '/webhooks',
    {
      config: { ...writes, meaning },
      schema: {
        operationId: 'createWebhook',
        tags: ['Webhooks'],
        summary: 'Create a webhook',
        description: 'The answer holds the signing secret, which is never shown again. An account has 50 at most.',
        body: CreateWebhook,
        response: { 201: Named(WebhookWithSecret) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 201,
        work: (db) => createWebhook(db, request.actor, request.body, { rules: config, vault }),
        location: (webhook) => `/webhooks/${webhook.id}`,
        shown: ({ secret: _secret, ...webhook }) => webhook,
      }),
  )

  app.get(
    '/webhooks/:id',
    {
      config: reads,
      schema: {
        operationId: 'getWebhook',
        tags: ['Webhooks'],
        summary: 'Read a webhook',
        description: 'Its address and the events it gets, without its secret.',
        params: WebhookParams,
        response: { 200: Named(Webhook) },
      },
    },
    async (request, reply) =>
      sendSingle(request, reply, viewWebhook(await findWebhook(db, request.actor, request.params.id))),
  )

  app.patch(
    '/webhooks/:id',
    {
      config: { ...writes, meaning },
      schema: {
        operationId: 'changeWebhook',
        tags: ['Webhooks'],
        summary: 'Change a webhook',
        description: 'Changes the address or the events, or turns it off and on; what is left out stays.',
        params: WebhookParams,
        body: ChangeWebhook,
        response: { 200: Named(Webhook) },
      },
    },
    async (request, reply) => {
      const { actor, params, body } = request
      const change = { input: body, rules: config, precondition: precondition(request) }
      return sendSingle(request, reply, await changeWebhook(db, actor, params.id, change))
    },
  )

  app.delete(
    '/webhooks/:id',
    {
      config: writes,
      schema: {
        operationId: 'deleteWebhook',
        tags: ['Webhooks'],
        summary: 'Delete a webhook',
        description: 'Takes its deliveries along; what was still to be sent is not.',
        params: WebhookParams,
        response: { 204: NoContent },
      },
    },
    async (request, reply) => {
      await deleteWebhook(db, request.actor, request.params.id, precondition(request))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/webhooks/:id/ping',
    {
      config: writes,
      schema: {
        operationId: 'pingWebhook',
        tags: ['Webhooks'],
        summary: 'Ping a webhook',
        description: 'Sends a `webhook.ping` event to this webhook alone, also while it is inactive.',
        params: WebhookParams,
        response: { 202: Named(Delivery) },
      },
    },
    (request, reply) =>
      once(request, reply, { status: 202, work: (db) => pingWebhook(db, request.actor, request.params.id) }),
  )

  app.post(
    '/webhooks/:id/rotate-secret',
    {
      config: writes,
      schema: {
        operationId: 'rotateWebhookSecret',
        tags: ['Webhooks'],
        summary: 'Rotate the signing secret',
        description:
          'The answer holds the new secret, which is never shown again. For `overlapSeconds`, a day if left out, ' +
          'deliveries carry a signature by the old secret too.',
        params: WebhookParams,
        body: RotateSecret,
        response: { 200: Named(WebhookWithSecret) },
      },
    },
    (request, reply) =>
      once(request, reply, {
        status: 200,
        work: (db) =>
          rotateSecret(db, request.actor, request.params.id, { vault, overlapSeconds: request.body?.overlapSeconds }),
      }),
  )
}
