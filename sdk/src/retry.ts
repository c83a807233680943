// A fetch that retries where that is safe, after `Retry-After` or with exponential backoff.
import { chunksOf, readBody } from './body.ts'
import { InvalidResponse } from './errors.ts'

export type RetryOptions = {
  fetch: (input: Request, init?: RequestInit) => Promise<Response>
  /** The maximum number of retries. */
  retries: number
  /** The timeout of one attempt, including its body. */
  timeoutMs: number
}

export const streamType = 'text/event-stream'

const firstPauseMs = 250
const maxPauseMs = 8_000
// For longer waits, the caller gets the error instead.
const maxRetryAfterMs = 120_000
// Statuses of a server or proxy that may work after a retry.
const transientStatuses = [500, 502, 503, 504]
// With Retry-After, these mean that the request had no effect.
const refusedStatuses = [409, 429, 503]

export function createRetryingFetch({ fetch, retries, timeoutMs }: RetryOptions) {
  async function attempt(request: Request): Promise<Response> {
    // A stream never completes; its reader detects silence.
    const isStream = request.headers.get('accept') === streamType
    const response = isStream
      ? await fetch(request)
      : await fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]) })
    if (isStream && response.ok) return response
    // Read here, so that an incomplete response counts as lost.
    const body = await readBody(chunksOf(response.body))
    const { status, statusText, headers } = response
    return new Response(body.byteLength > 0 ? body : null, { status, statusText, headers })
  }

  return async function retryingFetch(request: Request): Promise<Response> {
    if (request.method === 'POST' && !request.headers.has('idempotency-key')) {
      request.headers.set('idempotency-key', randomKey())
    }
    // Whether an earlier attempt may have taken effect without a response.
    let maybeDone = false
    for (let sent = 1; ; sent++) {
      const isLast = sent > retries
      let pauseMs = backoffMs(sent)
      try {
        const response = await attempt(isLast ? request : request.clone())
        // An earlier attempt has deleted it.
        if (maybeDone && request.method === 'DELETE' && response.status === 404)
          return new Response(null, { status: 204 })
        const waitMs = retryAfterMs(response)
        const again =
          waitMs !== null && refusedStatuses.includes(response.status) && !(await mayHaveCommitted(response))
        if (isLast || !(again || (isRepeatable(request) && transientStatuses.includes(response.status))))
          return response
        maybeDone ||= !again
        if (waitMs !== null) {
          if (waitMs > maxRetryAfterMs) return response
          pauseMs = waitMs + Math.random() * firstPauseMs
        }
      } catch (error) {
        const isFinal = isLast || error instanceof InvalidResponse || request.signal.aborted
        if (isFinal || !isRepeatable(request)) throw error
        maybeDone = true
      }
      await pause(pauseMs, request.signal)
    }
  }
}

/** The server lost its database connection, perhaps after the commit. */
async function mayHaveCommitted(response: Response): Promise<boolean> {
  return response.status === 503 && (await response.clone().text()).includes('"database_unavailable"')
}

/** Whether resending after a lost response has no further effect and gets the same response. */
function isRepeatable({ method, headers }: Request): boolean {
  // Its key makes a POST repeatable. A repeated change with If-Match would fail, because the first one changed the version.
  if (method === 'PUT' || method === 'DELETE') return (headers.get('if-match') ?? '*') === '*'
  return method !== 'PATCH'
}

/** Half of it is random, so that clients refused together don't return together. */
export function backoffMs(attempt: number): number {
  const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** (attempt - 1))
  return pauseMs * (0.5 + Math.random() / 2)
}

function retryAfterMs({ headers }: Response): number | null {
  const value = headers.get('retry-after')
  if (!value) return null
  const seconds = Number(value)
  const ms = Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}

// Browsers have randomUUID only on HTTPS pages.
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function pause(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
