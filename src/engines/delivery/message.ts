// The request for an event: its body as the API shows the event, signed according to Standard Webhooks.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Vault } from '../../platform/secrets.ts'
import type { Claimed } from '../../services/webhooks/sending.ts'

export type Message = { body: string; headers: Record<string, string | number> }

const secretPrefix = 'whsec_'

export type Signer = (secrets: readonly string[], id: string, timestamp: number, body: string) => string

/** Decrypts each secret once, and signs with all given ones: two during a rotation. */
export function createSigner(vault: Vault): Signer {
  // As key objects, because Node takes 25 µs per signature to make one from bytes.
  const keys = new LRUCache<string, KeyObject>({ max: 10_000 })
  function keyOf(sealed: string): KeyObject {
    const known = keys.get(sealed)
    if (known) return known
    const secret = vault.open(Buffer.from(sealed, 'base64')).toString()
    const key = createSecretKey(secret.slice(secretPrefix.length), 'base64')
    keys.set(sealed, key)
    return key
  }
  return (secrets, id, timestamp, body) => {
    const signed = `${id}.${timestamp}.${body}`
    return secrets
      .map((sealed) => `v1,${createHmac('sha256', keyOf(sealed)).update(signed).digest('base64')}`)
      .join(' ')
  }
}

export function writeMessage(delivery: Claimed, sign: Signer, now: Date): Message | null {
  const { event, eventId } = delivery
  if (!event) return null
  // Built as text: the data comes as JSON text from the database and need not be parsed.
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
      'webhook-signature': sign(delivery.secrets, eventId, timestamp, body),
      // Not part of the standard: identifies the delivery in our log.
      'berth-delivery': delivery.id,
    },
  }
}
