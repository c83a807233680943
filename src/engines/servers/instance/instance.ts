// One run of a deployment's server, from its start to the end of its last process, and its open exchanges.
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
import { becomesHealthy, nothingListens, stillAnswers } from './health.ts'
import type { ServerLimits } from './limits.ts'
import type { Output } from './output.ts'
import { createPool, type Pool } from './pool.ts'

export type ExchangeKind = 'request' | 'tunnel'

/** What a request needs of an instance, whether it runs here or on another machine. */
export type Upstream = {
  /** A connection to the program. Nothing is sent by it; rejects if there is none. */
  connect: Connect
  /** Its connections belong to this run only: none is reused for the next one. */
  pool: Pool
  /** Registers an exchange; `cut` aborts it. Returns a function to call when it is over, which may be called twice. */
  begin(kind: ExchangeKind, cut: () => void): () => void
}

export type Instance = Upstream & {
  readonly exchanges: number
  readonly lastUsedMs: number
  /** What it has sent over its connections, without probes. */
  readonly receivedBytes: number
  /** Whether it answers a probe in time, with whatever status. */
  answers(timeoutMs: number): Promise<boolean>
  /** Restarts the idle time. */
  touch(): void
  /** Aborts exchanges that began before `beforeMs`, a value of `performance.now()`. */
  cut(kinds: readonly ExchangeKind[], beforeMs?: number): void
  /** How it ended, for the log; settles when its last process is gone, and never rejects. */
  ended: Promise<string>
  kill(): Promise<void>
}

export type LaunchOptions = {
  sandbox: Sandbox
  workTree: string
  /** Working directory within the tree. */
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

/** Resolves when the server is healthy; in every other case it rejects, and nothing is left running. */
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
    // The server runs exactly what was built, also after a restart and on another machine.
    writable: false,
    cwd: root,
    programs,
    environment: {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      // Otherwise npm checks for updates and writes log files at each start.
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
  // Whether the server was stopped by us, or exited by itself.
  let ours = false
  const ended = run.exited
    .then(
      (exit) => {
        ours = exit.reason === 'killed'
        return endOf(exit, limits)
      },
      (error: Error) => {
        ours = true
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
      healthOf(run.connect, host, limits, over.signal),
    ])
    signal.throwIfAborted()
    if (reason !== null) {
      const Unavailable = ours ? ServerUnavailable : ServerUnhealthy
      await run.kill()
      await ended
      throw new Unavailable(elsewhere(reason, output.latest()))
    }
    return await instanceOf((await run.connect)!, host, run.kill, ended)
  } catch (error) {
    await run.kill()
    throw error
  } finally {
    over.abort()
    unlisten()
  }
}

async function healthOf(
  found: Promise<Connect | null>,
  host: string,
  { startMs }: ServerLimits,
  signal: AbortSignal,
): Promise<string | null> {
  const connect = await found.catch(() => null)
  // The run ends, and its end says why.
  if (!connect) return new Promise<never>(() => {})
  const reason = await becomesHealthy(connect, host, startMs, signal)
  return reason && `The server was not healthy within ${startMs / 1000} s: ${reason}`
}

const printedPort = /(?:\bport:?\s{0,3}|(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):)(\d{2,5})\b/i

/** Most programs print where they listen: a port of their own is the usual mistake. */
export function elsewhere(reason: string, lines: string[]): string {
  const port = lines.map((line) => printedPort.exec(line)?.[1]).findLast((found) => found !== undefined)
  if (port === undefined || port === String(DEFAULT_PORT) || !reason.endsWith(nothingListens)) return reason
  return `${reason}, it names port ${port} instead: it has to take that of PORT`
}

function endOf({ code, signal, reason }: Exit, { memoryMb, diskMb }: ServerLimits): string {
  if (reason === 'memory') return `needed more than ${memoryMb} MB of memory`
  if (reason === 'disk') return `wrote more than ${diskMb} MB`
  if (reason === 'killed') return 'was stopped'
  return signal ? `was ended by ${signal}` : `exited with ${code}`
}

function instanceOf(reach: Connect, host: string, stop: () => Promise<void>, ended: Promise<string>): Instance {
  const sockets = new Set<Socket>()
  let closedBytes = 0
  const connect: Connect = async (options) => {
    const socket = await reach(options)
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      closedBytes += socket.bytesRead
    })
    return socket
  }
  const pool = createPool(connect)
  const exchanges = new Set<{ kind: ExchangeKind; sinceMs: number; cut(): void }>()
  let lastUsedMs = performance.now()
  void ended.then(() => pool.close())
  return {
    connect,
    pool,
    ended,
    answers: (timeoutMs) => stillAnswers(reach, host, timeoutMs),
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
    begin(kind, cut) {
      lastUsedMs = performance.now()
      const exchange = { kind, sinceMs: lastUsedMs, cut }
      exchanges.add(exchange)
      return () => {
        if (exchanges.delete(exchange)) lastUsedMs = performance.now()
      }
    },
    cut(kinds, beforeMs = Number.POSITIVE_INFINITY) {
      for (const { kind, sinceMs, cut } of [...exchanges]) if (kinds.includes(kind) && sinceMs <= beforeMs) cut()
    },
    async kill() {
      // A server that shuts down gracefully would wait for idle connections to close.
      pool.close()
      await stop()
      await ended
    },
  }
}
