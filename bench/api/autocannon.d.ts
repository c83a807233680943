// Types for the used part of autocannon, which has none.
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  type Request = { method: string; path: string; headers?: Record<string, string>; body?: string }
  type Client = { setRequests(requests: Request[]): void }
  type Options = {
    url: string
    connections: number
    /** Seconds. */
    duration: number
    /** Requests per second over all connections; unlimited if omitted. */
    overallRate?: number
    /** Milliseconds between samples; a run ends with a sample. */
    sampleInt: number
    /** Seconds. */
    timeout: number
    headers: Record<string, string>
    setupClient(client: Client): void
  }
  export default function autocannon(options: Options): EventEmitter & Promise<unknown> & { stop(): void }
}
