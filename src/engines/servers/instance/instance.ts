// One run of a deployment's server, from its start to the exit of its last process, with its open exchanges.
import { access } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { onAbort } from '../../../platform/abort.ts'
import {
  type Connect,
  DEFAULT_PORT,
  type Exit,
  type MountedProgram,
  type Sandbox,
  SandboxLost,
} from '../../../sandbox/sandbox.ts'
import type { Network } from '../../../services/deployments/index.ts'
import { ServerUnavailable, ServerUnhealthy } from './failures.ts'
import { nothingListens, stillResponds, waitUntilHealthy } from './health.ts'
import type { ServerLimits } from './limits.ts'
import type { Output } from './output.ts'
import { createPool, type Pool } from './pool.ts'

export type ExchangeKind = 'request' | 'tunnel'

/** What a request needs from an instance, whether it runs here or on another machine. */
export type Upstream = {
  /** Opens a connection to the program without sending anything; rejects if that fails. */
  connect: Connect
  /** Connections of this run only; the next run gets its own pool. */
  pool: Pool
  /** Registers an exchange that `abort` can abort. Returns a function to call at its end, which may be called twice. */
  begin(kind: ExchangeKind, abort: () => void): () => void
}

export type Instance = Upstream & {
  readonly exchanges: number
  readonly lastUsedMs: number
  /** Bytes that the server has sent, excluding responses to probes. */
  readonly receivedBytes: number
  /** Whether it responds to a probe in time, with any status. */
  responds(timeoutMs: number): Promise<boolean>
  /** Restarts the idle time. */
  touch(): void
  /** Aborts exchanges that began before `beforeMs`, a value of `performance.now()`. */
  abort(kinds: readonly ExchangeKind[], beforeMs?: number): void
  /** How it ended, for the log. Resolves when its last process has exited; never rejects. */
  ended: Promise<string>
  kill(): Promise<void>
}

export type LaunchOptions = {
  sandbox: Sandbox
  workTree: string
  /** The working directory within the tree. */
  root: string
  command: string
  programs: MountedProgram[]
  environment: Record<string, string>
  network: Network
  privateHosts: string[]
  limits: ServerLimits
  output: Output
  signal: AbortSignal
}

/** Resolves once the server is healthy. Otherwise rejects, and leaves nothing running. */
export async function launch(options: LaunchOptions): Promise<Instance> {
  const { sandbox, workTree, root, command, programs, environment, network, privateHosts, limits, output, signal } =
    options
  await access(workTree).catch(() => {
    throw new ServerUnavailable('The files of this server are not on this machine.')
  })
  signal.throwIfAborted()
  const { memoryMb, processes, cpus, diskMb } = limits
  const run = sandbox.run({
    argv: ['/bin/sh', '-c', command],
    workTree,
    // Read-only, so that the server runs exactly what was built after every restart and on every machine.
    writable: false,
    cwd: root,
    programs,
    environment: {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      // Otherwise npm checks for updates and writes log files on every start.
      npm_config_update_notifier: 'false',
      npm_config_logs_max: '0',
      ...environment,
    },
    limits: { memoryMb, processes, cpus, diskMb, timeoutMs: Number.POSITIVE_INFINITY },
    network: network === 'none' ? null : { reach: network, private: privateHosts },
    listen: {},
    onOutput: output.print,
  })
  const over = new AbortController()
  let stoppedByUs = false
  const ended = run.exited
    .then(
      (exit) => {
        stoppedByUs = exit.reason === 'killed'
        return describeExit(exit, limits)
      },
      (error: Error) => {
        stoppedByUs = true
        return error instanceof SandboxLost ? `was lost: ${error.message}` : `could not be started: ${error.message}`
      },
    )
    .finally(() => {
      over.abort()
      output.endRun()
    })
  const unlisten = onAbort(signal, run.kill)
  const url = environment.BERTH_URL ?? ''
  const host = URL.canParse(url) ? new URL(url).host : 'localhost'
  try {
    const reason = await Promise.race([
      ended.then((end) => `The server ${end}`),
      checkHealth(run.connect, host, limits, over.signal),
    ])
    signal.throwIfAborted()
    if (reason !== null) {
      const Unavailable = stoppedByUs ? ServerUnavailable : ServerUnhealthy
      await run.kill()
      await ended
      throw new Unavailable(withPortHint(reason, output.latest()))
    }
    return await createInstance((await run.connect)!, host, run.kill, ended)
  } catch (error) {
    await run.kill()
    throw error
  } finally {
    over.abort()
    unlisten()
  }
}

async function checkHealth(
  found: Promise<Connect | null>,
  host: string,
  { startTimeoutMs }: ServerLimits,
  signal: AbortSignal,
): Promise<string | null> {
  const connect = await found.catch(() => null)
  // The run ends without a connection; `ended` says why.
  if (!connect) return new Promise<never>(() => {})
  const reason = await waitUntilHealthy(connect, host, startTimeoutMs, signal)
  return reason && `The server was not healthy within ${startTimeoutMs / 1000} s: ${reason}`
}

const printedPort = /(?:\bport:?\s{0,3}|(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):)(\d{2,5})\b/i

/** Listening on a hard-coded port is the usual mistake, and most programs print their port. */
export function withPortHint(reason: string, lines: string[]): string {
  const port = lines.map((line) => printedPort.exec(line)?.[1]).findLast((found) => found !== undefined)
  if (port === undefined || port === String(DEFAULT_PORT) || !reason.endsWith(nothingListens)) return reason
  return `${reason}, it names port ${port} instead: it has to take that of PORT`
}

function describeExit({ code, signal, reason }: Exit, { memoryMb, diskMb }: ServerLimits): string {
  if (reason === 'memory') return `needed more than ${memoryMb} MB of memory`
  if (reason === 'disk') return `wrote more than ${diskMb} MB`
  if (reason === 'killed') return 'was stopped'
  return signal ? `was ended by ${signal}` : `exited with ${code}`
}

function createInstance(connectTo: Connect, host: string, stop: () => Promise<void>, ended: Promise<string>): Instance {
  const sockets = new Set<Socket>()
  let closedBytes = 0
  const connect: Connect = async (options) => {
    const socket = await connectTo(options)
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      closedBytes += socket.bytesRead
    })
    return socket
  }
  const pool = createPool(connect)
  const exchanges = new Set<{ kind: ExchangeKind; sinceMs: number; abort(): void }>()
  let lastUsedMs = performance.now()
  void ended.then(() => pool.close())
  return {
    connect,
    pool,
    ended,
    responds: (timeoutMs) => stillResponds(connectTo, host, timeoutMs),
    get receivedBytes() {
      return [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, closedBytes)
    },
    get exchanges() {
      return exchanges.size
    },
    get lastUsedMs() {
      return lastUsedMs
    },
    touch() {
      lastUsedMs = performance.now()
    },
    begin(kind, abort) {
      lastUsedMs = performance.now()
      const exchange = { kind, sinceMs: lastUsedMs, abort }
      exchanges.add(exchange)
      return () => {
        if (exchanges.delete(exchange)) lastUsedMs = performance.now()
      }
    },
    abort(kinds, beforeMs = Number.POSITIVE_INFINITY) {
      for (const { kind, sinceMs, abort } of [...exchanges]) if (kinds.includes(kind) && sinceMs <= beforeMs) abort()
    },
    async kill() {
      // A server that shuts down gracefully would wait for idle connections to close.
      pool.close()
      await stop()
      await ended
    },
  }
}
