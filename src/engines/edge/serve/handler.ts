// Answers requests and upgrades: finds the deployment of the host, then serves its file or proxies to its server.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Logger } from 'pino'
import { StoreUnavailable } from '../../../platform/artifacts/artifacts.ts'
import { endWithResponse } from '../../../platform/http/final-response.ts'
import type { DrainSignal } from '../../../platform/observe/draining.ts'
import { edgeAt } from '../../../schemas/traffic-columns.ts'
import { sendUnknownHost } from '../answer/pages.ts'
import { both, varying } from '../answer/private-answers.ts'
import { type Responder, storeRetrySeconds } from '../answer/respond.ts'
import type { EdgeResponse } from '../answer/responses.ts'
import type { Previews } from '../guards/previews.ts'
import { asksForPassword, createGuards } from '../guards/site-guards.ts'
import { deploymentOf, remember } from '../guards/skew.ts'
import { destinationOf, hasOneHost, isEncrypted, pathOf } from '../hosts/host-header.ts'
import { acceptsHtml, resolve } from '../hosts/resolve.ts'
import type { SecondLook } from '../hosts/second-look.ts'
import type { ServerProjects } from '../hosts/server-projects.ts'
import type { Site, Sites } from '../hosts/sites.ts'
import type { Snapshot } from '../hosts/snapshot.ts'
import type { Host, Place, Redirect, Serving, Target } from '../hosts/targets.ts'
import { countAnswer, type Traffic } from '../hosts/traffic.ts'
import type { EdgeMetrics } from '../observe/metrics.ts'
import { loggedPath, type RequestLog } from '../observe/request-log.ts'
import { type Encryption, sendChallenge, sendRedirect, sendToHttps, strictTransport } from './encryption.ts'
import { createUnderWay } from './under-way.ts'

export type HandlerOptions = {
  /** Null until they are loaded. */
  state: { readonly snapshot: Snapshot | null; readonly encryption: Encryption | null }
  sites: Sites
  respond: Responder
  metrics: EdgeMetrics
  servers: ServerProjects | undefined
  lookAgain: SecondLook
  previews: Previews
  requests: RequestLog
  traffic: Traffic
  /** The address of a host over plain HTTP. */
  plainOrigin(host: string): string
  /** Aborted while the process drains. */
  draining?: DrainSignal | undefined
  log: Logger
}

export type Handler = {
  handle(request: IncomingMessage, response: EdgeResponse): void
  /** For the event `upgrade` of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Ends the responses and WebSockets under way of hosts that are barred by now. */
  endBarred(): void
}

// An unknown path of a single-page app is a page for some, and nothing for others.
const varyByAccept = varying('accept')

// As nginx has it: the visitor left before there was an answer.
const leftEarly = 499

/** What a request is for, and where its host sends it. */
type Redirected = { host: string; url: string; found: Host; redirect: Redirect }

/** What a request is for, and the deployment that its host shows. */
type Visit = { host: string; url: string; target: Target; serving: Serving | undefined }

export function createHandler(options: HandlerOptions): Handler {
  const {
    state,
    sites,
    respond,
    metrics,
    servers,
    lookAgain,
    previews,
    requests,
    traffic,
    plainOrigin,
    draining,
    log,
  } = options
  const underWay = createUnderWay()
  const admits = createGuards()
  const proxied = new WeakSet<ServerResponse>()
  const isBarred = (host: string) => state.snapshot?.find(host)?.barred === true

  function handle(request: IncomingMessage, response: EdgeResponse): void {
    const startedMs = performance.now()
    // The answer says `Connection: close`; HTTP/2 has GOAWAY instead.
    if (draining?.aborted) response.shouldKeepAlive = false
    requests.follow(request, response)
    // One listener for both: a proxied answer has many, and Node warns of more than ten.
    response.once('close', () => measure(response, startedMs))
    attempt(request, response, false)
  }

  function measure(response: EdgeResponse, startedMs: number): void {
    const isProxied = proxied.has(response)
    // What a server answers is counted when it has ended, because only then its status is known.
    if (isProxied) metrics.count(response, 0)
    const elapsedMs = metrics.observe(isProxied ? 'server' : 'full', startedMs)
    const { tally, headMs, statusCode, writtenBytes } = response
    if (!tally) return
    if (headMs === 0) countAnswer(tally, leftEarly, 0, elapsedMs)
    else countAnswer(tally, statusCode, writtenBytes, headMs - startedMs)
  }

  function attempt(request: IncomingMessage, response: EdgeResponse, looked: boolean): void {
    // The client disconnected while the table was read.
    if (looked && (response.destroyed || response.closed)) return
    try {
      route(request, response, looked)
    } catch (err) {
      fail(request, response, err)
    }
  }

  function route(request: IncomingMessage, response: EdgeResponse, looked: boolean): void {
    const { host, url } = destinationOf(request)
    // With two Host headers, a proxy in front and the edge could each take another one.
    if (host === null || !hasOneHost(request)) return void respond.page(response, 'badHost')
    if (isMisdirected(request, host)) return void respond.page(response, 'misdirected')
    const { snapshot, encryption } = state
    const challenge = encryption?.challengeAt(url)
    if (challenge !== undefined) return void metrics.count(response, sendChallenge(request, response, challenge))
    const place = snapshot?.at(host)
    if (place) response.tally = traffic.of(place)
    const found = place?.host
    if (found?.barred) return void bar(request, response)
    // Read once: if production moves meanwhile, this request is still answered by one deployment.
    const target = found?.target
    if (!target && !found?.redirect && !looked) {
      const look = lookAgain()
      if (look) return void look.then(() => attempt(request, response, true))
    }
    if (!found) return void metrics.count(response, sendUnknownHost(response, host))
    if (found.redirect) return void sendAway(request, response, { host, url, found, redirect: found.redirect })
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

  /** What the visitor's page came from, unless the site of now asks for a password: the one before might not. */
  function handlePinned(request: IncomingMessage, response: EdgeResponse, visit: Visit, found: Host): void {
    const current = visit.target
    const target = deploymentOf(request, { url: visit.url, found, current }, state.snapshot!)
    const go = (target: Target) => {
      remember(request, response, { url: visit.url, target, current })
      handleRequest(request, response, { ...visit, target })
    }
    if (target.deploymentId === current.deploymentId) return void go(current)
    const known = sites.get(current.deploymentId)
    const loaded = known ? Promise.resolve(known) : sites.load(current.deploymentId)
    loaded.then((site) => go(site?.guards.length === 0 ? target : current)).catch((err) => fail(request, response, err))
  }

  /** To the same path of another host, by HTTPS if that has a certificate: one step, however the visitor came. */
  function sendAway(
    request: IncomingMessage,
    response: ServerResponse,
    { host, url, found, redirect }: Redirected,
  ): void {
    const { encryption } = state
    if (isEncrypted(request) && encryption?.isStrict(found, host)) {
      response.setHeader('strict-transport-security', strictTransport)
    }
    const location = encryption?.locationOf(redirect.host, url) ?? `${plainOrigin(redirect.host)}${pathOf(url)}`
    // Else a browser keeps it for ever, also when it leads elsewhere.
    const caching = 'public, max-age=0, must-revalidate'
    metrics.count(response, sendRedirect(request, response, { location, status: redirect.status, caching }))
  }

  /** Before any redirect, over HTTP and HTTPS alike. A body is not read, so the connection cannot be used again. */
  function bar(request: IncomingMessage, response: ServerResponse): void {
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
        // Barred while the site was loaded.
        if (isBarred(host)) return bar(request, response)
        if (site) return serve(request, response, visit, site)
        log.error({ deploymentId: target.deploymentId }, 'a deployment that is READY has no manifest here')
        void sites.report(target.deploymentId)
        respond.page(response, 'filesMissing')
      })
      .catch((err) => fail(request, response, err))
  }

  /** An error of the edge fails one request, not the process. */
  function fail(request: IncomingMessage, response: ServerResponse, err: unknown): void {
    log.error({ err, host: request.headers.host, path: loggedPath(request.url) }, 'a request could not be answered')
    respond.failure(response, err)
  }

  /** From here on the response may last: it is ended if its host is barred. */
  function follow(response: ServerResponse, host: string): void {
    // Its `close` would not come any more.
    if (response.destroyed || response.closed) return
    const done = underWay.begin(host, () => response.destroy())
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
      // Closing the connection avoids the transfer of a body that is not read.
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
    if (isApp && !site.routes.has(path)) response.adjust = both(response.adjust, varyByAccept)
    const admitted = site.plain || admits(request, response, { projectId: target.projectId, site, path, found })
    if (admitted === false) return void respond.page(response, 'unauthorized', asksForPassword)
    if (admitted !== true) return void respond.page(response, 'tooMany', ['retry-after', String(admitted)])
    if (!found) respond.page(response, 'notFound')
    else if (found.kind === 'redirect') respond.redirect(response, found)
    else {
      respond.file(request, response, found.variants ?? site.variantsOf(found, path), found.status)
      if (!response.writableEnded) follow(response, host)
    }
  }

  /** WebSockets of server projects; static sites have none. */
  async function join(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { host } = destinationOf(request)
    if (host === null || !hasOneHost(request)) return void refuse(socket, '400 Bad Request')
    if (isMisdirected(request, host)) return void refuse(socket, '421 Misdirected Request')
    const find = () => state.snapshot?.at(host)
    let place = find()
    if (!place?.host.target && !isBarred(host)) {
      await lookAgain()
      place = find()
    }
    const shows = place?.host
    const target =
      shows?.target && shows.pins
        ? deploymentOf(request, { url: request.url!, found: shows, current: shows.target }, state.snapshot!)
        : shows?.target
    const answered = followUpgrade(socket, place)
    let away = false
    const load = (id: string) =>
      sites.load(id).catch((err) => {
        away = err instanceof StoreUnavailable
        return null
      })
    const site = target && (sites.get(target.deploymentId) ?? (await load(target.deploymentId)))
    if (isBarred(host)) {
      answered(403)
      return void refuse(socket, '403 Forbidden')
    }
    // Read again: protection may have begun meanwhile.
    const shown = find()?.host
    if (shown && !previews.admitsUpgrade(request, shown)) {
      answered(401)
      return void refuse(socket, '401 Unauthorized')
    }
    if (away) {
      answered(503)
      return void refuse(socket, `503 Service Unavailable\r\nretry-after: ${storeRetrySeconds}`)
    }
    if (!servers || !target || site?.kind !== 'node') {
      answered(404)
      return void refuse(socket, '404 Not Found')
    }
    // The visitor disconnected while the site was loaded.
    if (socket.destroyed) return
    const done = underWay.begin(host, () => socket.destroy())
    socket.once('close', done)
    servers.upgrade(request, socket, head, { ...target, answered })
  }

  /** Returns what is to be called with the status of the answer; what was sent is counted when the connection ends. */
  function followUpgrade(socket: Duplex, place: Place | undefined): (status: number) => void {
    if (!place) return () => {}
    socket.once('close', () => {
      const sentBytes = (socket as Socket).bytesWritten - beforeBytes
      traffic.of(place).open()[edgeAt.bytes]! += sentBytes
    })
    const beforeBytes = (socket as Socket).bytesWritten
    return (status) => countAnswer(traffic.of(place), status, 0, null)
  }

  function refuse(socket: Duplex, status: string): void {
    endWithResponse(socket, `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
  }

  return {
    handle,
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy())
      join(request, socket, head).catch((err) => {
        log.error({ err, host: request.headers.host }, 'an upgrade could not be answered')
        socket.destroy()
      })
    },
    endBarred: () => underWay.endIf(isBarred),
  }
}
