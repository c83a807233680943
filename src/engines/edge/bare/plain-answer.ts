// Writes the response to a plain request to the socket: the same octets as Node's, with headers made once per file.
import type { Socket } from 'node:net'
import type { Bodies } from '../answer/bodies.ts'
import { preferenceOf } from '../answer/encodings.ts'
import { matchesTag } from '../answer/ranges.ts'
import { bareHeaders, choose, type Variant } from '../answer/variants.ts'
import { hostName } from '../hosts/host-header.ts'
import { resolve } from '../hosts/resolve.ts'
import type { Sites } from '../hosts/sites.ts'
import type { Host, Place } from '../hosts/targets.ts'
import { countAnswer, type Traffic } from '../hosts/traffic.ts'
import type { EdgeMetrics } from '../observe/metrics.ts'
import type { RequestLog } from '../observe/request-log.ts'
import type { PlainRequest } from './plain-request.ts'

export type PlainAnswers = (request: PlainRequest, socket: Socket) => boolean

export type PlainAnswerOptions = {
  sites: Sites
  bodies: Bodies
  metrics: EdgeMetrics
  requests: RequestLog
  traffic: Traffic
  keepAliveSeconds: number
  /** The host, if it serves only files; null if the request needs the full handler (a redirect, a server, no host). */
  find(host: string, url: string, socket: Socket): Place | null
  /** Headers that the host adds to those of the file, as lines. */
  linesOf(found: Host, host: string): string
}

// What Node accepts in a header value; a site's own rules may contain anything.
const writable = /^[\t\x20-\x7e\x80-\xff]*$/
const token = /^[\w!#$%&'*+.^`|~-]+$/

export function createPlainAnswers(options: PlainAnswerOptions): PlainAnswers {
  const { sites, bodies, metrics, requests, traffic, find, linesOf } = options
  const heads = new WeakMap<Variant, { whole: string | null; bare: string | null }>()
  let tail = ''
  let tailUntilMs = 0

  /** The headers that Node adds to every answer; the date changes once in a second. */
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
    const place = name === null ? null : find(name, url, socket)
    if (!place) return false
    const { host: shown } = place
    if (shown.gate !== null || shown.pins !== null) return false
    const site = shown.target && sites.get(shown.target.deploymentId, shown.serving?.cleanUrls)
    if (!site?.plain) return false
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    if (path.includes('%')) return false
    // An unknown path, which may get the page of an app, is not answered here: that depends on more headers.
    const found = resolve(site, path, mark < 0 ? '' : url.slice(mark))
    if (found?.kind !== 'file' || found.status !== 200) return false
    const variant = choose(found.variants ?? site.variantsOf(found, path), preferenceOf(acceptEncoding))
    if (ifNoneMatch !== undefined && matchesTag(ifNoneMatch, variant.etag)) {
      const { bare } = headsOf(variant)
      if (bare === null) return false
      socket.write(bare + linesOf(shown, name!) + tailNow(), 'latin1')
      metrics.countStatus(304, 0)
      countAnswer(traffic.of(place), 304, 0, metrics.observe('plain', startedMs))
      requests.answered(name!, url, 304)
      return true
    }
    const body = bodies.get(variant)
    const { whole } = headsOf(variant)
    if (body === undefined || whole === null) return false
    // Corked, the two writes are one system call.
    socket.cork()
    socket.write(whole + linesOf(shown, name!) + tailNow(), 'latin1')
    socket.write(body)
    socket.uncork()
    metrics.countStatus(200, body.length)
    countAnswer(traffic.of(place), 200, body.length, metrics.observe('plain', startedMs))
    requests.answered(name!, url, 200)
    return true
  }
}

/** Null if a header is invalid; the request then goes to Node, which reports it. */
function head(status: string, headers: string[]): string | null {
  let text = `HTTP/1.1 ${status}\r\n`
  for (let i = 0; i < headers.length; i += 2) {
    if (!token.test(headers[i]!) || !writable.test(headers[i + 1]!)) return null
    text += `${headers[i]}: ${headers[i + 1]}\r\n`
  }
  return text
}
