// The `webhooks` of openapi.yaml: what Berth sends to webhook URLs, from the event schemas.
import { eventGroups } from '../../../schemas/events.ts'

const text = (name: string, description: string, example: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
})

/** The headers of a delivery, as components. */
export const parameters = {
  WebhookId: text(
    'webhook-id',
    'Id of the event: the same for every attempt and delivery',
    'evt_01jcqkb2y70jq4w8s5f2k0nz',
  ),
  WebhookTimestamp: text('webhook-timestamp', 'When the attempt was made, in seconds since 1970', '1794650000'),
  WebhookSignature: text(
    'webhook-signature',
    'HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` by the secret of the webhook, in base64 after `v1,`; ' +
      'while a secret is being rotated two of them, with a blank between (Standard Webhooks)',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
  BerthDelivery: text(
    'berth-delivery',
    'Id of the delivery in `GET /webhooks/{id}/deliveries`',
    'dlv_01jcqkb2y80jr6m3d9h1v7qe',
  ),
}

type Example = { id?: string; name?: string; domain?: string }
type Schemas = Record<string, { examples?: unknown[] }>

/** Gives each kind of event an example that uses its resource's example. */
export function giveExamples(schemas: Schemas): void {
  for (const { name, data, types } of eventGroups) {
    const exampleOf = (schema: string) => schemas[schema]?.examples?.[0] as Example
    const example = exampleOf(data)
    // A resource without a name of its own is described by its project.
    const subject = example.id ?? example.name ?? example.domain ?? exampleOf('Project').id
    const common = { id: 'evt_01jcqkb2y70jq4w8s5f2k0nz', type: types[0], createdAt: '2026-11-14T09:51:00.000Z' }
    schemas[name]!.examples = [{ ...common, actor: 'system', subject, data: example }]
  }
}

/** One entry per kind of event: what is posted, and what a response means. */
export function webhooks(): Record<string, object> {
  const sent = Object.keys(parameters).map((name) => ({ $ref: `#/components/parameters/${name}` }))
  const entries = eventGroups.map(({ name, data, types }) => {
    const post = {
      operationId: `receive${name}`,
      tags: ['Webhooks'],
      summary: `${data} events`,
      description:
        `Sent to every active webhook that subscribes to it: ${types.map((type) => `\`${type}\``).join(', ')}. ` +
        'The body is the event as `GET /events` shows it.',
      security: [],
      parameters: sent,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
      },
      responses: {
        '2XX': { description: 'Taken; must come within 15 s' },
        '410': { description: 'Not wanted any more: the webhook is turned off' },
        default: { description: 'Refused, redirects included: sent again later, up to nine times in about three days' },
      },
    }
    return [name.replace(/Event$/, '').replace(/^./, (letter) => letter.toLowerCase()), { post }]
  })
  return Object.fromEntries(entries)
}
