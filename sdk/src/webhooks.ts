// Verifies webhook requests as specified by Standard Webhooks, with WebCrypto, which every runtime has.
import type { Event } from './types.ts'

/** The request isn't from Berth, or it is a replayed old one. Respond with 401. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

export type WebhookRequest = {
  /** The raw body: reserialized JSON doesn't match the signature. */
  body: string | Uint8Array
  headers: Headers | Record<string, string | string[] | undefined>
  /** `whsec_…` from `POST /webhooks`. */
  secret: string
  /** The maximum age of a request (default: 300). */
  toleranceSeconds?: number
}

const defaultToleranceSeconds = 300
// Berth sends at most two. Each costs a hash of the body, and an attacker may send many.
const maxSignatures = 10

/** Returns the event of a verified request. Retries have the same `id`: handle each once. */
export async function verifyWebhook(request: WebhookRequest): Promise<Event> {
  const { headers, secret, toleranceSeconds = defaultToleranceSeconds } = request
  const id = header(headers, 'webhook-id')
  const timestamp = header(headers, 'webhook-timestamp')
  const signatures = header(headers, 'webhook-signature').split(' ', maxSignatures)
  if (!/^\d{1,12}$/.test(timestamp) || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) {
    throw new WebhookVerificationError('webhook-timestamp is not recent')
  }
  const body = typeof request.body === 'string' ? encode(request.body) : request.body
  const signed = join(encode(`${id}.${timestamp}.`), body)
  const keyBytes = decode(secret.replace(/^whsec_/, ''))
  if (!keyBytes?.length) throw new TypeError('the secret must be a webhook secret: whsec_…')
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', keyBytes, algorithm, false, ['verify'])
  // During a rotation there is a signature for each secret.
  for (const signature of signatures) {
    const bytes = signature.startsWith('v1,') ? decode(signature.slice(3)) : null
    // Compares in constant time.
    if (bytes && (await crypto.subtle.verify('HMAC', key, bytes, signed))) {
      return JSON.parse(new TextDecoder().decode(body)) as Event
    }
  }
  throw new WebhookVerificationError('no signature in webhook-signature matches')
}

function header(headers: WebhookRequest['headers'], name: string): string {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers)
  const value = entries.find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string' || value === '') throw new WebhookVerificationError(`${name} is missing`)
  return value
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function join(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(one.length + other.length)
  whole.set(one)
  whole.set(other, one.length)
  return whole
}

/** Null if it is not base64. */
function decode(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}
