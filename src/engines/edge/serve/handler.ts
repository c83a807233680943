// Handles requests and upgrades: finds the host's deployment, then serves its file or proxies to its server.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { StoreUnavailable } from '../../../platform/artifacts/artifacts.ts'
import { endWithResponse } from '../../../platform/http/final-response.ts'
import type { DrainSignal } from '../../../platform/observe/draining.ts'
import { edgeAt } from '../../../schemas/traffic-columns.ts'
import { addVary, inOrder } from '../answer/header-changes.ts'
import { sendUnknownHost } from '../answer/pages.ts'
import { type Responder, storeRetrySeconds } from '../answer/respond.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import type { Previews } from '../guards/previews.ts'
import { basicChallenge, createGuards } from '../guards/site-guards.ts'
import { deploymentOf, remember } from '../guards/skew.ts'
import { destinationOf, hasOneHost, isEncrypted, pathOf } from '../hosts/host-header.ts'
import type { RefreshWait } from '../hosts/refresh-wait.ts'
import { acceptsHtml, resolve } from '../hosts/resolve.ts'
import type { ServerProjects } from '../hosts/server-projects.ts'
import type { Site, Sites } from '../hosts/sites.ts'
import type { Snapshot } from '../hosts/snapshot.ts'
import type { Host, HostEntry, Redirect, Serving, Target } from '../hosts/targets.ts'
import { countResponse, type Traffic } from '../hosts/traffic.ts'
import type { EdgeMetrics } from '../observe/metrics.ts'
import { loggedPath, type RequestLog } from '../observe/request-log.ts'
import { type Encryption, sendChallenge, sendRedirect, sendToHttps, strictTransport } from './encryption.ts'
import { createExchanges } from './exchanges.ts'

export type HandlerOptions = {
  /** Null until loaded. */
  state: { readonly snapshot: Snapshot | null; readonly encryption: Encryption | null }
  sites: Sites
  respond: Responder
  metrics: EdgeMetrics
  servers: ServerProjects | undefined
  waitForRefresh: RefreshWait
  previews: Previews
  requests: RequestLog
  traffic: Traffic
  /** The origin of a host over plain HTTP. */
  plainOrigin(host: string): string
  /** Aborted while the process drains. */
  draining?: DrainSignal | undefined
  log: Logger
}

export type Handler = {
  handle(request: IncomingMessage, response: EdgeResponse): void
  /** Handles the `upgrade` event of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Ends open responses and WebSockets of hosts that are now barred. */
  endBarred(): void
}

// An unknown path of a single-page app is a page for browsers and a 404 for other clients.
const varyByAccept = addVary('accept')

// nginx's status for visitors who disconnect before the response.
const clientClosedRequest = 499

type Redirected = { host: string; url: string; found: Host; redirect: Redirect }

type Visit = { host: string; url: string; target: Target; serving: Serving | undefined }

export function createHandler(options: HandlerOptions): Handler {
  const {
    state,
    sites,
    respond,
    metrics,
    servers,
    waitForRefresh,
    previews,
    requests,
    traffic,
    plainOrigin,
    draining,
    log,
  } = options
  const exchanges = createExchanges()
  const admits = createGuards()
  const proxied = new WeakSet<ServerResponse>()
  const isBarred = (host: string) => state.snapshot?.find(host)?.barred === true

  function handle(request: IncomingMessage, response: EdgeResponse): void {
    const startedMs = performance.now()
    // Sends `Connection: close`; HTTP/2 uses GOAWAY instead.
    if (draining?.aborted) response.shouldKeepAlive = false
    requests.follow(request, response)
    // One listener for everything: proxied responses have many, and Node warns of more than ten.
    response.once('close', () => measure(response, startedMs))
    attempt(request, response, false)
  }

  function measure(response: EdgeResponse, startedMs: number): void {
    const isProxied = proxied.has(response)
    // Proxied responses are counted at the end, when their status is known.
    if (isProxied) metrics.count(response, 0)
    const elapsedMs = metrics.observe(isProxied ? 'server' : 'full', startedMs)
    const { tally, headMs, statusCode, writtenBytes } = response
    if (!tally) return
    if (headMs === 0) countResponse(tally, clientClosedRequest, 0, elapsedMs)
    else countResponse(tally, statusCode, writtenBytes, headMs - startedMs)
  }

  function attempt(request: IncomingMessage, response: EdgeResponse, isRetry: boolean): void {
    // The client disconnected during the refresh.
    if (isRetry && (response.destroyed || response.closed)) return
    try {
      route(request, response, isRetry)
    } catch (err) {
      fail(request, response, err)
    }
  }

  function route(request: IncomingMessage, response: EdgeResponse, looked: boolean): void {
    const { host, url } = destinationOf(request)
    // With two Host headers, a proxy in front of the edge could pick the other one.
    if (host === null || !hasOneHost(request)) return void respond.page(response, 'badHost')
    if (isMisdirected(request, host)) return void respond.page(response, 'misdirected')
    const { snapshot, encryption } = state
    const challenge = encryption?.challengeAt(url)
    if (challenge !== undefined) return void metrics.count(response, sendChallenge(request, response, challenge))
    const entry = snapshot?.findEntry(host)
    if (entry) response.tally = traffic.of(entry)
    const found = entry?.host
    if (found?.barred) return void sendBarred(request, response)
    // Read once, so that a single deployment serves this request even if production moves.
    const target = found?.target
    if (!target && !found?.redirect && !looked) {
      const refreshed = waitForRefresh()
      if (refreshed) return void refreshed.then(() => attempt(request, response, true))
    }
    if (!found) return void metrics.count(response, sendUnknownHost(response, host))
    if (found.redirect) return void redirectHost(request, response, { host, url, found, redirect: found.redirect })
    if (!isEncrypted(request)) {
      const location = encryption?.locationOf(host, url)
      if (location) return void metrics.count(response, sendToHttps(request, response, location))
    } else if (encryption?.isStrict(found, host)) response.setHeader('strict-transport-security', strictTransport)
    if (found.gate && !previews.admits(request, response, { url, found })) return
    if (!target) return void respond.page(response, 'nothingDeployed')
    const visit = { host, url, target, serving: found.serving }
    if (found.pins) return void handlePinned(request, response, visit, found)
    handleRequest(request, response, visit)
  }

  /** Serves the deployment of the visitor's page, unless the current one requires a password that the old one lacks. */
  function handlePinned(request: IncomingMessage, response: EdgeResponse, visit: Visit, found: Host): void {
    const current = visit.target
    const target = deploymentOf(request, { url: visit.url, found, current }, state.snapshot!)
    const respondWith = (target: Target) => {
      remember(request, response, { url: visit.url, target, current })
      handleRequest(request, response, { ...visit, target })
    }
    if (target.deploymentId === current.deploymentId) return void respondWith(current)
    const known = sites.get(current.deploymentId)
    const loaded = known ? Promise.resolve(known) : sites.load(current.deploymentId)
    loaded
      .then((site) => respondWith(site?.guards.length === 0 ? target : current))
      .catch((err) => fail(request, response, err))
  }

  /** Redirects to the same path on another host, directly to HTTPS if it has a certificate. */
  function redirectHost(
    request: IncomingMessage,
    response: ServerResponse,
    { host, url, found, redirect }: Redirected,
  ): void {
    const { encryption } = state
    if (isEncrypted(request) && encryption?.isStrict(found, host)) {
      response.setHeader('strict-transport-security', strictTransport)
    }
    const location = encryption?.locationOf(redirect.host, url) ?? `${plainOrigin(redirect.host)}${pathOf(url)}`
    // Otherwise browsers would cache the redirect forever.
    const caching = 'public, max-age=0, must-revalidate'
    metrics.count(response, sendRedirect(request, response, { location, status: redirect.status, caching }))
  }

  /** Comes before any redirect. We don't read a body, so the connection can't be reused. */
  function sendBarred(request: IncomingMessage, response: ServerResponse): void {
    const bodiless = request.method === 'GET' || request.method === 'HEAD'
    respond.page(response, 'barred', bodiless ? [] : ['connection', 'close'])
  }

  const isMisdirected = (request: IncomingMessage, host: string) =>
    isEncrypted(request) && (state.encryption?.isMisdirected(request.socket as TLSSocket, host) ?? true)

  function handleRequest(request: IncomingMessage, response: EdgeResponse, visit: Visit): void {
    const { host, target, serving } = visit
    const site = sites.get(target.deploymentId, serving?.cleanUrls)
    if (site) return void serve(request, response, visit, site)
    sites
      .load(target.deploymentId, serving?.cleanUrls)
      .then((site) => {
        // The host may have been barred while the site was loading.
        if (isBarred(host)) return sendBarred(request, response)
        if (site) return serve(request, response, visit, site)
        log.error({ deploymentId: target.deploymentId }, 'a deployment that is READY has no manifest here')
        void sites.report(target.deploymentId)
        respond.page(response, 'filesMissing')
      })
      .catch((err) => fail(request, response, err))
  }

  /** Makes an error fail one request instead of the process. */
  function fail(request: IncomingMessage, response: ServerResponse, err: unknown): void {
    log.error({ err, host: request.headers.host, path: loggedPath(request.url) }, 'a request could not be answered')
    respond.failure(response, err)
  }

  /** Tracks a response that may take long, to end it if its host is barred. */
  function follow(response: ServerResponse, host: string): void {
    // `close` has already been emitted.
    if (response.destroyed || response.closed) return
    const done = exchanges.add(host, () => response.destroy())
    response.once('close', done)
  }

  function serve(request: IncomingMessage, response: EdgeResponse, visit: Visit, site: Site): void {
    const { host, url, target, serving } = visit
    if (site.kind === 'node') {
      proxied.add(response)
      follow(response, host)
      if (servers) servers.proxy(request, response, target)
      else respond.page(response, 'noServer')
      return
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      // Closing the connection saves the transfer of a body that we don't read.
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
    const { accept, 'accept-language': language } = request.headers
    const isApp = serving?.spaFallback ?? site.isApp
    const asked = { language, asApp: isApp && acceptsHtml(accept) }
    const found = resolve(site, path, mark < 0 ? '' : url.slice(mark), asked)
    if (isApp && !site.routes.has(path)) response.changeHeaders = inOrder(response.changeHeaders, varyByAccept)
    const admitted = site.plain || admits(request, response, { projectId: target.projectId, site, path, found })
    if (admitted === false) return void respond.page(response, 'unauthorized', basicChallenge)
    if (admitted !== true) return void respond.page(response, 'tooManyAttempts', ['retry-after', String(admitted)])
    if (!found) respond.page(response, 'notFound')
    else if (found.kind === 'redirect') respond.redirect(response, found)
    else {
      respond.file(request, response, found.variants ?? site.variantsOf(found, path), found.status)
      if (!response.writableEnded) follow(response, host)
    }
  }

  /** Accepts WebSockets of server projects. */
  async function acceptUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { host } = destinationOf(request)
    if (host === null || !hasOneHost(request)) return void refuse(socket, '400 Bad Request')
    if (isMisdirected(request, host)) return void refuse(socket, '421 Misdirected Request')
    const find = () => state.snapshot?.findEntry(host)
    let entry = find()
    if (!entry?.host.target && !isBarred(host)) {
      await waitForRefresh()
      entry = find()
    }
    const shows = entry?.host
    const target =
      shows?.target && shows.pins
        ? deploymentOf(request, { url: request.url!, found: shows, current: shows.target }, state.snapshot!)
        : shows?.target
    const answered = followUpgrade(socket, entry)
    let storeUnavailable = false
    const load = (id: string) =>
      sites.load(id).catch((err) => {
        storeUnavailable = err instanceof StoreUnavailable
        return null
      })
    const site = target && (sites.get(target.deploymentId) ?? (await load(target.deploymentId)))
    if (isBarred(host)) {
      answered(403)
      return void refuse(socket, '403 Forbidden')
    }
    // Looked up again, because protection may have been turned on meanwhile.
    const shown = find()?.host
    if (shown && !previews.admitsUpgrade(request, shown)) {
      answered(401)
      return void refuse(socket, '401 Unauthorized')
    }
    if (storeUnavailable) {
      answered(503)
      return void refuse(socket, `503 Service Unavailable\r\nretry-after: ${storeRetrySeconds}`)
    }
    if (!servers || !target || site?.kind !== 'node') {
      answered(404)
      return void refuse(socket, '404 Not Found')
    }
    // The visitor disconnected while the site was loading.
    if (socket.destroyed) return
    const done = exchanges.add(host, () => socket.destroy())
    socket.once('close', done)
    servers.upgrade(request, socket, head, { ...target, answered })
  }

  /** Counts the bytes sent when the connection closes. Returns a function that counts the status of the response. */
  function followUpgrade(socket: Duplex, entry: HostEntry | undefined): (status: number) => void {
    if (!entry) return () => {}
    socket.once('close', () => {
      const sentBytes = (socket as Socket).bytesWritten - beforeBytes
      traffic.of(entry).open()[edgeAt.bytes]! += sentBytes
    })
    const beforeBytes = (socket as Socket).bytesWritten
    return (status) => countResponse(traffic.of(entry), status, 0, null)
  }

  function refuse(socket: Duplex, status: string): void {
    endWithResponse(socket, `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
  }

  return {
    handle,
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      acceptUpgrade(request, socket, head).catch((err) => {
        log.error({ err, host: request.headers.host }, 'an upgrade could not be answered')
        socket.destroy()
      })
    },
    endBarred: () => exchanges.endBarred(isBarred),
  }
}
