// The edge's HTTPS server: HTTP/2 and HTTP/1.1 on one port, with certificates chosen by SNI.
import type { IncomingMessage, ServerOptions } from 'node:http'
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { type AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import type { ConnectionShares } from '../../../platform/database/connection-shares.ts'
import { Budget } from '../../../platform/http/budget.ts'
import { limitRequestCosts, requestSteps } from '../../../platform/http/request-intake.ts'
import { createSelfRequest } from '../../../platform/http/self-request.ts'
import { type DrainSignal, refuseOnceReplaced } from '../../../platform/observe/draining.ts'
import { handshakeTimeoutMs, tlsPolicy } from '../../../tls/policy.ts'
import type { CertificateStore } from '../../../tls/store.ts'
import { createTicketKeys, type TicketKeys } from '../../../tls/tickets.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import { answerPlainRequests, type PlainOptions } from '../bare/plain-connections.ts'
import { Http2Request, Http2Response } from './http2-messages.ts'

export type HttpsOptions = {
  certificates: CertificateStore
  handle(request: IncomingMessage, response: EdgeResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Options for HTTP/1.1, the same as on the plain HTTP port. */
  http1: Pick<ServerOptions, 'headersTimeout' | 'keepAliveTimeout' | 'shouldUpgradeCallback'>
  plain: PlainOptions
  shares: ConnectionShares
  /** Default: its own keys. */
  tickets?: TicketKeys | undefined
  /** Aborted while the process drains. */
  draining?: DrainSignal
  log: Logger
}

export type HttpsServer = {
  listen(port: number, host: string): Promise<number>
  /** Whether the port responds; sends requests to itself until one succeeds. */
  answers(): Promise<boolean>
  /** Gives requests in flight up to `drainMs` to complete. */
  close(drainMs: number): Promise<void>
}

const sessionIdleMs = 60_000
// Browsers open at most 100. Each stream costs memory that any client can claim.
const maxStreams = 128
const maxHeaderBytes = 16 << 10
// Enough for a browser that cancels four pages at once. Node creates its request objects before we can refuse, so this
// limits what resets cost before the session ends. Node's default is 1,000.
const maxResets = 512
const resetsPerSecond = 33

export function createHttpsServer(options: HttpsOptions): HttpsServer {
  const { certificates, handle, upgrade, http1, plain, shares, tickets = createTicketKeys(), draining, log } = options
  // Node uses its own classes for HTTP/1.1 and these for HTTP/2. There is no default certificate: clients without SNI
  // get an alert.
  const server = createSecureServer(
    {
      allowHTTP1: true,
      http1Options: http1,
      Http2ServerRequest: Http2Request,
      // Node's types only allow its own class.
      Http2ServerResponse: Http2Response as unknown as typeof Http2ServerResponse,
      settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes, enablePush: false },
      streamResetBurst: maxResets,
      streamResetRate: resetsPerSecond,
      ...tlsPolicy,
      handshakeTimeout: handshakeTimeoutMs,
      SNICallback(this: unknown, name, callback) {
        const context = certificates.contextOf(name.toLowerCase())
        if (context) callback(null, context)
        else refuse(this, callback)
      },
    },
    ((request: IncomingMessage, response: EdgeResponse) => spreadOverTurns(request, response, handle)) as never,
  )
  server.on('upgrade', upgrade)
  refuseOnceReplaced(server, draining)
  if (http1.shouldUpgradeCallback) Object.assign(server, { shouldUpgradeCallback: http1.shouldUpgradeCallback })
  // Clients abort handshakes and sessions all the time, so these are no warnings.
  server.on('tlsClientError', (err) => log.debug({ err }, 'a TLS handshake failed'))
  server.on('sessionError', (err) => log.debug({ err }, 'an HTTP/2 session failed'))
  limitSessions(server, draining)
  let unfollow = () => {}
  const connections = connectionsOf(server)
  limitRequestCosts(server, 'secureConnection')
  const waiting = answerPlainRequests(server as never, 'secureConnection', plain)
  shares.guard(server)

  return {
    answers: createSelfRequest(server, { encrypted: true }),
    async listen(port, host) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, resolve)
      })
      // Only now, because in a cluster worker, listening resets the keys.
      unfollow = tickets.follow((key) => server.setTicketKeys(key))
      return (server.address() as AddressInfo).port
    },
    async close(drainMs) {
      unfollow()
      if (!server.listening) return
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      waiting.close()
      const timer = setTimeout(() => {
        for (const connection of connections) connection.destroy()
      }, drainMs)
      await closed
      clearTimeout(timer)
    },
  }
}

// A TLS record with the fatal alert `unrecognized_name` (RFC 6066, 3).
const unrecognizedName = Buffer.from([21, 3, 3, 0, 2, 2, 112])

/**
 * Node ends a refused handshake without a useful alert. Nothing is encrypted yet, so we write the right alert to the
 * underlying socket; if that is inaccessible, Node sends its own.
 */
function refuse(socket: unknown, callback: (error: Error | null, context?: SecureContext) => void): void {
  const carrier = (socket as { _parent?: unknown } | undefined)?._parent
  if (!(carrier instanceof Socket)) return void callback(null)
  carrier.write(unrecognizedName)
  callback(new Error('no certificate is in service for the name'))
}

/**
 * Ends sessions that flood and times out idle ones: one with open streams may be waiting for a server or for events.
 * While the process drains, a session closes as soon as it is idle, and GOAWAY makes the client open another one.
 */
function limitSessions(server: Http2SecureServer, draining: DrainSignal | undefined): void {
  const sessions = new Map<ServerHttp2Session, () => void>()
  server.on('session', (session: ServerHttp2Session) => {
    let open = 0
    const budget = new Budget()
    budgets.set(session, budget)
    const closeIfIdle = () => void (open === 0 && session.close())
    session.on('stream', (stream) => {
      open++
      countFrames(stream, budget)
      stream.once('close', () => {
        open--
        if (draining?.aborted) closeIfIdle()
      })
    })
    session.setTimeout(sessionIdleMs)
    session.on('timeout', closeIfIdle)
    sessions.set(session, closeIfIdle)
    session.once('close', () => sessions.delete(session))
  })
  draining?.addEventListener('abort', () => {
    for (const closeIfIdle of [...sessions.values()]) closeIfIdle()
  })
}

const budgets = new WeakMap<object, Budget>()
const waiting = new WeakMap<Budget, (() => void)[]>()

/**
 * One read may contain hundreds of HTTP/2 requests. Those beyond a turn's share wait for the next turn. In a flood, many
 * have been reset by then and cost nothing more.
 */
function spreadOverTurns(request: IncomingMessage, response: EdgeResponse, handle: HttpsOptions['handle']): void {
  const { stream } = response as unknown as Partial<Http2ServerResponse>
  const budget = stream?.session && budgets.get(stream.session)
  if (!budget) return void handle(request, response)
  const others = waiting.get(budget)
  const work = () => {
    if (stream.destroyed) return
    budget.spend(requestSteps)
    handle(request, response)
  }
  if (others) return void others.push(work)
  if (!budget.isSpent) return void work()
  const queue = [work]
  waiting.set(budget, queue)
  const drainQueue = () => {
    while (queue.length > 0 && !budget.isSpent) queue.shift()!()
    if (queue.length > 0) budget.later(drainQueue)
    else waiting.delete(budget)
  }
  budget.later(drainQueue)
}

/**
 * Node calls back for every DATA frame, even before the request is read, and a frame may contain a single byte. Node
 * and nghttp2 limit empty frames and other kinds.
 */
function countFrames(stream: ServerHttp2Stream, budget: Budget): void {
  const push = stream.push
  stream.push = function (chunk: Buffer | null, encoding) {
    if (chunk !== null && !budget.count(1, chunk.length)) {
      stream.session?.destroy(new Error('the client floods'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
      return false
    }
    return push.call(this, chunk, encoding)
  }
}

function connectionsOf(server: Http2SecureServer): Set<Socket> {
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  return connections
}
