// The encrypted side of the edge: the port, the way to it, and what its connections may be used for.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { type Challenges, challengeFolder, createChallenges } from '../../certificates/challenges.ts'
import { type CertificateStore, createCertificateStore } from '../../certificates/store.ts'
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import type { Notifications } from '../../notifications.ts'
import type { Vault } from '../../secrets.ts'
import type { Host } from './hosts.ts'
import { createHttpsServer, type HttpsOptions } from './https.ts'

export type EncryptionOptions = Omit<HttpsOptions, 'certificates'> & {
  config: Pick<Config, 'host' | 'edge' | 'production'>
  db: Database
  notifications: Notifications
  vault: Vault
}

export type Encryption = {
  readonly port: number
  readonly certificates: CertificateStore
  /** The answer to the challenge of a certificate authority, which may come for hosts that show nothing yet. */
  challengeAt(url: string): string | undefined
  /** Where a request that came without encryption has to go, null if it is answered as it came. */
  locationOf(host: string, url: string): string | null
  /** Whether browsers are told to stay with HTTPS at this host. */
  isStrict(found: Host, host: string): boolean
  /** Whether a request came on a connection for another host whose certificate is not good for this one. */
  isMisdirected(socket: TLSSocket, host: string): boolean
  close(drainMs: number): Promise<void>
}

export const isEncrypted = (request: IncomingMessage) => (request.socket as TLSSocket).encrypted === true

/** One year, as those who collect such sites for browsers ask for; not for names below, which may be elsewhere. */
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
  // Whatever the port is behind a firewall or in a container, in production the world sees 443 (as in every `url`).
  const suffix = config.production || port === 443 ? '' : `:${port}`
  const own = `.${config.edge.domain.toLowerCase()}`
  const isPlatform = (host: string) => host.endsWith(own)

  return {
    port,
    certificates,
    challengeAt: (url) => challenges!.find(url),
    locationOf(host, url) {
      if (url.startsWith(challengeFolder)) return null
      // In development the platform's own hosts are plain HTTP: nobody's browser knows the authority there.
      if (isPlatform(host) && !config.production) return null
      // Before there is a certificate, and after it ran out, a site in the clear is better than none.
      if (!certificates.isInService(host)) return null
      // The parser lets bytes above ASCII through; a header is no place for them.
      const path = url.startsWith('/') ? url.replace(/[^\x21-\x7e]/g, encodeURIComponent) : '/'
      return `https://${host}${suffix}${path}`
    },
    // Hosts of the platform's own domain are not the project's to bind.
    isStrict: (found, host) => found.hsts && !isPlatform(host),
    isMisdirected({ servername }, host) {
      if (servername === host) return false
      return typeof servername !== 'string' || !certificates.covers(servername.toLowerCase(), host)
    },
    close,
  }
}

/** Returns how many bytes the body has, like the pages. */
export function sendChallenge(request: IncomingMessage, response: ServerResponse, value: string): number {
  const head = request.method === 'HEAD'
  const length = String(Buffer.byteLength(value))
  response.writeHead(200, ['content-type', 'text/plain', 'cache-control', 'no-store', 'content-length', length])
  response.end(head ? undefined : value)
  return head ? 0 : value.length
}

/** 308 keeps method and body, which the client sends again: what of it comes here, nobody reads. */
export function sendToHttps(request: IncomingMessage, response: ServerResponse, location: string): number {
  const headers = ['location', location, 'cache-control', 'no-store', 'content-length', '0']
  if (request.method !== 'GET' && request.method !== 'HEAD') headers.push('connection', 'close')
  response.writeHead(308, headers)
  response.end()
  return 0
}
