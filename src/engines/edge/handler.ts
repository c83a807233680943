// Answers requests and upgrades: from the host to a deployment, and from there to a file of it or to its server.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { type Encryption, isEncrypted, sendChallenge, sendToHttps, strictTransport } from './encryption.ts'
import { destinationOf, hasOneHost } from './host-header.ts'
import type { Target } from './hosts.ts'
import type { EdgeMetrics } from './metrics.ts'
import { sendUnknownHost } from './pages.ts'
import { resolve } from './resolve.ts'
import type { Responder } from './respond.ts'
import type { SecondLook } from './second-look.ts'
import type { Servers } from './servers/servers.ts'
import type { Site, Sites } from './sites.ts'
import type { Snapshot } from './snapshot.ts'

export type HandlerOptions = {
  /** Null until they are loaded. */
  state: { readonly snapshot: Snapshot | null; readonly encryption: Encryption | null }
  sites: Sites
  respond: Responder
  metrics: EdgeMetrics
  servers: Servers | undefined
  lookAgain: SecondLook
  log: Logger
}

export type Handler = {
  handle(request: IncomingMessage, response: ServerResponse): void
  /** For the event `upgrade` of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
}

export function createHandler(options: HandlerOptions): Handler {
  const { state, sites, respond, metrics, servers, lookAgain, log } = options

  function handle(request: IncomingMessage, response: ServerResponse): void {
    if (log.isLevelEnabled('debug')) logWhenDone(request, response)
    attempt(request, response, false)
  }

  function attempt(request: IncomingMessage, response: ServerResponse, looked: boolean): void {
    // Gone while the table was read.
    if (looked && (response.destroyed || response.closed)) return
    try {
      route(request, response, looked)
    } catch (err) {
      fail(request, response, err)
    }
  }

  function route(request: IncomingMessage, response: ServerResponse, looked: boolean): void {
    const { host, url } = destinationOf(request)
    // Two Host headers are a way to be one site to a proxy in front and another one here.
    if (host === null || !hasOneHost(request)) return void respond.page(response, 'badHost')
    if (isMisdirected(request, host)) return void respond.page(response, 'misdirected')
    const { snapshot, encryption } = state
    const challenge = encryption?.challengeAt(url)
    if (challenge !== undefined) return void metrics.count(response, sendChallenge(request, response, challenge))
    const found = snapshot?.find(host)
    // Read once: whatever becomes of production meanwhile, this request is answered by this deployment alone.
    const target = found?.target
    if (!target && !looked) {
      const look = lookAgain()
      if (look) return void look.then(() => attempt(request, response, true))
    }
    if (!found) return void metrics.count(response, sendUnknownHost(response, host))
    if (!isEncrypted(request)) {
      const location = encryption?.locationOf(host, url)
      if (location) return void metrics.count(response, sendToHttps(request, response, location))
    } else if (encryption?.isStrict(found, host)) response.setHeader('strict-transport-security', strictTransport)
    if (!target) return void respond.page(response, 'nothingDeployed')
    handleRequest(request, response, target, url)
  }

  const isMisdirected = (request: IncomingMessage, host: string) =>
    isEncrypted(request) && (state.encryption?.isMisdirected(request.socket as TLSSocket, host) ?? true)

  function handleRequest(request: IncomingMessage, response: ServerResponse, target: Target, url: string): void {
    const site = sites.get(target.deploymentId)
    if (site) return void serve(request, response, target, site, url)
    sites
      .load(target.deploymentId)
      .then((site) => {
        if (site) return serve(request, response, target, site, url)
        log.error({ deploymentId: target.deploymentId }, 'a deployment that is READY has no manifest here')
        respond.page(response, 'filesMissing')
      })
      .catch((err) => fail(request, response, err))
  }

  /** A fault of ours costs one answer, not the process that serves everyone. */
  function fail(request: IncomingMessage, response: ServerResponse, err: unknown): void {
    log.error({ err, host: request.headers.host, url: request.url }, 'a request could not be answered')
    if (response.headersSent) response.destroy()
    else respond.page(response, 'failed')
  }

  function serve(request: IncomingMessage, response: ServerResponse, target: Target, site: Site, url: string): void {
    if (site.kind === 'node') {
      response.once('close', () => metrics.count(response, 0))
      if (servers) servers.proxy(request, response, target)
      else respond.page(response, 'noServer')
      return
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      // Closing spares both sides a body that nobody reads.
      return void respond.page(response, 'method', ['allow', 'GET, HEAD', 'connection', 'close'])
    }
    const mark = url.indexOf('?')
    let path = mark < 0 ? url : url.slice(0, mark)
    if (path.includes('%')) {
      try {
        path = decodeURIComponent(path)
      } catch {
        return void respond.page(response, 'badPath')
      }
    }
    const found = resolve(site, path, mark < 0 ? '' : url.slice(mark))
    if (!found) respond.page(response, 'notFound')
    else if (found.kind === 'redirect') respond.redirect(response, found)
    else respond.file(request, response, found.variants ?? site.variantsOf(found, path), found.status)
  }

  function logWhenDone(request: IncomingMessage, response: ServerResponse): void {
    const startedMs = performance.now()
    response.once('close', () => {
      const { method, headers } = request
      const durationMs = Math.round((performance.now() - startedMs) * 100) / 100
      // The query may hold anything a visitor typed.
      const path = request.url?.split('?', 1)[0]
      log.debug({ method, host: headers.host, path, status: response.statusCode, durationMs }, 'edge request')
    })
  }

  /** WebSockets of server projects; files have nothing to say on one. */
  async function join(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { host } = destinationOf(request)
    if (host === null || !hasOneHost(request)) return void refuse(socket, '400 Bad Request')
    if (isMisdirected(request, host)) return void refuse(socket, '421 Misdirected Request')
    const find = () => state.snapshot?.find(host)?.target
    let target = find()
    if (!target) {
      await lookAgain()
      target = find()
    }
    const site = target && (sites.get(target.deploymentId) ?? (await sites.load(target.deploymentId).catch(() => null)))
    if (servers && target && site?.kind === 'node') return servers.upgrade(request, socket, head, target)
    refuse(socket, '404 Not Found')
  }

  function refuse(socket: Duplex, status: string): void {
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
  }

  return {
    handle,
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      void join(request, socket, head)
    },
  }
}
