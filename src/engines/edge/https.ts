// The edge's HTTPS server: one port for HTTP/2 and HTTP/1.1, the certificate chosen by the name the client asks for.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import { type AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { type CertificateStore, handshakeTimeoutMs, minVersion } from '../../certificates/store.ts'
import { Http2Request, Http2Response } from './http2-messages.ts'
import { answerPlainRequests, type PlainOptions } from './plain-connections.ts'

export type HttpsOptions = {
  certificates: CertificateStore
  handle(request: IncomingMessage, response: ServerResponse): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Of HTTP/1.1, as at the port without encryption. */
  http1: Pick<ServerOptions, 'headersTimeout' | 'keepAliveTimeout' | 'shouldUpgradeCallback'>
  plain: PlainOptions
  log: Logger
}

export type HttpsServer = {
  listen(port: number, host: string): Promise<number>
  /** Requests under way may end within the time. */
  close(drainMs: number): Promise<void>
}

const sessionIdleMs = 60_000
// Browsers use a hundred at most; every one of them is memory that a stranger asks for.
const mostStreams = 128
const mostHeaderBytes = 16 << 10
// Whoever has the key of a ticket reads the TLS 1.2 sessions that were resumed with it, so none lives long.
const ticketKeysMs = 12 * 60 * 60_000

export function createHttpsServer({ certificates, handle, upgrade, http1, plain, log }: HttpsOptions): HttpsServer {
  // Node hands HTTP/1.1 its own classes and HTTP/2 those here. What is given to `tls` has no certificate: it is what a
  // client gets who names no host, and that is an alert.
  const server = createSecureServer(
    {
      allowHTTP1: true,
      http1Options: http1,
      Http2ServerRequest: Http2Request,
      Http2ServerResponse: Http2Response,
      settings: { maxConcurrentStreams: mostStreams, maxHeaderListSize: mostHeaderBytes, enablePush: false },
      minVersion,
      handshakeTimeout: handshakeTimeoutMs,
      SNICallback(this: unknown, name, callback) {
        const context = certificates.contextOf(name.toLowerCase())
        if (context) callback(null, context)
        else refuse(this, callback)
      },
    },
    handle as never,
  )
  server.on('upgrade', upgrade)
  if (http1.shouldUpgradeCallback) Object.assign(server, { shouldUpgradeCallback: http1.shouldUpgradeCallback })
  // Strangers break handshakes and sessions off all day; the connection is all that ends.
  server.on('tlsClientError', (err) => log.debug({ err }, 'a TLS handshake failed'))
  server.on('sessionError', (err) => log.debug({ err }, 'an HTTP/2 session failed'))
  server.on('session', closeWhenIdle)
  const rotating = setInterval(() => server.setTicketKeys(randomBytes(48)), ticketKeysMs)
  rotating.unref()
  const connections = connectionsOf(server)
  const waiting = answerPlainRequests(server as never, 'secureConnection', plain)

  return {
    async listen(port, host) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, resolve)
      })
      return (server.address() as AddressInfo).port
    },
    async close(drainMs) {
      clearInterval(rotating)
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
 * Node ends a refused handshake without a word, or with an alert that does not tell why. Nothing is encrypted at this
 * point, so the right alert can be written beneath TLS; where Node has moved the socket there, its own alert will do.
 */
function refuse(socket: unknown, callback: (error: Error | null, context?: SecureContext) => void): void {
  const carrier = (socket as { _parent?: unknown } | undefined)?._parent
  if (!(carrier instanceof Socket)) return void callback(null)
  carrier.write(unrecognizedName)
  callback(new Error('no certificate is in service for the name'))
}

/** A session with nothing open has had its answers; one that is waiting for a server or for events has not. */
function closeWhenIdle(session: ServerHttp2Session): void {
  let open = 0
  session.on('stream', (stream) => {
    open++
    stream.once('close', () => {
      open--
    })
  })
  session.setTimeout(sessionIdleMs)
  session.on('timeout', () => {
    if (open === 0) session.close()
  })
}

function connectionsOf(server: Http2SecureServer): Set<Socket> {
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  return connections
}
