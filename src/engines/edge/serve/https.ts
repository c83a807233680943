// The edge's HTTPS server: one port for HTTP/2 and HTTP/1.1, with the certificate chosen by SNI.
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
  /** Options for HTTP/1.1, the same as at the plain HTTP port, with its class of responses. */
  http1: Pick<ServerOptions, 'headersTimeout' | 'keepAliveTimeout' | 'shouldUpgradeCallback'>
  plain: PlainOptions
  shares: ConnectionShares
  /** Default: keys of its own. */
  tickets?: TicketKeys | undefined
  /** Aborted while the process drains. */
  draining?: DrainSignal
  log: Logger
}

export type HttpsServer = {
  listen(port: number, host: string): Promise<number>
  /** Whether it answers here: asked by a request to itself until it does. */
  answers(): Promise<boolean>
  /** Gives requests in flight up to `drainMs` to complete. */
  close(drainMs: number): Promise<void>
}

const sessionIdleMs = 60_000
// Browsers use at most a hundred; each stream costs memory that any client can claim.
const maxStreams = 128
const maxHeaderBytes = 16 << 10
// Four pages of a browser, all cancelled at once. Node creates its objects for a request before anyone can refuse it, so
// this is what resets may cost before the session ends; Node's default is 1,000.
const maxResets = 512
const resetsPerSecond = 33

export function createHttpsServer(options: HttpsOptions): HttpsServer {
  const { certificates, handle, upgrade, http1, plain, shares, tickets = createTicketKeys(), draining, log } = options
  // Node uses its own classes for HTTP/1.1 and these for HTTP/2. There is no default certificate: a client without SNI
  // gets an alert.
  const server = createSecureServer(
    {
      allowHTTP1: true,
      http1Options: http1,
      Http2ServerRequest: Http2Request,
      // Node's types of servers are those of its own class.
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
    ((request: IncomingMessage, response: EdgeResponse) => takeTurns(request, response, handle)) as never,
  )
  server.on('upgrade', upgrade)
  refuseOnceReplaced(server, draining)
  if (http1.shouldUpgradeCallback) Object.assign(server, { shouldUpgradeCallback: http1.shouldUpgradeCallback })
  // Clients abort handshakes and sessions all the time; only their connection ends.
  server.on('tlsClientError', (err) => log.debug({ err }, 'a TLS handshake failed'))
  server.on('sessionError', (err) => log.debug({ err }, 'an HTTP/2 session failed'))
  boundSessions(server, draining)
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
      // Only now: in a worker process, listening sets keys of the moment in which the first one listened.
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

// The alert `unrecognized_name` (RFC 6066, 3), fatal, as a record of its own.
const unrecognizedName = Buffer.from([21, 3, 3, 0, 2, 2, 112])

/**
 * Node ends a refused handshake without an alert, or with one that does not say why. Nothing is encrypted yet, so the
 * right alert can be written to the underlying socket; if that is not accessible, Node's own alert is sent.
 */
function refuse(socket: unknown, callback: (error: Error | null, context?: SecureContext) => void): void {
  const carrier = (socket as { _parent?: unknown } | undefined)?._parent
  if (!(carrier instanceof Socket)) return void callback(null)
  carrier.write(unrecognizedName)
  callback(new Error('no certificate is in service for the name'))
}

/**
 * Ends sessions that flood. Closes idle sessions only: one with open streams may still wait for a server or for events. While the process stops,
 * a session is closed as soon as it is idle: GOAWAY tells the client to open another one.
 */
function boundSessions(server: Http2SecureServer, draining: DrainSignal | undefined): void {
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
 * One read may hold hundreds of requests of HTTP/2. Those beyond the share of a turn wait for the next one, and many of
 * a flood are reset by then and cost nothing more.
 */
function takeTurns(request: IncomingMessage, response: EdgeResponse, handle: HttpsOptions['handle']): void {
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
  const goOn = () => {
    while (queue.length > 0 && !budget.isSpent) queue.shift()!()
    if (queue.length > 0) budget.later(goOn)
    else waiting.delete(budget)
  }
  budget.later(goOn)
}

/**
 * Node calls back for every DATA frame, also of a request that is not read yet, and a frame may have one octet. Frames
 * without any, and the other kinds, are bounded by Node and nghttp2.
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
