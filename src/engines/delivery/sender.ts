// Makes one attempt over HTTP: only to allowed addresses, limited in time and size, always with an outcome.
import http from 'node:http'
import https from 'node:https'
import { StringDecoder } from 'node:string_decoder'
import { AddressRefused, checkedLookup, type Reach } from '../../platform/http/checked-lookup.ts'
import { hostRefusal } from '../../platform/http/public-address.ts'
import { limitEarlyResponses } from '../../platform/http/unexpected-responses.ts'
import type { Outcome } from '../../services/webhooks/index.ts'
import { maxWindow } from './active-webhooks.ts'
import type { Message } from './message.ts'

export type SenderOptions = Reach & {
  /** Root certificates to trust instead of the public ones. */
  ca?: string
  timeoutMs?: number
}

export type Sender = {
  /** Null if `close` aborted it, so that it is unknown whether the event arrived. */
  send(url: string, message: Message): Promise<Outcome | null>
  /** Aborts attempts in flight. */
  close(): void
}

// As documented for users: from the DNS lookup to the last byte of the response.
const attemptTimeoutMs = 15_000
const maxResponseBytes = 64 * 1024
const storedBytes = 4 * 1024
const idleSocketMs = 20_000
// As many as one webhook uses at a time. A host with many webhooks may open more, so that none waits for another.
const idleSocketsPerHost = maxWindow

/** An error whose message may be shown to the webhook's owner. */
class Refusal extends Error {}
class Aborted extends Error {}

const privateText = 'the address is private or local, where webhooks must not point'

export function createSender(options: SenderOptions): Sender {
  const { mayReach, timeoutMs = attemptTimeoutMs } = options
  const lookup = checkedLookup(options)
  const pool = {
    keepAlive: true,
    maxFreeSockets: idleSocketsPerHost,
    timeout: idleSocketMs,
    scheduling: 'lifo',
    lookup,
  } as const
  const agents = { 'http:': new http.Agent(pool), 'https:': new https.Agent({ ...pool, ca: options.ca }) }

  const inFlight = new Set<http.ClientRequest>()

  function send(address: string, message: Message): Promise<Outcome | null> {
    const startedAt = new Date()
    const startedMs = performance.now()
    return new Promise((done) => {
      const answer: ResponseState = { status: null, size: 0, chunks: [] }
      const finish = (error: string | null) => {
        clearTimeout(timer)
        const durationMs = performance.now() - startedMs
        const body = answer.status === null ? null : textOf(answer.chunks)
        done({ startedAt, durationMs, status: answer.status, body, error: error ?? statusError(answer.status) })
      }
      const url = new URL(address)
      const isRefused = hostRefusal(url.hostname, options.mayReach) !== null
      let request: http.ClientRequest
      const timer = setTimeout(
        () => request.destroy(new Refusal(`there was no full answer within ${timeoutMs / 1000} s`)),
        timeoutMs,
      )
      const begin = (isFresh: boolean) => {
        request = (url.protocol === 'https:' ? https : http).request(url, {
          method: 'POST',
          headers: message.headers,
          ...(isFresh ? { agent: false, lookup, ca: options.ca } : { agent: agents[url.protocol as 'http:'] }),
        })
        attend(request)
        request.end(message.body)
      }
      const fail = (error: NodeJS.ErrnoException) => {
        if (error instanceof Aborted) return done(null)
        // The receiver closed the idle connection before it saw the event, so it is sent on a new one.
        const isStale = request.reusedSocket && answer.status === null && staleCodes.has(error.code ?? '')
        if (isStale) begin(true)
        else finish(describe(error))
      }
      const attend = (one: http.ClientRequest) => {
        inFlight.add(one)
        limitEarlyResponses(one)
        one.on('socket', (socket) => {
          if (!socket.connecting) return
          // Checked again on the connected socket, regardless of how its address was resolved.
          socket.once('connect', () => {
            if (!mayReach(socket.remoteAddress ?? '')) one.destroy(new Refusal(privateText))
          })
        })
        one.on('response', (response) => {
          answer.status = response.statusCode ?? null
          response.on('data', (chunk: Buffer) => {
            if (answer.size < storedBytes) answer.chunks.push(chunk.subarray(0, storedBytes - answer.size))
            answer.size += chunk.length
            // Only the status matters, so longer responses are refused.
            if (answer.size > maxResponseBytes) response.destroy(new Refusal('the answer was longer than 64 KB'))
          })
          response.on('end', () => finish(null))
          response.on('error', fail)
        })
        // A 101 ends the attempt with a status that isn't a success.
        one.on('upgrade', (response, socket) => {
          answer.status = response.statusCode ?? null
          socket.destroy()
          finish(null)
        })
        one.on('error', fail)
        one.on('close', () => {
          inFlight.delete(one)
          if (one === request) finish(errorTexts.ECONNRESET!)
        })
      }
      if (isRefused) finish(privateText)
      else begin(false)
    })
  }

  return {
    send,
    close() {
      for (const request of inFlight) request.destroy(new Aborted())
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}

type ResponseState = { status: number | null; size: number; chunks: Buffer[] }

function textOf(chunks: Buffer[]): string {
  // The decoder drops a character that was cut in two. PostgreSQL can't store NUL.
  return new StringDecoder('utf8').write(Buffer.concat(chunks)).replaceAll('\0', '\uFFFD')
}

function statusError(status: number | null): string | null {
  if (status === null) return 'no answer came'
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400) return `the receiver answered ${status}, and redirects are not followed`
  return `the receiver answered ${status}`
}

const staleCodes = new Set(['ECONNRESET', 'EPIPE'])

const errorTexts: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed before an answer came',
  EPIPE: 'the connection was closed before an answer came',
  ETIMEDOUT: 'the connection could not be made in time',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'the host name does not resolve',
  ENODATA: 'the host name has no address',
}

function describe(error: NodeJS.ErrnoException): string {
  if (error instanceof Refusal) return error.message
  if (error instanceof AddressRefused) return privateText
  // There is one error per address. The first one suffices.
  const first = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error
  const known = errorTexts[first.code ?? '']
  if (known) return known
  return `the request failed: ${`${first.code ?? ''} ${first.message}`.trim().slice(0, 200)}`
}
