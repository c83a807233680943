// The context of every command: the server, its client, the output, and the Ctrl-C signal.

import type { Command } from 'commander'
import type { Berth } from '../../../sdk/src/client.ts'
import { createOutput, type Output } from './output.ts'
import { findServer, requireToken, type ServerOptions } from './server.ts'
import { type ApiResponse, createWire, ErrorResponse } from './wire.ts'

/** Options that every command has. */
export type Globals = ServerOptions & { json?: boolean; yes?: boolean }

export type Context = {
  out: Output
  options: Globals
  env: NodeJS.ProcessEnv
  /** The server that this program was downloaded from. */
  home: string | null
  /** Aborts at Ctrl-C with the error to exit with. */
  signal: AbortSignal
  /** Functions to run at Ctrl-C before the process exits. */
  undo: Set<() => Promise<unknown>>
  server(): Promise<string>
  /** The client; throws if nobody is signed in. */
  berth(): Promise<Berth>
  /** Sends a request without the SDK; throws for statuses of 400 and above. */
  send(method: string, path: string, init?: RawInit): Promise<ApiResponse>
  /** Cancels a deployment, even after Ctrl-C; errors are ignored. */
  cancel(deploymentId: string): Promise<void>
}

export type RawInit = {
  body?: unknown
  headers?: Record<string, string>
  /** Return responses of every status; by default, 400 and above throw. */
  any?: boolean
  /** Send no token, for signing in. */
  open?: boolean
  /** Default: that of the context. */
  signal?: AbortSignal
}

class Interrupted extends Error {
  override readonly name = 'Interrupted'
}

export function createContext(command: Command, home: string | null): Context {
  const options = command.optsWithGlobals<Globals>()
  const interruption = new AbortController()
  const env = process.env
  // A second Ctrl-C exits at once.
  process.once('SIGINT', () => {
    interruption.abort(new Interrupted('Interrupted.'))
    process.once('SIGINT', () => process.exit(130))
  })
  process.once('SIGTERM', () => interruption.abort(new Interrupted('Interrupted.')))
  let server: Promise<string> | undefined
  let berth: Promise<Berth> | undefined
  let wire: Promise<ReturnType<typeof createWire>> | undefined

  const context: Context = {
    out: createOutput(options.json === true, env),
    options,
    env,
    home,
    signal: interruption.signal,
    undo: new Set(),
    server() {
      server ??= findServer(options, home, env).catch((error) => {
        server = undefined
        throw error
      })
      return server
    },
    berth() {
      berth ??= openClient()
      return berth
    },
    async send(method, path, { body, headers = {}, any, open, signal = interruption.signal } = {}) {
      const origin = await context.server()
      const token = open ? null : await requireToken(origin, options, env)
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      wire ??= openWire(origin)
      const response = await (await wire)({
        method,
        url: new URL(path, origin),
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && !isRaw && { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body === undefined ? null : Buffer.from(isRaw ? (body as Buffer) : JSON.stringify(body)),
        signal,
      })
      if (any || response.ok) return response
      throw new ErrorResponse(response, await response.text())
    },
    async cancel(id) {
      const path = `/api/deployments/${encodeURIComponent(id)}/cancel`
      await context.send('POST', path, { any: true, signal: AbortSignal.timeout(3_000) }).catch(() => {})
    },
  }

  async function openWire(origin: string) {
    const { openTransport } = await import('./transport.ts')
    return createWire(await openTransport(origin, env))
  }

  async function openClient(): Promise<Berth> {
    const origin = await context.server()
    const token = await requireToken(origin, options, env)
    const [{ createFetch }, { createBerth }] = await Promise.all([
      import('./proxy.ts'),
      import('../../../sdk/src/client.ts'),
    ])
    return createBerth({ baseUrl: `${origin}/api`, token, fetch: createFetch(origin, env), retries: 3 })
  }

  return context
}
