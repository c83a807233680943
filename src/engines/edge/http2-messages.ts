// Requests and responses of HTTP/2 in the form of HTTP/1.1, so that whoever answers need not know which it is.
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { ReadableOptions } from 'node:stream'

// A client that takes nothing of an answer for this long is gone, or wants to hold memory.
const stallMs = 60_000

/**
 * The headers as HTTP/1.1 would have had them. `:authority` is the Host header; one of another value beside it stays,
 * so that it is refused like two of them. Cookies may come in pieces, which are one header elsewhere (RFC 9113, 8.2.3).
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
    // The frame tells what takes a header in HTTP/1.1: that a body follows whose length is unknown.
    if (!stream.endAfterHeaders && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked'
  }
}

export class Http2Response extends Http2ServerResponse<Http2Request> {
  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override writeHead(...args: any): this {
    const headers = args.at(-1)
    // There is nothing to say about the connection of a stream, and Node warns about whoever tries.
    if (Array.isArray(headers) && headers.includes('connection')) {
      args[args.length - 1] = headers.filter((_, i) => headers[i - (i % 2)] !== 'connection')
    }
    return super.writeHead(...(args as [number]))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override end(...args: any): this {
    super.end(...(args as []))
    if (!this.stream.destroyed && !this.stream.writableFinished) this.setTimeout(stallMs)
    return this
  }

  /** Without a listener the stream ends there, as a socket does. */
  override setTimeout(timeoutMs: number, callback?: () => void): void {
    const { stream } = this
    super.setTimeout(timeoutMs, callback ?? (() => stream.close(constants.NGHTTP2_CANCEL)))
  }
}

// By these whoever writes an answer sees that the visitor has left. Node's class lacks them, though its types do not.
for (const name of ['destroyed', 'closed'] as const) {
  Object.defineProperty(Http2Response.prototype, name, {
    get(this: Http2Response) {
      return this.stream[name]
    },
  })
}
