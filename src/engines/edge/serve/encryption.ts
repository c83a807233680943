// HTTPS on the edge: its port, redirects to it, HSTS, and which hosts a connection may serve.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { Config } from '../../../config.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import type { Vault } from '../../../platform/secrets/secrets.ts'
import { type Challenges, challengeFolder, createChallenges } from '../../../tls/challenges.ts'
import { type CertificateStore, createCertificateStore } from '../../../tls/store.ts'
import { pathOf } from '../hosts/host-header.ts'
import type { Host } from '../hosts/targets.ts'
import { createHttpsServer, type HttpsOptions, type HttpsServer } from './https.ts'

export type EncryptionOptions = Omit<HttpsOptions, 'certificates'> & {
  config: Pick<Config, 'host' | 'edge' | 'production'>
  db: Database
  notifications: Notifications
  vault: Vault
  snapshots?: Snapshots | undefined
  /** The platform's own hosts, which never get a customer's certificate. */
  ownHosts: ReadonlySet<string>
}

export type Encryption = {
  readonly port: number
  readonly certificates: CertificateStore
  /** The response to a certificate authority's HTTP challenge, also for hosts that don't serve anything yet. */
  challengeAt(url: string): string | undefined
  /** The HTTPS URL to which a plain HTTP request is redirected; null if it is served over HTTP. */
  locationOf(host: string, url: string): string | null
  /** Whether responses of this host carry Strict-Transport-Security. */
  isStrict(found: Host, host: string): boolean
  /** Whether the connection's certificate is invalid for the requested host. */
  isMisdirected(socket: TLSSocket, host: string): boolean
  answers: HttpsServer['answers']
  close(drainMs: number): Promise<void>
}

/** One year, as HSTS preload lists require, without subdomains, which may be hosted elsewhere. */
export const strictTransport = 'max-age=31536000'
export const strictTransportLine = `Strict-Transport-Security: ${strictTransport}\r\n`

/** Loads the certificates, then opens the port. */
export async function openEncryption(options: EncryptionOptions): Promise<Encryption> {
  const { config, db, notifications, log } = options
  const certificates = await createCertificateStore(options)
  let challenges: Challenges | null = null
  const server = createHttpsServer({ ...options, certificates })
  async function close(drainMs: number): Promise<void> {
    await Promise.all([certificates.close(), challenges?.close(), server.close(drainMs)])
  }
  let port: number
  try {
    challenges = await createChallenges(db, notifications, log)
    port = await server.listen(config.edge.httpsPort, config.host)
  } catch (error) {
    await close(0)
    throw error
  }
  // Behind a firewall or in a container the port may differ, but in production clients always use 443.
  const suffix = config.production || port === 443 ? '' : `:${port}`
  const own = `.${config.edge.domain.toLowerCase()}`
  const isPlatform = (host: string) => host.endsWith(own)

  return {
    port,
    certificates,
    challengeAt: (url) => challenges!.find(url),
    locationOf(host, url) {
      if (url.startsWith(challengeFolder)) return null
      // In development the platform's own hosts stay on HTTP: no browser trusts the development CA.
      if (isPlatform(host) && !config.production) return null
      // Without a valid certificate, HTTP is better than no site.
      if (!certificates.isInService(host)) return null
      return `https://${host}${suffix}${pathOf(url)}`
    },
    // A project may not set HSTS for hosts of the platform's own domain.
    isStrict: (found, host) => found.hsts && !isPlatform(host),
    isMisdirected({ servername }, host) {
      if (servername === host) return false
      return typeof servername !== 'string' || !certificates.covers(servername.toLowerCase(), host)
    },
    answers: server.answers,
    close,
  }
}

/** Returns the size of the body in bytes. */
export function sendChallenge(request: IncomingMessage, response: ServerResponse, value: string): number {
  const head = request.method === 'HEAD'
  const length = String(Buffer.byteLength(value))
  response.writeHead(200, ['content-type', 'text/plain', 'cache-control', 'no-store', 'content-length', length])
  response.end(head ? undefined : value)
  return head ? 0 : value.length
}

type Redirection = { location: string; status: number; caching: string }

/** Doesn't read the body, since the client sends it again. */
export function sendRedirect(
  request: IncomingMessage,
  response: ServerResponse,
  { location, status, caching }: Redirection,
): number {
  const headers = ['location', location, 'cache-control', caching, 'content-length', '0']
  if (request.method !== 'GET' && request.method !== 'HEAD') headers.push('connection', 'close')
  response.writeHead(status, headers)
  response.end()
  return 0
}

/** 308 preserves method and body. */
export function sendToHttps(request: IncomingMessage, response: ServerResponse, location: string): number {
  return sendRedirect(request, response, { location, status: 308, caching: 'no-store' })
}
