// Makes HTTP/2 requests and responses look like HTTP/1.1, so that handlers don't need to distinguish them.
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { ReadableOptions } from 'node:stream'
import type { Tally } from '../../../platform/observe/tallies.ts'
import { type HeaderChange, type ResponseStats, stallMs } from '../answer/responses.ts'

/**
 * `:authority` becomes the Host header. A Host header with another value stays, so that the request is refused for
 * having two hosts. Split cookie headers are joined (RFC 9113, 8.2.3).
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

// Headers of HTTP/1.1 connections, forbidden in HTTP/2 (RFC 9113, 8.2.2).
const connectionHeaders = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/**
 * Sites and servers send any headers, and Node throws if HTTP/2 forbids one or if a single-valued one repeats. Joined
 * values mean the same (RFC 9110, 5.3).
 */
function asHttp2(raw: readonly string[]): string[] {
  const headers: string[] = []
  const positions = new Map<string, number>()
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    if (connectionHeaders.has(name)) continue
    const position = name === 'set-cookie' ? undefined : positions.get(name)
    if (position === undefined) positions.set(name, headers.push(name, raw[i + 1]!) - 1)
    else headers[position] += `, ${raw[i + 1]}`
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
    // A body of unknown length: HTTP/2 signals it by a frame flag, HTTP/1.1 by this header.
    if (!stream.endAfterHeaders && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked'
  }
}

export class Http2Response extends Http2ServerResponse<Http2Request> implements ResponseStats {
  tally: Tally | null = null
  headMs = 0
  writtenBytes = 0
  changeHeaders: HeaderChange | null = null

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override writeHead(...args: any): this {
    if (this.changeHeaders && Array.isArray(args.at(-1))) args[args.length - 1] = this.changeHeaders(args.at(-1))
    if (Array.isArray(args.at(-1))) args[args.length - 1] = asHttp2(args.at(-1))
    this.headMs = performance.now()
    return super.writeHead(...(args as [number]))
  }

  /** Node's `end` calls this too. */
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

  /** By default, the timeout closes the stream, as it does a socket. */
  override setTimeout(timeoutMs: number, callback = this.#cancel): void {
    // Node adds a listener on every call, and slow visitors cause many calls.
    this.stream.off('timeout', callback)
    super.setTimeout(timeoutMs, callback)
  }
}

// Handlers use these to notice disconnects. Node's types declare them, but its class lacks them.
for (const name of ['destroyed', 'closed'] as const) {
  Object.defineProperty(Http2Response.prototype, name, {
    get(this: Http2Response) {
      return this.stream[name]
    },
  })
}
