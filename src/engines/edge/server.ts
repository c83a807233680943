// The edge's HTTP server: from the Host header to a deployment, and from there to a file of it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Artifacts } from '../../artifacts.ts'
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import type { Notifications } from '../../notifications.ts'
import { createBodies } from './bodies.ts'
import { destinationOf, hasOneHost } from './host-header.ts'
import type { Target } from './hosts.ts'
import { createEdgeMetrics, type EdgeMetrics } from './metrics.ts'
import { sendUnknownHost } from './pages.ts'
import { createPlainAnswers } from './plain-answer.ts'
import { answerPlainRequests } from './plain-connections.ts'
import { resolve } from './resolve.ts'
import { createResponder } from './respond.ts'
import type { Servers } from './servers/servers.ts'
import { createSites, type Site } from './sites.ts'
import { createSnapshot, type Snapshot } from './snapshot.ts'
import { createTakeovers } from './takeovers.ts'

export type EdgeOptions = {
  config: Pick<Config, 'host' | 'edge'>
  db: Database
  notifications: Notifications
  artifacts: Artifacts
  log: Logger
  /** Left out, the edge makes its own. */
  registry?: Registry
  servers?: Servers
  /**
   * Asked before the host is looked up; true means that it has answered. The place for ACME challenges, which come for
   * hosts that show nothing yet, and after them for the redirect to HTTPS.
   */
  intercept?(request: IncomingMessage, response: ServerResponse, host: string): boolean
}

export type Edge = {
  /** Loads the hosts, then opens the port. */
  listen(): Promise<{ port: number }>
  /** Answers one request: what a server of another kind (HTTPS) hands its requests to, once `listen` is done. */
  handle(request: IncomingMessage, response: ServerResponse): void
  /** Null until `listen`. */
  readonly snapshot: Snapshot | null
  metrics: EdgeMetrics
  close(): Promise<void>
}

// A visitor's headers fit into one packet or two; whoever needs longer holds a connection for its own sake.
const headersTimeoutMs = 15_000
const keepAliveTimeoutMs = 30_000
// Large files under way get this long when the edge stops.
const drainMs = 10_000

export function createEdge(options: EdgeOptions): Edge {
  const { config, db, notifications, artifacts, log, servers, intercept } = options
  let snapshot: Snapshot | null = null
  const metrics = createEdgeMetrics(options.registry, () => snapshot?.size ?? 0)
  const sites = createSites(artifacts, log)
  const bodies = createBodies(artifacts)
  const respond = createResponder(bodies, metrics, log)

  function handle(request: IncomingMessage, response: ServerResponse): void {
    if (log.isLevelEnabled('debug')) logWhenDone(request, response)
    try {
      route(request, response)
    } catch (err) {
      fail(request, response, err)
    }
  }

  function route(request: IncomingMessage, response: ServerResponse): void {
    const { host, url } = destinationOf(request)
    // Two Host headers are a way to be one site to a proxy in front and another one here.
    if (host === null || !hasOneHost(request)) return void respond.page(response, 'badHost')
    if (intercept?.(request, response, host)) return
    const found = snapshot?.find(host)
    if (!found) return void metrics.count(response, sendUnknownHost(response, host))
    // Read once: whatever becomes of production meanwhile, this request is answered by this deployment alone.
    const { target } = found
    if (!target) return void respond.page(response, 'nothingDeployed')
    handleRequest(request, response, target, url)
  }

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
  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { host } = destinationOf(request)
    const target = host !== null && hasOneHost(request) ? snapshot?.find(host)?.target : null
    const site = target && (sites.get(target.deploymentId) ?? (await sites.load(target.deploymentId).catch(() => null)))
    if (servers && target && site?.kind === 'node') return servers.upgrade(request, socket, head, target)
    socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  }

  const timeouts = { headersTimeout: headersTimeoutMs, keepAliveTimeout: keepAliveTimeoutMs }
  // Other upgrades (curl offers h2c) are for an HTTP answer to ignore.
  const shouldUpgradeCallback = (request: IncomingMessage) => /^websocket$/i.test(request.headers.upgrade ?? '')
  const server = createServer({ ...timeouts, shouldUpgradeCallback }, handle)
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    void upgrade(request, socket, head)
  })

  // Nine of ten requests are plain: answered on the socket, as `handle` would. What `intercept` may want goes its way.
  const answer = createPlainAnswers({
    sites,
    bodies,
    metrics,
    keepAliveSeconds: keepAliveTimeoutMs / 1000,
    find: (host) => (intercept || log.isLevelEnabled('debug') ? null : (snapshot?.find(host)?.target ?? null)),
  })
  const plain = answerPlainRequests(server, 'connection', {
    firstTimeoutMs: headersTimeoutMs,
    nextTimeoutMs: keepAliveTimeoutMs,
    answer,
  })

  return {
    handle,
    metrics,
    get snapshot() {
      return snapshot
    },
    async listen() {
      snapshot = await createSnapshot(db, notifications, config.edge.domain, log, createTakeovers(servers, log))
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(config.edge.httpPort, config.host, resolve)
      })
      return { port: (server.address() as AddressInfo).port }
    },
    async close() {
      await snapshot?.close()
      // Side by side: open WebSockets would keep the server waiting, and requests under way need their process.
      const stopped = servers?.close()
      if (!server.listening) return stopped
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      plain.close()
      const timer = setTimeout(() => server.closeAllConnections(), drainMs)
      await Promise.all([closed, stopped])
      clearTimeout(timer)
    },
  }
}
