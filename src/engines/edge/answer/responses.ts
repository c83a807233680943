// Responses that record when they began and how much was written, for metrics and traffic statistics.
import { ServerResponse } from 'node:http'
import type { Tally } from '../../../platform/observe/tallies.ts'

export type ResponseStats = {
  /** The counters of the requested host; null if the host is unknown. */
  tally: Tally | null
  /** When the head was written, by `performance.now()`; 0 before. */
  headMs: number
  /** Bytes of the body handed to the connection, including what is still buffered when a visitor disconnects. */
  writtenBytes: number
  /** Changes the headers just before they are sent; null for most responses. */
  changeHeaders: HeaderChange | null
}

/** A client that reads nothing for this long is gone, or trying to exhaust our memory. */
export const stallMs = 60_000

/** Headers are alternating names and values. */
export type HeaderChange = (headers: string[]) => string[]

export type EdgeResponse = ServerResponse & ResponseStats

/** An HTTP/1.1 response; Http2Response is its counterpart. */
export class Http1Response extends ServerResponse implements ResponseStats {
  tally: Tally | null = null
  headMs = 0
  writtenBytes = 0
  changeHeaders: HeaderChange | null = null

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override writeHead(...args: any): this {
    this.headMs = performance.now()
    if (this.changeHeaders && Array.isArray(args.at(-1))) args[args.length - 1] = this.changeHeaders(args.at(-1))
    return super.writeHead(...(args as [number]))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override write(chunk: any, ...rest: any): boolean {
    this.writtenBytes += chunk.length
    return super.write(chunk, ...(rest as []))
  }

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override end(chunk?: any, ...rest: any): this {
    if (chunk && typeof chunk !== 'function') this.writtenBytes += chunk.length
    super.end(chunk, ...(rest as []))
    // Without a callback, the timeout destroys the connection.
    if (!this.writableFinished) this.setTimeout(stallMs)
    return this
  }
}
