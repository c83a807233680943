// Writes responses to plain requests to the socket: the same bytes as Node's, with headers built once per file.
import type { Socket } from 'node:net'
import type { Bodies } from '../answer/bodies.ts'
import { preferenceOf } from '../answer/encodings.ts'
import { matchesTag } from '../answer/ranges.ts'
import { bareHeaders, choose, type Variant } from '../answer/variants.ts'
import { hostName } from '../hosts/host-header.ts'
import { resolve } from '../hosts/resolve.ts'
import type { Sites } from '../hosts/sites.ts'
import type { Host, HostEntry } from '../hosts/targets.ts'
import { countResponse, type Traffic } from '../hosts/traffic.ts'
import type { EdgeMetrics } from '../observe/metrics.ts'
import type { RequestLog } from '../observe/request-log.ts'
import type { PlainRequest } from './plain-request.ts'

export type PlainResponder = (request: PlainRequest, socket: Socket) => boolean

export type PlainResponderOptions = {
  sites: Sites
  bodies: Bodies
  metrics: EdgeMetrics
  requests: RequestLog
  traffic: Traffic
  keepAliveSeconds: number
  /** Null if the request needs the full handler, for example for a redirect. */
  find(host: string, url: string, socket: Socket): HostEntry | null
  /** Lines of headers that the host adds to those of the file. */
  linesOf(found: Host, host: string): string
}

// The values Node accepts. A site's own header rules may contain anything.
const writable = /^[\t\x20-\x7e\x80-\xff]*$/
const token = /^[\w!#$%&'*+.^`|~-]+$/

export function createPlainResponder(options: PlainResponderOptions): PlainResponder {
  const { sites, bodies, metrics, requests, traffic, find, linesOf } = options
  const heads = new WeakMap<Variant, { whole: string | null; bare: string | null }>()
  let tail = ''
  let tailUntilMs = 0

  /** The headers that Node adds to every response; the date changes once a second. */
  function tailNow(): string {
    const nowMs = Date.now()
    if (nowMs >= tailUntilMs) {
      const date = new Date(nowMs).toUTCString()
      tail = `Date: ${date}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${options.keepAliveSeconds}\r\n\r\n`
      tailUntilMs = nowMs - (nowMs % 1000) + 1000
    }
    return tail
  }

  function headsOf(variant: Variant): { whole: string | null; bare: string | null } {
    let known = heads.get(variant)
    if (!known) {
      known = { whole: head('200 OK', variant.headers), bare: head('304 Not Modified', bareHeaders(variant)) }
      heads.set(variant, known)
    }
    return known
  }

  return ({ host, url, acceptEncoding, ifNoneMatch }, socket) => {
    const startedMs = performance.now()
    const name = hostName(host)
    const entry = name === null ? null : find(name, url, socket)
    if (!entry) return false
    const { host: current } = entry
    if (current.gate !== null || current.pins !== null) return false
    const site = current.target && sites.get(current.target.deploymentId, current.serving?.cleanUrls)
    if (!site?.plain) return false
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    if (path.includes('%')) return false
    // An unknown path may get the page of a single-page app, which depends on more headers.
    const found = resolve(site, path, mark < 0 ? '' : url.slice(mark))
    if (found?.kind !== 'file' || found.status !== 200) return false
    const variant = choose(found.variants ?? site.variantsOf(found, path), preferenceOf(acceptEncoding))
    if (ifNoneMatch !== undefined && matchesTag(ifNoneMatch, variant.etag)) {
      const { bare } = headsOf(variant)
      if (bare === null) return false
      socket.write(bare + linesOf(current, name!) + tailNow(), 'latin1')
      metrics.countStatus(304, 0)
      countResponse(traffic.of(entry), 304, 0, metrics.observe('plain', startedMs))
      requests.answered(name!, url, 304)
      return true
    }
    const body = bodies.get(variant)
    const { whole } = headsOf(variant)
    if (body === undefined || whole === null) return false
    // Corking turns the two writes into one system call.
    socket.cork()
    socket.write(whole + linesOf(current, name!) + tailNow(), 'latin1')
    socket.write(body)
    socket.uncork()
    metrics.countStatus(200, body.length)
    countResponse(traffic.of(entry), 200, body.length, metrics.observe('plain', startedMs))
    requests.answered(name!, url, 200)
    return true
  }
}

/** Null if a header is invalid. Node then gets the request and reports the error. */
function head(status: string, headers: string[]): string | null {
  let text = `HTTP/1.1 ${status}\r\n`
  for (let i = 0; i < headers.length; i += 2) {
    if (!token.test(headers[i]!) || !writable.test(headers[i + 1]!)) return null
    text += `${headers[i]}: ${headers[i + 1]}\r\n`
  }
  return text
}
