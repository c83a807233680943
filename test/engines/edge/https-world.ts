// An edge with HTTPS, an authority whose certificates it serves, and clients that believe nobody else.
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { request } from 'node:https'
import { type ConnectionOptions, connect, createSecureContext, type TLSSocket } from 'node:tls'
import type { EdgeOptions } from '../../../src/engines/edge/serve/server.ts'
import { createVault, type Vault } from '../../../src/platform/secrets/secrets.ts'
import { until } from '../../helpers/until.ts'
import { type Authority, createAuthority, type Issued, serveCertificate } from '../../tls/authority.ts'
import { type Answer, startWorld, type World } from './world.ts'

export type HttpsWorld = World & {
  vault: Vault
  authority: Authority
  /** A verified domain of the project with a certificate for these names, by default its own, in service. */
  secure(project: string, domain: string, names?: string[]): Promise<Issued>
  /** Resolves when the handshake is done and the chain and the name are good. */
  handshake(servername: string, options?: ConnectionOptions): Promise<TLSSocket>
  /** The serial number of the certificate that is shown for a name; null if none is that can be believed. */
  serialAt(servername: string): Promise<string | null>
  /** Over HTTP/1.1, on a connection of its own. */
  fetch(
    host: string,
    path: string,
    options?: { servername?: string; method?: string; headers?: Record<string, string> },
  ): Promise<Answer>
  session(servername: string): Promise<ClientHttp2Session>
}

export async function startHttpsWorld(options: Partial<EdgeOptions> = {}): Promise<HttpsWorld> {
  const vault = createVault(Buffer.alloc(32, 7))
  const authority = await createAuthority()
  const world = await startWorld({ vault, ...options })
  const { httpsPort: port, db } = world
  const sessions = new Set<ClientHttp2Session>()
  // Made once: reading the root anew takes longer than the handshake.
  const secureContext = createSecureContext({ ca: authority.rootPem })

  const handshake: HttpsWorld['handshake'] = (servername, options = { secureContext }) =>
    new Promise((resolve, reject) => {
      const target = { port, host: '127.0.0.1', servername, ca: authority.rootPem, ...options }
      const socket = connect(target, () => resolve(socket))
      socket.once('error', reject)
    })

  const serialAt: HttpsWorld['serialAt'] = (servername) =>
    handshake(servername).then(
      (socket) => {
        const { serialNumber } = socket.getPeerCertificate()
        socket.destroy()
        return serialNumber
      },
      () => null,
    )

  return {
    ...world,
    vault,
    authority,
    handshake,
    serialAt,
    async secure(project, domain, names = [domain]) {
      await world.attach(project, domain)
      const issued = await authority.issue(names)
      await serveCertificate(db, vault, domain, issued)
      await until(async () => (await serialAt(domain.replace('*', 'any'))) === serialOf(issued))
      return issued
    },
    fetch: (host, path, { servername = host, method = 'GET', headers = {} } = {}) =>
      new Promise((resolve, reject) => {
        const target = { port, host: '127.0.0.1', servername, secureContext, agent: false as const }
        const sent = request({ ...target, path, method, headers: { host, ...headers } }, async (response) => {
          const body = Buffer.concat(await response.toArray())
          resolve({ status: response.statusCode!, headers: response.headers, body, text: body.toString() })
        })
        sent.on('error', reject).end()
      }),
    session: (servername) =>
      new Promise((resolve, reject) => {
        const session = connectHttp2(`https://${servername}:${port}`, {
          ca: authority.rootPem,
          servername,
          lookup: (_host, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }] as never, 4),
        })
        sessions.add(session)
        session.once('connect', () => resolve(session)).once('error', reject)
      }),
    async stop() {
      for (const session of sessions) session.destroy()
      await world.stop()
    },
  }
}

/** As Node writes the serial numbers of others. */
export const serialOf = ({ serial }: Issued) => serial.toUpperCase()

export type Http2Answer = { status: number; headers: IncomingHttpHeaders; body: Buffer; text: string }

/** One request on a session of HTTP/2. */
export function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: Buffer | string,
): Promise<Http2Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers, { endStream: body === undefined && headers[':method'] !== 'POST' })
    let answered: IncomingHttpHeaders = {}
    stream.on('response', (headers) => {
      answered = headers
    })
    const chunks: Buffer[] = []
    stream.on('data', (chunk) => chunks.push(chunk))
    stream.on('error', reject)
    stream.on('end', () => {
      const bytes = Buffer.concat(chunks)
      resolve({ status: Number(answered[':status']), headers: answered, body: bytes, text: bytes.toString() })
    })
    if (body !== undefined || headers[':method'] === 'POST') stream.end(body)
  })
}
