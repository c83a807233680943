// Responses that note what they are counted by when they are over: when they began, and how much was written.
import { ServerResponse } from 'node:http'
import type { Tally } from '../../../platform/observe/tallies.ts'

export type Noting = {
  /** The counters of the host that was asked; null where nobody has it. */
  tally: Tally | null
  /** By `performance.now()`, when the head of the answer was written; 0 before. */
  headMs: number
  /** Of the body, given to the connection: what it still holds when a visitor leaves is counted too. */
  writtenBytes: number
  /** Changes the headers that are about to be sent; null for most answers. */
  adjust: Adjust | null
}

/** A client that reads nothing of a response for this long is gone, or attempts to exhaust memory. */
export const stallMs = 60_000

/** Of names and values in turn. */
export type Adjust = (headers: string[]) => string[]

export type EdgeResponse = ServerResponse & Noting

/** Of HTTP/1.1; Http2Response is the other one. */
export class Http1Response extends ServerResponse implements Noting {
  tally: Tally | null = null
  headMs = 0
  writtenBytes = 0
  adjust: Adjust | null = null

  // biome-ignore lint/suspicious/noExplicitAny: the ways to call it are Node's.
  override writeHead(...args: any): this {
    this.headMs = performance.now()
    if (this.adjust && Array.isArray(args.at(-1))) args[args.length - 1] = this.adjust(args.at(-1))
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
    // Without a callback the connection is destroyed at the timeout.
    if (!this.writableFinished) this.setTimeout(stallMs)
    return this
  }
}
