// A fetch that sends a request again where that is safe: as `Retry-After` says, or after a growing pause.
import { chunksOf, readBody } from './body.ts'
import { InvalidResponse } from './errors.ts'

export type RetryOptions = {
  fetch: (input: Request, init?: RequestInit) => Promise<Response>
  /** How often a request is sent again. */
  retries: number
  /** How long one attempt may take, its body included. */
  timeoutMs: number
}

export const streamType = 'text/event-stream'

const firstPauseMs = 250
const maxPauseMs = 8_000
// Whoever is asked to wait longer is told so by the error.
const maxRetryAfterMs = 120_000
// Statuses of a server or proxy that may work the next time.
const passing = [500, 502, 503, 504]
// With them nothing of the request was done, if they say when to come again.
const refused = [409, 429, 503]

export function createRetryingFetch({ fetch, retries, timeoutMs }: RetryOptions) {
  async function attempt(request: Request): Promise<Response> {
    // A stream has no end to wait for; its reader notices when it falls silent.
    const isStream = request.headers.get('accept') === streamType
    const response = isStream
      ? await fetch(request)
      : await fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]) })
    if (isStream && response.ok) return response
    // Read here, so that an answer that breaks off is a lost one.
    const body = await readBody(chunksOf(response.body))
    const { status, statusText, headers } = response
    return new Response(body.byteLength > 0 ? body : null, { status, statusText, headers })
  }

  return async function retryingFetch(request: Request): Promise<Response> {
    if (request.method === 'POST' && !request.headers.has('idempotency-key')) {
      request.headers.set('idempotency-key', randomKey())
    }
    // Whether an attempt may have been carried out, though its answer never came.
    let mayBeDone = false
    for (let sent = 1; ; sent++) {
      const isLast = sent > retries
      let pauseMs = backoffMs(sent)
      try {
        const response = await attempt(isLast ? request : request.clone())
        // Gone is what it should be: whoever asked for it need not know which attempt did it.
        if (mayBeDone && request.method === 'DELETE' && response.status === 404)
          return new Response(null, { status: 204 })
        const waitMs = retryAfterMs(response)
        const again = waitMs !== null && refused.includes(response.status) && !(await isUnsure(response))
        if (isLast || !(again || (isRepeatable(request) && passing.includes(response.status)))) return response
        mayBeDone ||= !again
        if (waitMs !== null) {
          if (waitMs > maxRetryAfterMs) return response
          pauseMs = waitMs + Math.random() * firstPauseMs
        }
      } catch (error) {
        const isFinal = isLast || error instanceof InvalidResponse || request.signal.aborted
        if (isFinal || !isRepeatable(request)) throw error
        mayBeDone = true
      }
      await pause(pauseMs, request.signal)
    }
  }
}

/** The server lost its database, perhaps when everything was done. */
async function isUnsure(response: Response): Promise<boolean> {
  return response.status === 503 && (await response.clone().text()).includes('"database_unavailable"')
}

/** Whether a request whose answer was lost may be sent again: it is done once, and the answer is the same. */
function isRepeatable({ method, headers }: Request): boolean {
  // The key makes a POST repeatable. A change that depends on a version would be refused by the version it made.
  if (method === 'PUT' || method === 'DELETE') return (headers.get('if-match') ?? '*') === '*'
  return method !== 'PATCH'
}

/** Half of it is by chance, so that clients that were refused together do not come back together. */
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

// Browsers have randomUUID on HTTPS pages alone.
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
