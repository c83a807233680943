// One run of a deployment's server: from its start to its last process, and the exchanges it is busy with.
import { access } from 'node:fs/promises'
import { Agent } from 'node:http'
import type { Address, Exit, Sandbox } from '../../../sandbox/sandbox.ts'
import type { Network } from '../../../services/builds.ts'
import { ServerUnavailable, ServerUnhealthy } from './failures.ts'
import { becomesHealthy } from './health.ts'
import type { ServerLimits } from './limits.ts'
import type { Output } from './output.ts'

export type ExchangeKind = 'request' | 'tunnel'

export type Instance = {
  address: Address
  /** Connections to this run alone: none is left over for the next. */
  agent: Agent
  /** Each request gets a new connection, though the server is not told that it is for one request only. */
  freshAgent: Agent
  readonly exchanges: number
  readonly lastUsedMs: number
  /** Its time without a request begins now. */
  touch(): void
  /** An exchange begins; `cut` ends it by force. Returns what to call when it is over, once or more. */
  begin(kind: ExchangeKind, cut: () => void): () => void
  /** Ends those that began before a moment of `performance.now()`. */
  cut(kinds: readonly ExchangeKind[], beforeMs?: number): void
  /** How it ended, for the log; settles when its last process is gone, and never rejects. */
  ended: Promise<string>
  kill(): Promise<void>
}

export type LaunchOptions = {
  sandbox: Sandbox
  workTree: string
  /** Where in the tree it is started. */
  root: string
  command: string
  environment: Record<string, string>
  network: Network
  privateHosts: string[]
  limits: ServerLimits
  output: Output
  signal: AbortSignal
}

/** Resolves when the server is healthy; whatever else becomes of it is a rejection, and nothing is left running. */
export async function launch(options: LaunchOptions): Promise<Instance> {
  const { sandbox, workTree, root, command, environment, network, privateHosts, limits, output, signal } = options
  await access(workTree).catch(() => {
    throw new ServerUnavailable('The files of this server are not on this machine.')
  })
  signal.throwIfAborted()
  const { memoryMb, processes, cpus, diskMb } = limits
  const run = sandbox.run({
    argv: ['/bin/sh', '-c', command],
    workTree,
    // What was built is what runs, also after a restart and on another machine.
    writable: false,
    cwd: root,
    environment: {
      NODE_ENV: 'production',
      // npm would look for its own news and leave files behind at each start.
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
  // Whether an end was the server's own doing, or ours.
  let ours = false
  const ended = run.exited
    .then(
      (exit) => {
        ours = exit.reason === 'killed'
        return endOf(exit, limits)
      },
      (error: Error) => {
        ours = true
        return `could not be started: ${error.message}`
      },
    )
    .finally(() => {
      over.abort()
      output.endRun()
    })
  const kill = () => void run.kill()
  signal.addEventListener('abort', kill)
  try {
    const reason = await Promise.race([
      ended.then((end) => `The server ${end}`),
      healthOf(run.address, environment, limits, over.signal),
    ])
    signal.throwIfAborted()
    if (reason !== null) {
      const Unavailable = ours ? ServerUnavailable : ServerUnhealthy
      await run.kill()
      await ended
      throw new Unavailable(withOutput(reason, output.latest()))
    }
    return await instanceOf((await run.address)!, run.kill, ended)
  } catch (error) {
    await run.kill()
    throw error
  } finally {
    over.abort()
    signal.removeEventListener('abort', kill)
  }
}

async function healthOf(
  found: Promise<Address | null>,
  environment: Record<string, string>,
  { startMs }: ServerLimits,
  signal: AbortSignal,
): Promise<string | null> {
  // Without an address the run ends, which tells why.
  const address = await found.catch(() => new Promise<never>(() => {}))
  const url = environment.BERTH_URL ?? ''
  const host = URL.canParse(url) ? new URL(url).host : 'localhost'
  const reason = await becomesHealthy(address!, host, startMs, signal)
  return reason && `The server was not healthy within ${startMs / 1000} s: ${reason}`
}

// It becomes part of a deployment and of its events; the log has all of it.
const longestOutput = 2_000

export function withOutput(reason: string, lines: string[]): string {
  if (lines.length === 0) return `${reason}. It printed nothing.`
  const text = lines.join('\n')
  const end = text.length > longestOutput ? `…${text.slice(-longestOutput)}` : text
  return `${reason}. Its last output:\n${end}`
}

function endOf({ code, signal, reason }: Exit, { memoryMb, diskMb }: ServerLimits): string {
  if (reason === 'memory') return `needed more than ${memoryMb} MB of memory`
  if (reason === 'disk') return `wrote more than ${diskMb} MB`
  if (reason === 'killed') return 'was stopped'
  return signal ? `was ended by ${signal}` : `exited with ${code}`
}

// With `agent: false` servers are told to close after their answer; where that comes before all of the body was read,
// as when it is too large, the reset that follows takes the answer with it.
class FreshAgent extends Agent {
  override keepSocketAlive(): boolean {
    return false
  }
}

function instanceOf(address: Address, stop: () => Promise<void>, ended: Promise<string>): Instance {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 64, scheduling: 'lifo' })
  const freshAgent = new FreshAgent({ keepAlive: true })
  const exchanges = new Set<{ kind: ExchangeKind; sinceMs: number; cut(): void }>()
  let lastUsedMs = performance.now()
  void ended.then(() => agent.destroy())
  return {
    address,
    agent,
    freshAgent,
    ended,
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
      // Idle connections would keep a server that stops in good order waiting for their end.
      agent.destroy()
      await stop()
      await ended
    },
  }
}
