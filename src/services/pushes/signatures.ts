// Signatures of pushes: the headers of each repository host, and their verification.
import { createHmac, hash, timingSafeEqual } from 'node:crypto'

export type PushHeaders = Record<string, string | string[] | undefined>

export type PushEvent = 'push' | 'pull_request' | 'ping' | { other: string }

/** GitLab sends the secret itself; all others send an HMAC-SHA256 of the body. */
type Signature = { token: string } | { hmac: Buffer }

function first(headers: PushHeaders, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers[name]
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

// Gitea and Forgejo also send the headers of GitHub, with the same content.
const signatureHeaders = ['x-hub-signature-256', 'x-forgejo-signature', 'x-gitea-signature']
const eventHeaders = ['x-forgejo-event', 'x-gitea-event', 'x-github-event', 'x-gitlab-event']
// Some versions of Gitea have a separate event for new commits.
const requestEvents = ['pull_request', 'pull_request_sync', 'Merge Request Hook']
// GitLab's Idempotency-Key is the same for each retry; its event UUID is also the same for hooks that a hook triggers.
const deliveryHeaders = [
  'x-forgejo-delivery',
  'x-gitea-delivery',
  'x-github-delivery',
  'idempotency-key',
  'x-gitlab-event-uuid',
]

/** The event of a delivery: a push by default, for custom hooks without the header. Tag pushes of GitLab are pushes. */
export function eventOfPush(headers: PushHeaders): PushEvent {
  const name = first(headers, eventHeaders) ?? 'push'
  if (name === 'push' || name === 'Push Hook' || name === 'Tag Push Hook') return 'push'
  if (requestEvents.includes(name)) return 'pull_request'
  return name === 'ping' ? 'ping' : { other: name.slice(0, 100) }
}

export function deliveryOfPush(headers: PushHeaders): string | null {
  return first(headers, deliveryHeaders)?.slice(0, 255) ?? null
}

/** The JSON in the field `payload` of a form, or an empty string. */
export function payloadOfForm(form: string): string {
  // Decodes only this field: URLSearchParams takes seconds for a megabyte, and the sender is not authenticated yet.
  const [, field = ''] = /(?:^|&)(payload=[^&]*)/.exec(form) ?? []
  return new URLSearchParams(field.split('+').join(' ')).get('payload') ?? ''
}

export function hasSignature(headers: PushHeaders): boolean {
  const signature = signatureOf(headers)
  return 'token' in signature || !signature.hmac.equals(Buffer.alloc(32))
}

function signatureOf(headers: PushHeaders): Signature {
  const signature = first(headers, signatureHeaders)
  const token = first(headers, ['x-gitlab-token'])
  if (signature === undefined && token !== undefined) return { token }
  const hex = /^(?:sha256=)?([0-9a-f]{64})$/i.exec(signature ?? '')?.[1]
  // Zeros instead of an early return, so a missing signature takes as long as a wrong one.
  return { hmac: hex ? Buffer.from(hex, 'hex') : Buffer.alloc(32) }
}

const sha256 = (text: string) => hash('sha256', text, 'buffer')

/**
 * Whether one of the secrets signed one of the texts. Compares every pair, so the timing reveals nothing. A form has
 * two texts, because Gitea signs the payload and GitHub the whole body.
 */
export function isSigned(headers: PushHeaders, texts: readonly Buffer[], secrets: readonly string[]): boolean {
  const signature = signatureOf(headers)
  let valid = false
  for (const secret of secrets) {
    if ('token' in signature) valid = timingSafeEqual(sha256(signature.token), sha256(secret)) || valid
    else {
      for (const text of texts) {
        valid = timingSafeEqual(signature.hmac, createHmac('sha256', secret).update(text).digest()) || valid
      }
    }
  }
  return valid
}
