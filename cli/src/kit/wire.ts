// Sends requests with Node's HTTP client, because fetch takes longer to load than a small deployment. Retries like the SDK.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { readBody } from '../../../sdk/src/body.ts'
import { InvalidResponse } from '../../../sdk/src/errors.ts'
import { backoffMs, pause, streamType } from '../../../sdk/src/retry.ts'
import { exitCodes, Failure, isProblem } from './failures.ts'
import type { ApiRequest, Transport } from './transport.ts'

export type ApiResponse = {
  status: number
  ok: boolean
  headers: { get(name: string): string | null } & Iterable<[string, string]>
  text(): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the type.
  json(): Promise<any>
  /** The unread body of a streamed response. */
  stream: IncomingMessage
}

/** A response of 400 or above, printed by `printError`. */
export class ErrorResponse extends Error {
  override readonly name = 'BerthError'
  readonly status: number
  readonly problem: object | null

  constructor({ status }: ApiResponse, text: string) {
    const body = parseJson(text)
    const problem = isProblem(body) ? body : null
    super(problem?.detail ?? `The server responded with ${status}.`)
    this.status = status
    this.problem = problem
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const retries = 3
const timeoutMs = 120_000
const maxRetryAfterMs = 120_000
const transientStatuses = [500, 502, 503, 504]
const refusedStatuses = [409, 429, 503]

/** Resolves to responses of every status; throws without a response and for redirects. */
export function createWire(transport: Transport): (call: ApiRequest) => Promise<ApiResponse> {
  async function attempt(call: ApiRequest): Promise<ApiResponse> {
    const isStream = call.headers.accept === streamType
    const signal = isStream ? call.signal : AbortSignal.any([call.signal, AbortSignal.timeout(timeoutMs)])
    try {
      const message = await transport({ ...call, signal })
      const isOpen = isStream && message.statusCode === 200
      return responseOf(message, isOpen ? null : Buffer.from(await readBody(message)).toString('utf8'))
    } catch (error) {
      // Node's error lacks the reason.
      throw signal.aborted ? signal.reason : error
    }
  }

  return async function send(call) {
    const headers = { ...call.headers }
    if (call.method === 'POST') headers['idempotency-key'] ??= randomUUID()
    let maybeDone = false
    for (let sent = 1; ; sent++) {
      const isLast = sent > retries
      let pauseMs = backoffMs(sent)
      try {
        const response = await attempt({ ...call, headers })
        if (response.status >= 300 && response.status < 400 && response.status !== 304) throw movedTo(response)
        if (maybeDone && call.method === 'DELETE' && response.status === 404)
          return { ...response, status: 204, ok: true }
        const waitMs = retryAfterMs(response)
        const again =
          waitMs !== null && refusedStatuses.includes(response.status) && !(await mayHaveCommitted(response))
        if (isLast || !(again || (isRepeatable(call) && transientStatuses.includes(response.status)))) return response
        maybeDone ||= !again
        if (waitMs !== null) {
          if (waitMs > maxRetryAfterMs) return response
          pauseMs = waitMs + Math.random() * 250
        }
      } catch (error) {
        const isFinal = isLast || error instanceof Failure || error instanceof InvalidResponse || call.signal.aborted
        if (isFinal || !isRepeatable(call)) throw error
        maybeDone = true
      }
      await pause(pauseMs, call.signal)
    }
  }
}

function responseOf(message: IncomingMessage, text: string | null): ApiResponse {
  const status = message.statusCode ?? 0
  const { headers } = message
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: {
      get: (name) => headers[name.toLowerCase()]?.toString() ?? null,
      *[Symbol.iterator]() {
        for (const [name, value] of Object.entries(headers)) yield [name, String(value)] as [string, string]
      },
    },
    text: async () => text ?? '',
    json: async () => {
      const body = parseJson(text ?? '')
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        throw new Failure(exitCodes.unreachable, `The server responded with ${status}, but not with a JSON object.`)
      return body
    },
    stream: message,
  }
}

function movedTo({ status, headers }: ApiResponse): Failure {
  const to = headers.get('location') ?? 'another URL'
  return new Failure(
    exitCodes.unreachable,
    `The server responded with ${status}: it has moved to ${to}.`,
    'Pass its URL with --url.',
  )
}

/** The server lost its database connection, perhaps after the commit. */
async function mayHaveCommitted(response: ApiResponse): Promise<boolean> {
  return response.status === 503 && (await response.text()).includes('"database_unavailable"')
}

/** Whether a request may be resent after its response was lost; a POST has an idempotency key. */
function isRepeatable({ method, headers }: ApiRequest): boolean {
  if (method === 'PUT' || method === 'DELETE') return (headers['if-match'] ?? '*') === '*'
  return method !== 'PATCH'
}

function retryAfterMs({ headers }: ApiResponse): number | null {
  const value = headers.get('retry-after')
  if (!value) return null
  const ms = Number.isNaN(Number(value)) ? Date.parse(value) - Date.now() : Number(value) * 1000
  return Number.isNaN(ms) ? null : Math.max(0, ms)
}
