// The part of autocannon that is used here; the package brings no types.
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events'

  type Request = { method: string; path: string; headers?: Record<string, string>; body?: string }
  type Client = { setRequests(requests: Request[]): void }
  type Options = {
    url: string
    connections: number
    /** Seconds. */
    duration: number
    /** Requests a second over all connections; as many as are answered if left out. */
    overallRate?: number
    /** Milliseconds between samples; a run ends at a sample. */
    sampleInt: number
    /** Seconds. */
    timeout: number
    headers: Record<string, string>
    setupClient(client: Client): void
  }
  export default function autocannon(options: Options): EventEmitter & Promise<unknown> & { stop(): void }
}
