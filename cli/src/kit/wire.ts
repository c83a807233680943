// Requests to the server by Node's own HTTP: its fetch takes longer to load than a small deployment takes. Sent again where
// that is safe, as the SDK does it.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { readBody } from '../../../sdk/src/body.ts'
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import { backoffMs, pause, streamType } from '../../../sdk/src/retry.ts'
import { exitCodes, Failure, isProblem } from './failures.ts'
import type { Sent, Transport } from './transport.ts'

export type Answer = {
  status: number
  ok: boolean
  headers: { get(name: string): string | null } & Iterable<[string, string]>
  text(): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: whoever asked knows what it is.
  json(): Promise<any>
  /** The unread body of a streamed response. */
  stream: IncomingMessage
}

/** A response of 400 or above; `tell` prints it. */
export class Refused extends Error {
  override readonly name = 'BerthError'
  readonly status: number
  readonly problem: object | null

  constructor({ status }: Answer, text: string) {
    const body = parsed(text)
    const problem = isProblem(body) ? body : null
    super(problem?.detail ?? `The server responded with ${status}.`)
    this.status = status
    this.problem = problem
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const retries = 3
const timeoutMs = 120_000
const maxRetryAfterMs = 120_000
const passing = [500, 502, 503, 504]
const refused = [409, 429, 503]

/** Resolves to responses of every status; throws if there was none, or for a redirect. */
export function createWire(transport: Transport): (call: Sent) => Promise<Answer> {
  async function attempt(call: Sent): Promise<Answer> {
    const isStream = call.headers.accept === streamType
    const signal = isStream ? call.signal : AbortSignal.any([call.signal, AbortSignal.timeout(timeoutMs)])
    try {
      const message = await transport({ ...call, signal })
      const isOpen = isStream && message.statusCode === 200
      return answerOf(message, isOpen ? null : Buffer.from(await readBody(message)).toString('utf8'))
    } catch (error) {
      // Node says that it was aborted, but not why.
      throw signal.aborted ? signal.reason : error
    }
  }

  return async function ask(call) {
    const headers = { ...call.headers }
    if (call.method === 'POST') headers['idempotency-key'] ??= randomUUID()
    let mayBeDone = false
    for (let sent = 1; ; sent++) {
      const isLast = sent > retries
      let pauseMs = backoffMs(sent)
      try {
        const answer = await attempt({ ...call, headers })
        if (answer.status >= 300 && answer.status < 400 && answer.status !== 304) throw movedTo(answer)
        if (mayBeDone && call.method === 'DELETE' && answer.status === 404) return { ...answer, status: 204, ok: true }
        const waitMs = retryAfterMs(answer)
        const again = waitMs !== null && refused.includes(answer.status) && !(await isUnsure(answer))
        if (isLast || !(again || (isRepeatable(call) && passing.includes(answer.status)))) return answer
        mayBeDone ||= !again
        if (waitMs !== null) {
          if (waitMs > maxRetryAfterMs) return answer
          pauseMs = waitMs + Math.random() * 250
        }
      } catch (error) {
        const isFinal = isLast || error instanceof Failure || error instanceof InvalidResponse || call.signal.aborted
        if (isFinal || !isRepeatable(call)) throw error
        mayBeDone = true
      }
      await pause(pauseMs, call.signal)
    }
  }
}

function answerOf(message: IncomingMessage, text: string | null): Answer {
  const status = message.statusCode ?? 0
  const given = message.headers
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: {
      get: (name) => given[name.toLowerCase()]?.toString() ?? null,
      *[Symbol.iterator]() {
        for (const [name, value] of Object.entries(given)) yield [name, String(value)] as [string, string]
      },
    },
    text: async () => text ?? '',
    json: async () => {
      const body = parsed(text ?? '')
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        throw new Failure(exitCodes.unreachable, `The server responded with ${status}, but not with JSON of the API.`)
      return body
    },
    stream: message,
  }
}

function movedTo({ status, headers }: Answer): Failure {
  const to = headers.get('location') ?? 'another URL'
  return new Failure(
    exitCodes.unreachable,
    `The server responded with ${status}: it has moved to ${to}.`,
    'Pass its URL with --url.',
  )
}

/** The server lost its database, perhaps after the commit. */
async function isUnsure(answer: Answer): Promise<boolean> {
  return answer.status === 503 && (await answer.text()).includes('"database_unavailable"')
}

/** Whether a request whose response was lost may be sent again: a POST has an idempotency key. */
function isRepeatable({ method, headers }: Sent): boolean {
  if (method === 'PUT' || method === 'DELETE') return (headers['if-match'] ?? '*') === '*'
  return method !== 'PATCH'
}

function retryAfterMs({ headers }: Answer): number | null {
  const value = headers.get('retry-after')
  if (!value) return null
  const ms = Number.isNaN(Number(value)) ? Date.parse(value) - Date.now() : Number(value) * 1000
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}
