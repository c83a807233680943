// Gives HTTP/2 requests and responses the form of HTTP/1.1, so that handlers need not distinguish them.
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { ReadableOptions } from 'node:stream'
import type { Tally } from '../../../platform/observe/tallies.ts'
import { type Adjust, type Noting, stallMs } from '../answer/responses.ts'

/**
 * The headers as in HTTP/1.1. `:authority` becomes the Host header; a Host header of another value is kept, so that
 * the request is refused as one with two hosts. Split cookie headers are joined into one (RFC 9113, 8.2.3).
 */
function asHttp1(raw: readonly string[]): string[] {
  const headers: string[] = []
  let authority: string | undefined
  let cookies = ''
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!
    const value = raw[i + 1]!
    if (name === ':authority') authority = value
    else if (name === 'cookie') cookies += cookies === '' ? value : `; ${value}`
    else if (name.charCodeAt(0) !== 58 && !(name === 'host' && value === authority)) headers.push(name, value)
  }
  if (authority !== undefined) headers.unshift('host', authority)
  if (cookies !== '') headers.push('cookie', cookies)
  return headers
}

// They describe a connection of HTTP/1.1 (RFC 9113, 8.2.2).
const ofConnections = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/**
 * The headers of an answer as HTTP/2 may have them. Sites and servers write what they like, and Node throws at what
 * HTTP/2 does not have, and at two values of a header that has one; joined, they mean the same (RFC 9110, 5.3).
 */
function asHttp2(raw: readonly string[]): string[] {
  const headers: string[] = []
  const places = new Map<string, number>()
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    if (ofConnections.has(name)) continue
    const place = name === 'set-cookie' ? undefined : places.get(name)
    if (place === undefined) places.set(name, headers.push(name, raw[i + 1]!) - 1)
    else headers[place] += `, ${raw[i + 1]}`
  }
  return headers
}

export class Http2Request extends Http2ServerRequest {
  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    options: ReadableOptions,
    rawHeaders: readonly string[],
  ) {
    super(stream, headers, options, rawHeaders)
    Object.defineProperty(this, 'rawHeaders', { value: asHttp1(rawHeaders) })
    headers.host = headers[':authority'] ?? headers.host
    // A body of unknown length: HTTP/2 signals it by a flag of the frame, HTTP/1.1 by this header.
    if (!stream.endAfterHeaders && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked'
  }
}

export class Http2Response extends Http2ServerResponse<Http2Request> implements Noting {
  tally: Tally | null = null
  headMs = 0
  writtenBytes = 0
  adjust: Adjust | null = null

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override writeHead(...args: any): this {
    if (this.adjust && Array.isArray(args.at(-1))) args[args.length - 1] = this.adjust(args.at(-1))
    if (Array.isArray(args.at(-1))) args[args.length - 1] = asHttp2(args.at(-1))
    this.headMs = performance.now()
    return super.writeHead(...(args as [number]))
  }

  /** Node's `end` calls it too. */
  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override write(chunk: any, ...rest: any): boolean {
    this.writtenBytes += chunk.length
    return super.write(chunk, ...(rest as []))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override end(...args: any): this {
    super.end(...(args as []))
    if (!this.stream.destroyed && !this.stream.writableFinished) this.setTimeout(stallMs)
    return this
  }

  readonly #cancel = () => this.stream.close(constants.NGHTTP2_CANCEL)

  /** Without a callback the stream is destroyed at the timeout, as a socket is. */
  override setTimeout(timeoutMs: number, callback = this.#cancel): void {
    // Node adds a listener each time, and a slow visitor is waited for many times.
    this.stream.off('timeout', callback)
    super.setTimeout(timeoutMs, callback)
  }
}

// Handlers read these to see that the client has disconnected. Node's types declare them, but its class lacks them.
for (const name of ['destroyed', 'closed'] as const) {
  Object.defineProperty(Http2Response.prototype, name, {
    get(this: Http2Response) {
      return this.stream[name]
    },
  })
}
