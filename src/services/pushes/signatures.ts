// What proves that a push comes from who knows the secret: the headers of each repository host, and their check.
import { createHmac, hash, timingSafeEqual } from 'node:crypto'

export type PushHeaders = Record<string, string | string[] | undefined>

export type PushEvent = 'push' | 'pull_request' | 'ping' | { other: string }

/** GitLab sends the secret itself; all others send the HMAC-SHA256 of what they send under it. */
type Proof = { token: string } | { hmac: Buffer }

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
// Gitea names new commits apart in some versions.
const requestEvents = ['pull_request', 'pull_request_sync', 'Merge Request Hook']
// GitLab's Idempotency-Key is the same for every retry; its event id, for every hook that another hook set off.
const deliveryHeaders = [
  'x-forgejo-delivery',
  'x-gitea-delivery',
  'x-github-delivery',
  'idempotency-key',
  'x-gitlab-event-uuid',
]

/** What happened. A hand-made hook that says nothing means a push; a tag of GitLab is one, like everybody else's. */
export function eventOfPush(headers: PushHeaders): PushEvent {
  const name = first(headers, eventHeaders) ?? 'push'
  if (name === 'push' || name === 'Push Hook' || name === 'Tag Push Hook') return 'push'
  if (requestEvents.includes(name)) return 'pull_request'
  return name === 'ping' ? 'ping' : { other: name.slice(0, 100) }
}

export function deliveryOfPush(headers: PushHeaders): string | null {
  return first(headers, deliveryHeaders)?.slice(0, 255) ?? null
}

/** The JSON that a form brings in its field `payload`, or nothing. */
export function payloadOfForm(form: string): string {
  // Only this field is decoded: URLSearchParams takes seconds for a megabyte of others, and the sender is not known yet.
  const [, field = ''] = /(?:^|&)(payload=[^&]*)/.exec(form) ?? []
  return new URLSearchParams(field.split('+').join(' ')).get('payload') ?? ''
}

/** Whether the headers have anything that could prove where the push comes from. */
export function hasProof(headers: PushHeaders): boolean {
  const proof = proofOf(headers)
  return 'token' in proof || !proof.hmac.equals(Buffer.alloc(32))
}

function proofOf(headers: PushHeaders): Proof {
  const signature = first(headers, signatureHeaders)
  const token = first(headers, ['x-gitlab-token'])
  if (signature === undefined && token !== undefined) return { token }
  const hex = /^(?:sha256=)?([0-9a-f]{64})$/i.exec(signature ?? '')?.[1]
  // Zeros instead of an early end: a request without a signature takes as long as one with a wrong one.
  return { hmac: hex ? Buffer.from(hex, 'hex') : Buffer.alloc(32) }
}

const sha256 = (text: string) => hash('sha256', text, 'buffer')

/**
 * Whether one of the secrets proves one of the texts. Every pair is looked at, whatever the ones before it gave, so
 * that the time tells nothing. There are two texts for a form, because Gitea signs the payload and GitHub the body.
 */
export function isSigned(headers: PushHeaders, texts: readonly Buffer[], secrets: readonly string[]): boolean {
  const proof = proofOf(headers)
  let good = false
  for (const secret of secrets) {
    if ('token' in proof) good = timingSafeEqual(sha256(proof.token), sha256(secret)) || good
    else {
      for (const text of texts) {
        good = timingSafeEqual(proof.hmac, createHmac('sha256', secret).update(text).digest()) || good
      }
    }
  }
  return good
}
