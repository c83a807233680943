// Webhooks: where events are sent, and what became of each delivery.
import { Type } from '@sinclair/typebox'
import { Body, Choice, ListOf, ListQuery, Named, Nullable, OptionalBody, Timestamp } from './common.ts'

export const deliveryStates = ['PENDING', 'DELIVERED', 'FAILED'] as const

const webhookExample = {
  id: 'whk_01jcqka7f30j5t8p4x2n6cwd',
  url: 'https://hooks.example.com/berth',
  events: ['deployment.*', 'domain.verified'],
  active: true,
  createdAt: '2026-11-14T09:50:00.000Z',
  updatedAt: '2026-11-14T09:50:00.000Z',
}

export const Webhook = Type.Object(
  {
    id: Type.String({ description: 'whk_…' }),
    url: Type.String({ description: 'Where events are posted to' }),
    events: Type.Array(Type.String(), { description: 'Event types, prefixes such as deployment.*, or * for all' }),
    active: Type.Boolean({ description: 'Whether events are sent' }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Webhook', description: 'An address to which events are sent', examples: [webhookExample] },
)

export const WebhookWithSecret = Type.Object(
  {
    ...Webhook.properties,
    secret: Type.String({ description: 'whsec_…, signs every delivery; shown here and never again' }),
  },
  {
    $id: 'WebhookWithSecret',
    description: 'A webhook and its new signing secret',
    examples: [{ ...webhookExample, secret: 'whsec_ZXhhbXBsZSBleGFtcGxlIGV4YW1wbGUgZXhhbXBsZSE=' }],
  },
)

const Url = Type.String({
  minLength: 1,
  maxLength: 2000,
  // URL parsers silently drop or rewrite these, but the URL that is checked must be the one that is called.
  pattern: '^[^\\s\\u0000-\\u001f\\u007f\\\\]+$',
  description: 'must be an absolute https:// URL without spaces, credentials or a fragment',
})

const Events = Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
  minItems: 1,
  maxItems: 50,
  uniqueItems: true,
  description: 'Event types, prefixes such as deployment.*, or * for all',
})

export const CreateWebhook = Body(
  { url: Url, events: Events, active: Type.Optional(Type.Boolean({ default: true })) },
  {
    $id: 'CreateWebhook',
    examples: [{ url: 'https://hooks.example.com/berth', events: ['deployment.*', 'domain.verified'] }],
  },
)

export const ChangeWebhook = Body(
  { url: Type.Optional(Url), events: Type.Optional(Events), active: Type.Optional(Type.Boolean()) },
  { $id: 'ChangeWebhook', minProperties: 1, examples: [{ active: false }] },
)

const rotation = Body(
  {
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 604_800,
        default: 86_400,
        description: 'How long deliveries are also signed with the old secret',
      }),
    ),
  },
  { $id: 'RotateWebhookSecret', examples: [{ overlapSeconds: 3600 }] },
)

export const RotateSecret = OptionalBody(rotation)

export const WebhookParams = Type.Object({ id: Type.String({ description: 'whk_…' }) })

export const WebhookList = ListOf('webhooks', Webhook)

export const WebhookQuery = ListQuery({})

const deliveryExample = {
  id: 'dlv_01jcqkb2y80jr6m3d9h1v7qe',
  eventId: 'evt_01jcqkb2y70jq4w8s5f2k0nz',
  eventType: 'deployment.ready',
  state: 'DELIVERED',
  attempts: 1,
  responseStatus: 204,
  error: null,
  createdAt: '2026-11-14T09:51:00.000Z',
  attemptedAt: '2026-11-14T09:51:00.120Z',
  nextAttemptAt: null,
}

export const Delivery = Type.Object(
  {
    id: Type.String({ description: 'dlv_…' }),
    eventId: Type.String({ description: 'evt_…, sent as webhook-id: the same for every delivery of the event' }),
    eventType: Type.String(),
    state: Choice(deliveryStates),
    attempts: Type.Integer({ description: 'Attempts begun so far' }),
    responseStatus: Nullable(Type.Integer({ description: 'HTTP status of the last attempt' })),
    error: Nullable(Type.String({ description: 'Why the last attempt failed' })),
    createdAt: Timestamp,
    attemptedAt: Nullable(Timestamp),
    nextAttemptAt: Nullable(Timestamp),
  },
  {
    $id: 'Delivery',
    description: 'One event on its way to one webhook',
    examples: [deliveryExample],
  },
)

export const DeliveryAttempt = Type.Object(
  {
    attempt: Type.Integer({ description: '1 for the first' }),
    startedAt: Timestamp,
    durationMs: Nullable(Type.Integer({ description: 'Null when the worker was lost before the outcome was known' })),
    responseStatus: Nullable(Type.Integer({ description: 'HTTP status, if an answer came' })),
    error: Nullable(Type.String({ description: 'Why the attempt failed' })),
    responseBody: Nullable(Type.String({ description: 'The first 4 KB of the answer' })),
  },
  { $id: 'DeliveryAttempt', description: 'One attempt to deliver' },
)

export const DeliveryWithAttempts = Type.Object(
  {
    ...Delivery.properties,
    attemptLog: Type.Array(Named(DeliveryAttempt), { description: 'What came of each attempt, the first one first' }),
  },
  {
    $id: 'DeliveryWithAttempts',
    description: 'A delivery and every attempt at it',
    examples: [
      {
        ...deliveryExample,
        attempts: 2,
        attemptedAt: '2026-11-14T09:51:05.140Z',
        attemptLog: [
          {
            attempt: 1,
            startedAt: '2026-11-14T09:51:00.120Z',
            durationMs: 41,
            responseStatus: 503,
            error: 'the receiver answered 503',
            responseBody: 'restarting',
          },
          {
            attempt: 2,
            startedAt: '2026-11-14T09:51:05.140Z',
            durationMs: 18,
            responseStatus: 204,
            error: null,
            responseBody: '',
          },
        ],
      },
    ],
  },
)

export const DeliveryParams = Type.Object({
  id: Type.String({ description: 'whk_…' }),
  delivery: Type.String({ description: 'dlv_…' }),
})

export const DeliveryList = ListOf('deliveries', Delivery)

export const DeliveryQuery = ListQuery({})
