// One attempt over HTTP: to addresses that are allowed, within a time and a size, and always with an outcome.
import http from 'node:http'
import https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import type { Outcome } from '../../services/delivery-results.ts'
import type { Message } from './message.ts'
import type { Resolve } from './resolve.ts'

export type SenderOptions = {
  /** Whether an address may be connected to. */
  mayReach(address: string): boolean
  resolve: Resolve
  /** Certificates of authorities to trust instead of the public ones. */
  ca?: string
  timeoutMs?: number
}

export type Sender = {
  /** Null if it was cut off by `close`: whether it arrived is not known then. */
  send(url: string, message: Message): Promise<Outcome | null>
  /** Ends what is under way. */
  close(): void
}

// The contract's; it runs from the first look at the name to the last byte of the answer.
const attemptTimeoutMs = 15_000
const maxAnswerBytes = 64 * 1024
const keptAnswerBytes = 4 * 1024
const idleSocketMs = 20_000
// As many as one webhook is sent at a time; a host shared by many webhooks may open more, or one would wait for another.
const idleSocketsPerHost = 8

/** A reason that may be shown to the owner of the webhook as it is. */
class Refusal extends Error {}
class CutOff extends Error {}

const privateText = 'the address is private or local, where webhooks must not point'

export function createSender(options: SenderOptions): Sender {
  const { mayReach, resolve, timeoutMs = attemptTimeoutMs } = options
  // Every name is resolved here, so that the address that was checked is the one that is connected to: a second
  // look-up could have another answer.
  const lookup = checkedLookup(resolve, mayReach)
  const pool = {
    keepAlive: true,
    maxFreeSockets: idleSocketsPerHost,
    timeout: idleSocketMs,
    scheduling: 'lifo',
    lookup,
  } as const
  const agents = { 'http:': new http.Agent(pool), 'https:': new https.Agent({ ...pool, ca: options.ca }) }

  const underWay = new Set<http.ClientRequest>()

  function send(address: string, message: Message): Promise<Outcome | null> {
    const startedAt = new Date()
    const startedMs = performance.now()
    return new Promise((done) => {
      const answer: Answer = { status: null, size: 0, kept: [] }
      const finish = (error: string | null) => {
        clearTimeout(timer)
        const durationMs = performance.now() - startedMs
        const body = answer.status === null ? null : textOf(answer.kept)
        done({ startedAt, durationMs, status: answer.status, body, error: error ?? statusError(answer.status) })
      }
      const url = new URL(address)
      const host = url.hostname.replace(/^\[|\]$/g, '')
      // A name is checked when it is resolved, but an address is never looked up.
      const isRefused = isIP(host) !== 0 && !mayReach(host)
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
        if (error instanceof CutOff) return done(null)
        // A kept connection that the receiver had closed already: nobody has seen the event, so it is sent on a new one.
        const isStale = request.reusedSocket && answer.status === null && staleCodes.has(error.code ?? '')
        if (isStale) begin(true)
        else finish(describe(error))
      }
      const attend = (one: http.ClientRequest) => {
        underWay.add(one)
        one.on('socket', (socket) => {
          if (!socket.connecting) return
          // Once more at the end of the way, whatever led there.
          socket.once('connect', () => {
            if (!mayReach(socket.remoteAddress ?? '')) one.destroy(new Refusal(privateText))
          })
        })
        one.on('response', (response) => {
          answer.status = response.statusCode ?? null
          response.on('data', (chunk: Buffer) => {
            if (answer.size < keptAnswerBytes) answer.kept.push(chunk.subarray(0, keptAnswerBytes - answer.size))
            answer.size += chunk.length
            // The status is all that counts; whoever sends more than this wastes both sides' time.
            if (answer.size > maxAnswerBytes) response.destroy(new Refusal('the answer was longer than 64 KB'))
          })
          response.on('end', () => finish(null))
          response.on('error', fail)
        })
        // An answer that switches protocols ends the attempt here, with a status that is no success.
        one.on('upgrade', (response, socket) => {
          answer.status = response.statusCode ?? null
          socket.destroy()
          finish(null)
        })
        one.on('error', fail)
        one.on('close', () => {
          underWay.delete(one)
          if (one === request) finish(sentences.ECONNRESET!)
        })
      }
      if (isRefused) finish(privateText)
      else begin(false)
    })
  }

  return {
    send,
    close() {
      for (const request of underWay) request.destroy(new CutOff())
      agents['http:'].destroy()
      agents['https:'].destroy()
    },
  }
}

type Answer = { status: number | null; size: number; kept: Buffer[] }

function textOf(chunks: Buffer[]): string {
  // The decoder leaves a character out that was cut in two; PostgreSQL cannot store NUL.
  return new StringDecoder('utf8').write(Buffer.concat(chunks)).replaceAll('\0', '\uFFFD')
}

function statusError(status: number | null): string | null {
  if (status === null) return 'no answer came'
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400) return `the receiver answered ${status}, and redirects are not followed`
  return `the receiver answered ${status}`
}

const staleCodes = new Set(['ECONNRESET', 'EPIPE'])

const sentences: Record<string, string> = {
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
  // One error per address that was tried; the first tells as much as all of them.
  const first = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error
  const known = sentences[first.code ?? '']
  if (known) return known
  return `the request failed: ${`${first.code ?? ''} ${first.message}`.trim().slice(0, 200)}`
}

function checkedLookup(resolve: Resolve, mayReach: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname).then(
      (found) => {
        const addresses = found.filter(({ address }) => mayReach(address))
        const [first] = addresses
        if (!first) callback(new Refusal(privateText), '', 4)
        else if (options.all) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, '', 4),
    )
  }
}
