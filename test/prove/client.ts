// A client of the API as it should be written: one key for each write, and the same request again until it is answered.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

export type Reply<T> = { status: number; body: T; tries: number }

export type Client = {
  /** Throws Refused for an answer that says no, and Unanswered when none comes for minutes. */
  call<T>(method: string, path: string, body?: object | string): Promise<Reply<T>>
  /** All pages of a list. */
  list<T>(path: string, field: string): Promise<T[]>
  /** Answers 500 so far: a fault of the platform, even where the next try succeeds. */
  readonly internalErrors: string[]
}

export class Refused extends Error {
  readonly status: number
  readonly code: string
  constructor(what: string, status: number, text: string) {
    super(`${what}: ${status} ${text.slice(0, 300)}`)
    this.status = status
    this.code = /"code":"(\w+)"/.exec(text)?.[1] ?? ''
  }
}

export class Unanswered extends Error {}

// Longer than the API is ever away: what is not answered at all is neither lost nor done.
const patienceMs = 15 * 60_000
const tryMs = 20_000

export function createClient(origin: () => string, token: string, more: Record<string, string> = {}): Client {
  const internalErrors: string[] = []

  /** Null: nobody knows whether it was done. */
  async function attempt(
    method: string,
    path: string,
    init: RequestInit,
  ): Promise<{ status: number; text: string } | null> {
    try {
      const response = await fetch(`${origin()}/api${path}`, { method, ...init, signal: AbortSignal.timeout(tryMs) })
      return { status: response.status, text: await response.text() }
    } catch {
      return null
    }
  }

  async function call<T>(method: string, path: string, body?: object | string): Promise<Reply<T>> {
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, ...more }
    if (body !== undefined) headers['content-type'] = typeof body === 'string' ? 'text/dns' : 'application/json'
    if (method === 'POST') headers['idempotency-key'] = randomUUID()
    // Sent again when nobody knows whether it was done, so any version is meant.
    if (path.endsWith('/zone')) headers['if-match'] = '*'
    const init = {
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    const what = `${method} ${path}`
    const endMs = performance.now() + patienceMs
    for (let tries = 1; performance.now() < endMs; tries++) {
      const answer = await attempt(method, path, init)
      const { status, text } = answer ?? { status: 0, text: '' }
      if (status === 500) internalErrors.push(`${what}: ${text.slice(0, 300)}`)
      const again = status === 0 || status === 429 || status >= 500 || text.includes('"idempotency_in_progress"')
      if (!again) {
        // What the try before may have deleted is gone.
        const gone = method === 'DELETE' && status === 404 && tries > 1
        if (status >= 400 && !gone) throw new Refused(what, status, text)
        return { status, body: (text && status < 300 ? JSON.parse(text) : null) as T, tries }
      }
      await sleep(50 + Math.random() * 150)
    }
    throw new Unanswered(`${what} was not answered for ${patienceMs / 1000} s`)
  }

  return {
    call,
    internalErrors,
    async list<T>(path: string, field: string) {
      const all: T[] = []
      for (let cursor = ''; ; ) {
        const query = `${path.includes('?') ? '&' : '?'}limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
        const { body } = await call<Record<string, T[]> & { nextCursor: string | null }>('GET', path + query)
        all.push(...body[field]!)
        if (body.nextCursor === null) return all
        cursor = body.nextCursor
      }
    },
  }
}
