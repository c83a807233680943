// The server projects of an edge: which instance gets a request, here or on another node, and who waits for one.
import type { Logger } from 'pino'
import { firstLeavingSlot, type ServedInstance } from '../../../services/instances/index.ts'
import { keyOf } from '../instance/dial.ts'
import { ServerUnavailable } from '../instance/failures.ts'
import type { ExchangeKind, Upstream } from '../instance/instance.ts'
import { defaultLimits, type ServerLimits } from '../instance/limits.ts'
import { createPool } from '../instance/pool.ts'
import { createVisits, type Lane, type Visits } from '../proxy/visits.ts'
import type { InstanceTable } from './instance-table.ts'
import type { Reach } from './reach.ts'

export type BalancerOptions = {
  table: InstanceTable
  reach: Reach
  /** The runner of this process. */
  local: LocalInstances | null
  log: Logger
  limits?: Partial<ServerLimits>
}

export type LocalInstances = {
  node: string
  /** Null if this node does not have the instance. */
  lane(key: string): Lane | null
}

export type Balancer = Visits & {
  /** Resolves when so many instances are healthy, or those of them that start. Rejects if none does. */
  ready(deploymentId: string, count: number): Promise<void>
  /** Others get the requests from now on: connections that are not in use are closed. */
  retire(deploymentId: string): Promise<void>
  /** It is barred: nobody waits for it any more. */
  halt(deploymentId: string): Promise<void>
  close(): Promise<void>
}

type Remote = { node: string; lane: Lane; idle(): void; cut(kind: ExchangeKind): void; close(): void }
type Waiting = { act(lane: Lane): void; fail(error: Error): void; untilMs: number }

// Shorter than the runner waits before it stops an instance without connections.
const idleConnectionMs = 4_000
// How long a healthy instance may take to accept a connection.
const acceptMs = 5_000
const tickMs = 500

/** Those that are healthy come first, then those that are about to leave. */
function rankOf({ state, slot }: ServedInstance): number {
  if (state === 'leaving') return 1
  return (state === 'healthy' ? 0 : 2) + (slot < firstLeavingSlot ? 0 : 1)
}

export function createBalancer(options: BalancerOptions): Balancer {
  const { table, reach, local, log } = options
  const limits = { ...defaultLimits, ...options.limits }
  /** By deployment and term. */
  const remotes = new Map<string, Map<string, Remote>>()
  const waiting = new Map<string, Set<Waiting>>()
  let ticking: NodeJS.Timeout | undefined
  let turn = 0
  let closed = false

  function laneOf(instance: ServedInstance): Lane | null {
    const { deploymentId, term, node } = instance
    const own = local?.lane(keyOf(instance))
    if (own || node === local?.node) return own ?? null
    const known = remotes.get(deploymentId) ?? new Map<string, Remote>()
    const remote = known.get(term) ?? createRemote(instance)
    remotes.set(deploymentId, known.set(term, remote))
    return remote.lane
  }

  /** Of the best ones (healthy, and not about to leave) the one with the fewest requests under way. */
  function pick(deploymentId: string): Lane | null {
    let best: { lane: Lane; rank: number } | null = null
    const instances = table.of(deploymentId)
    // In turn, where they have equally many.
    const first = turn++
    for (let n = 0; n < instances.length; n++) {
      const instance = instances[(first + n) % instances.length]!
      if (reach.isLost(instance.node)) continue
      const lane = laneOf(instance)
      if (!lane) continue
      const rank = rankOf(instance)
      if (!best || rank < best.rank || (rank === best.rank && lane.load < best.lane.load)) best = { lane, rank }
    }
    return best?.lane ?? null
  }

  function createRemote(instance: ServedInstance): Remote {
    const exchanges = new Set<{ kind: ExchangeKind; cut(): void }>()
    const connect = () => {
      const { state } = table.of(instance.deploymentId).find(({ term }) => term === instance.term) ?? instance
      return reach.connect(instance, state === 'healthy' ? acceptMs : limits.waitMs)
    }
    const pool = createPool(connect, { idleMs: idleConnectionMs })
    const upstream: Upstream = {
      connect,
      pool,
      begin(kind, cut) {
        const exchange = { kind, cut }
        exchanges.add(exchange)
        return () => void exchanges.delete(exchange)
      },
    }
    return {
      node: instance.node,
      lane: {
        use: (act) => act(upstream),
        isRunning: () => table.has(instance),
        // The runner finds out by itself.
        checkForCrash() {},
        get load() {
          return exchanges.size
        },
      },
      idle: pool.closeIdle,
      cut(kind) {
        for (const exchange of [...exchanges]) if (exchange.kind === kind) exchange.cut()
      },
      close() {
        for (const { cut } of [...exchanges]) cut()
        pool.close()
      },
    }
  }

  function route(deploymentId: string, act: (lane: Lane) => void, fail: (error: Error) => void): void {
    if (closed) return void fail(new ServerUnavailable('The edge is stopping.'))
    const lane = pick(deploymentId)
    if (lane) return void act(lane)
    const others = waiting.get(deploymentId) ?? new Set()
    if (others.size >= limits.waiting)
      return void fail(new ServerUnavailable('Too many requests wait for this server.'))
    waiting.set(deploymentId, others.add({ act, fail, untilMs: performance.now() + limits.waitMs }))
    if (others.size === 1) ask(deploymentId)
    ticking ??= setInterval(tick, tickMs)
  }

  function ask(deploymentId: string): void {
    if (table.of(deploymentId).length > 0) return
    table.ask(deploymentId).catch((err) => log.warn({ err, deploymentId }, 'a server could not be asked for'))
  }

  /** Goes on with those who wait, if there is an instance by now. */
  function resume(deploymentId: string): void {
    const all = waiting.get(deploymentId)
    if (!all) return
    for (const one of [...all]) {
      const lane = pick(deploymentId)
      const late = performance.now() > one.untilMs
      if (!lane && !late) continue
      all.delete(one)
      if (lane) one.act(lane)
      else one.fail(new ServerUnavailable(`No runner has started the server within ${limits.waitMs / 1000} s.`))
    }
    if (all.size === 0) waiting.delete(deploymentId)
  }

  /** A node may be found again, and an instance that was asked for may have been stopped just then. */
  function tick(): void {
    for (const deploymentId of [...waiting.keys()]) {
      resume(deploymentId)
      if (waiting.has(deploymentId)) ask(deploymentId)
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
      // What is under way there may still end; nothing new is sent if there is another one.
      if (!instance) known!.delete(term)
      remote.idle()
    }
    if (known?.size === 0) remotes.delete(deploymentId)
    if (known)
      reach.keep(new Set([...remotes.values()].flatMap((terms) => [...terms.values()].map(({ node }) => node))))
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
      else reject(new ServerUnavailable(failed! > 0 ? 'It does not start.' : 'It is not started.'))
    }
    const checks = readiness.get(deploymentId) ?? new Set()
    readiness.set(deploymentId, checks.add(check))
    const timer = setTimeout(() => {
      late = true
      check()
    }, limits.waitMs)
    check()
    try {
      await promise
    } finally {
      clearTimeout(timer)
      checks.delete(check)
      if (checks.size === 0) readiness.delete(deploymentId)
    }
  }

  const visits = createVisits({ route, limits, log })
  return {
    proxy: visits.proxy,
    upgrade: visits.upgrade,
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
          // A WebSocket does not end by itself.
          remote.cut('tunnel')
          remote.idle()
        }
      }
      reach.close()
      await table.close()
    },
  }
}
