// Balances an edge's requests over instances, here and on other nodes, and queues those without an instance.
import type { Logger } from 'pino'
import { firstLeavingSlot, type ServedInstance } from '../../../services/instances/index.ts'
import { keyOf } from '../instance/dial.ts'
import { ServerUnavailable } from '../instance/failures.ts'
import type { ExchangeKind, Upstream } from '../instance/instance.ts'
import { defaultLimits, type ServerLimits } from '../instance/limits.ts'
import { createPool } from '../instance/pool.ts'
import { type Backend, createDispatcher, type Dispatcher } from '../proxy/dispatcher.ts'
import type { InstanceTable } from './instance-table.ts'
import type { RunnerConnections } from './runner-connections.ts'

export type BalancerOptions = {
  table: InstanceTable
  reach: RunnerConnections
  /** This process's runner. */
  local: LocalInstances | null
  log: Logger
  limits?: Partial<ServerLimits>
}

export type LocalInstances = {
  node: string
  /** Null if the instance isn't on this node. */
  backend(key: string): Backend | null
}

export type Balancer = Dispatcher & {
  /** Resolves when this many instances are healthy, or fewer if the others don't start. Rejects if none starts. */
  ready(deploymentId: string, count: number): Promise<void>
  /** Closes unused connections, because another deployment gets the requests from now on. */
  retire(deploymentId: string): Promise<void>
  /** Fails all requests to a barred deployment. */
  halt(deploymentId: string): Promise<void>
  close(): Promise<void>
}

type Remote = { node: string; backend: Backend; idle(): void; abort(kind: ExchangeKind): void; close(): void }
type WaitingRequest = { act(backend: Backend): void; fail(error: Error): void; untilMs: number }

// Less than a runner waits before it stops an instance without connections.
const idleConnectionMs = 4_000
// How long a healthy instance may take to accept a connection.
const acceptTimeoutMs = 5_000
const tickMs = 500

/** Lower is better: healthy before leaving before starting instances. */
function rankOf({ state, slot }: ServedInstance): number {
  if (state === 'leaving') return 1
  return (state === 'healthy' ? 0 : 2) + (slot < firstLeavingSlot ? 0 : 1)
}

export function createBalancer(options: BalancerOptions): Balancer {
  const { table, reach, local, log } = options
  const limits = { ...defaultLimits, ...options.limits }
  /** Keyed by deployment, then by term. */
  const remotes = new Map<string, Map<string, Remote>>()
  const waiting = new Map<string, Set<WaitingRequest>>()
  let ticking: NodeJS.Timeout | undefined
  let turn = 0
  let closed = false

  function backendOf(instance: ServedInstance): Backend | null {
    const { deploymentId, term, node } = instance
    const own = local?.backend(keyOf(instance))
    if (own || node === local?.node) return own ?? null
    const known = remotes.get(deploymentId) ?? new Map<string, Remote>()
    const remote = known.get(term) ?? createRemote(instance)
    remotes.set(deploymentId, known.set(term, remote))
    return remote.backend
  }

  /** Picks the best-ranked instance, and among equals the one with the fewest requests. */
  function pick(deploymentId: string): Backend | null {
    let best: { backend: Backend; rank: number } | null = null
    const instances = table.of(deploymentId)
    // Rotates among instances with equal load.
    const first = turn++
    for (let n = 0; n < instances.length; n++) {
      const instance = instances[(first + n) % instances.length]!
      if (reach.isLost(instance.node)) continue
      const backend = backendOf(instance)
      if (!backend) continue
      const rank = rankOf(instance)
      if (!best || rank < best.rank || (rank === best.rank && backend.load < best.backend.load))
        best = { backend, rank }
    }
    return best?.backend ?? null
  }

  function createRemote(instance: ServedInstance): Remote {
    const exchanges = new Set<{ kind: ExchangeKind; abort(): void }>()
    const connect = () => {
      const { state } = table.of(instance.deploymentId).find(({ term }) => term === instance.term) ?? instance
      return reach.connect(instance, state === 'healthy' ? acceptTimeoutMs : limits.waitTimeoutMs)
    }
    const pool = createPool(connect, { idleMs: idleConnectionMs })
    const upstream: Upstream = {
      connect,
      pool,
      begin(kind, abort) {
        const exchange = { kind, abort }
        exchanges.add(exchange)
        return () => void exchanges.delete(exchange)
      },
    }
    return {
      node: instance.node,
      backend: {
        use: (act) => act(upstream),
        isRunning: () => table.has(instance),
        // Its own runner notices crashes.
        checkForCrash() {},
        get load() {
          return exchanges.size
        },
      },
      idle: pool.closeIdle,
      abort(kind) {
        for (const exchange of [...exchanges]) if (exchange.kind === kind) exchange.abort()
      },
      close() {
        for (const { abort } of [...exchanges]) abort()
        pool.close()
      },
    }
  }

  function route(deploymentId: string, act: (backend: Backend) => void, fail: (error: Error) => void): void {
    if (closed) return void fail(new ServerUnavailable('The edge is stopping.'))
    const backend = pick(deploymentId)
    if (backend) return void act(backend)
    const others = waiting.get(deploymentId) ?? new Set()
    if (others.size >= limits.maxWaiting)
      return void fail(new ServerUnavailable('Too many requests wait for this server.'))
    waiting.set(deploymentId, others.add({ act, fail, untilMs: performance.now() + limits.waitTimeoutMs }))
    if (others.size === 1) requestInstance(deploymentId)
    ticking ??= setInterval(tick, tickMs)
  }

  function requestInstance(deploymentId: string): void {
    if (table.of(deploymentId).length > 0) return
    table.request(deploymentId).catch((err) => log.warn({ err, deploymentId }, 'an instance could not be requested'))
  }

  /** Dispatches waiting requests if there is an instance now. */
  function resume(deploymentId: string): void {
    const all = waiting.get(deploymentId)
    if (!all) return
    for (const one of [...all]) {
      const backend = pick(deploymentId)
      const late = performance.now() > one.untilMs
      if (!backend && !late) continue
      all.delete(one)
      if (backend) one.act(backend)
      else one.fail(new ServerUnavailable(`No runner has started the server within ${limits.waitTimeoutMs / 1000} s.`))
    }
    if (all.size === 0) waiting.delete(deploymentId)
  }

  /** Polls, because a lost node may be back, or a requested instance may have been stopped at that moment. */
  function tick(): void {
    for (const deploymentId of [...waiting.keys()]) {
      resume(deploymentId)
      if (waiting.has(deploymentId)) requestInstance(deploymentId)
    }
    if (waiting.size > 0) return
    clearInterval(ticking)
    ticking = undefined
  }

  function refuse(deploymentId: string, message: string): void {
    const all = waiting.get(deploymentId) ?? []
    waiting.delete(deploymentId)
    for (const { fail } of all) fail(new ServerUnavailable(message))
  }

  const readiness = new Map<string, Set<() => void>>()
  table.onChange((deploymentId) => {
    for (const check of readiness.get(deploymentId) ?? []) check()
    const known = remotes.get(deploymentId)
    for (const [term, remote] of known ?? []) {
      const instance = table.of(deploymentId).find((one) => one.term === term)
      if (instance && instance.slot < firstLeavingSlot && instance.state !== 'leaving') continue
      // Requests in progress may finish there. New ones go to another instance if there is one.
      if (!instance) known!.delete(term)
      remote.idle()
    }
    if (known?.size === 0) remotes.delete(deploymentId)
    if (known)
      reach.keepOnly(new Set([...remotes.values()].flatMap((terms) => [...terms.values()].map(({ node }) => node))))
    resume(deploymentId)
  })

  async function ready(deploymentId: string, count: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let late = false
    const check = () => {
      const states = table.of(deploymentId).flatMap(({ slot, state }) => (slot < firstLeavingSlot ? state : []))
      const [healthy, failed] = ['healthy', 'un'].map(
        (found) => states.filter((state) => state.startsWith(found)).length,
      )
      if (healthy! + failed! < count && !late) return
      if (healthy! > 0) resolve()
      else
        reject(
          new ServerUnavailable(failed! > 0 ? 'The server does not start.' : 'The server was not started in time.'),
        )
    }
    const checks = readiness.get(deploymentId) ?? new Set()
    readiness.set(deploymentId, checks.add(check))
    const timer = setTimeout(() => {
      late = true
      check()
    }, limits.waitTimeoutMs)
    check()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      checks.delete(check)
      if (checks.size === 0) readiness.delete(deploymentId)
    }
  }

  const dispatcher = createDispatcher({ route, limits, log })
  return {
    proxy: dispatcher.proxy,
    upgrade: dispatcher.upgrade,
    ready,
    async retire(deploymentId) {
      for (const remote of remotes.get(deploymentId)?.values() ?? []) remote.idle()
    },
    async halt(deploymentId) {
      refuse(deploymentId, 'The server was stopped by the platform.')
      for (const remote of remotes.get(deploymentId)?.values() ?? []) remote.close()
    },
    async close() {
      closed = true
      clearInterval(ticking)
      for (const deploymentId of [...waiting.keys()]) refuse(deploymentId, 'The edge is stopping.')
      for (const known of remotes.values()) {
        for (const remote of known.values()) {
          // WebSockets don't end on their own.
          remote.abort('tunnel')
          remote.idle()
        }
      }
      reach.close()
      await table.close()
    },
  }
}
