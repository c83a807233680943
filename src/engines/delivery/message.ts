// Builds the request for an event: the event as in the API, signed according to Standard Webhooks.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import type { Claimed } from '../../services/webhooks/index.ts'

export type Message = { body: string; headers: Record<string, string | number> }

const secretPrefix = 'whsec_'

export type Signer = (delivery: Pick<Claimed, 'webhookId' | 'secrets'>, text: string) => string

/** Decrypts each secret once, and signs with all of them: two during a rotation. */
export function createSigner(vault: Vault): Signer {
  // Key objects, because Node takes 25 µs per signature to create one from bytes.
  const keys = new LRUCache<string, KeyObject>({ max: 10_000 })
  function keyOf(webhookId: string, sealed: string): KeyObject {
    // Includes the webhook, so that a secret copied from another one isn't found.
    const name = `${webhookId} ${sealed}`
    const known = keys.get(name)
    if (known) return known
    const secret = vault.open(Buffer.from(sealed, 'base64'), placeOf.webhook(webhookId)).toString()
    const key = createSecretKey(secret.slice(secretPrefix.length), 'base64')
    keys.set(name, key)
    return key
  }
  return ({ webhookId, secrets }, text) =>
    secrets
      .map((sealed) => `v1,${createHmac('sha256', keyOf(webhookId, sealed)).update(text).digest('base64')}`)
      .join(' ')
}

export function writeMessage(delivery: Claimed, sign: Signer, now: Date): Message | null {
  const { event, eventId } = delivery
  if (!event) return null
  // Built as text, because the database returns the data as JSON text.
  const { type, actor, subject } = event
  const head = JSON.stringify({ id: eventId, type, createdAt: event.createdAt.toISOString(), actor, subject })
  const body = `${head.slice(0, -1)},"data":${event.data}}`
  const timestamp = Math.floor(now.getTime() / 1000)
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'Berth-Webhooks/1',
      'webhook-id': eventId,
      'webhook-timestamp': timestamp,
      'webhook-signature': sign(delivery, `${eventId}.${timestamp}.${body}`),
      // Not part of the standard. Identifies the delivery in our log.
      'berth-delivery': delivery.id,
    },
  }
}
