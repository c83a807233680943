// An edge's connections to runners, with heartbeats that detect lost nodes.
import type { TLSSocket } from 'node:tls'
import type { ServedInstance } from '../../../services/instances/index.ts'
import { type Dial, heartbeatLine, keyOf, type RunnerNode } from '../instance/dial.ts'
import { InstanceUnreachable } from '../instance/failures.ts'

export type RunnerConnections = {
  /** Connects to an instance. If its node is lost, the connection ends with InstanceUnreachable. */
  connect(instance: ServedInstance, waitMs: number): Promise<TLSSocket>
  /** A lost node gets no requests until it responds again. */
  isLost(node: string): boolean
  /** Forgets all other nodes. */
  keepOnly(nodes: ReadonlySet<string>): void
  close(): void
}

type RunnerState = {
  address: string
  lost: boolean
  /** Whether the last attempt to connect failed. */
  dialFailed: boolean
  heartbeat: TLSSocket | null
  dialing: boolean
  lastEchoMs: number
  lastBeatMs: number
  sockets: Set<TLSSocket>
  timer: NodeJS.Timeout
}

// A machine that loses power closes no connections. So each node echoes a byte per heartbeat, and after three missed
// ones it counts as lost. Visitors hardly notice, and a node that was only busy soon recovers.
const heartbeatMs = 500
const silenceTimeoutMs = 3 * heartbeatMs
const replyTimeoutMs = 2_000

export function createRunnerConnections(openDial: (onLost: (node: string) => void) => Dial): RunnerConnections {
  const nodes = new Map<string, RunnerState>()
  const dial = openDial((node) => {
    const state = nodes.get(node)
    // While there is a heartbeat, only that decides: a connection may also fail because of load or missing descriptors.
    if (!state || state.heartbeat) return
    state.dialFailed = true
    markLost(node, state)
  })

  function watch({ node, address }: RunnerNode): RunnerState {
    const before = nodes.get(node)
    if (before?.address === address) return before
    if (before) forget(node, before)
    const timer = setInterval(() => beat(node, state), heartbeatMs).unref()
    const state: RunnerState = {
      address,
      lost: false,
      dialFailed: false,
      heartbeat: null,
      dialing: false,
      lastEchoMs: 0,
      lastBeatMs: performance.now(),
      sockets: new Set(),
      timer,
    }
    nodes.set(node, state)
    void openHeartbeat(node, state)
    return state
  }

  function beat(node: string, state: RunnerState): void {
    const now = performance.now()
    // This process itself was busy and may not have read the echo yet.
    const late = now - state.lastBeatMs > 2 * heartbeatMs
    state.lastBeatMs = now
    if (!state.heartbeat) return void openHeartbeat(node, state)
    if (now - state.lastEchoMs > silenceTimeoutMs && !late) return void markLost(node, state)
    state.heartbeat.write('.')
  }

  async function openHeartbeat(node: string, state: RunnerState): Promise<void> {
    if (state.dialing) return
    state.dialing = true
    state.dialFailed = false
    try {
      const pulse = await dial({ node, address: state.address }, heartbeatLine, replyTimeoutMs)
      if (nodes.get(node) !== state) return void pulse.destroy()
      state.lastEchoMs = performance.now()
      state.heartbeat = pulse
      state.lost = false
      pulse.on('data', () => {
        state.lastEchoMs = performance.now()
      })
      pulse.on('error', () => pulse.destroy())
      pulse.on('close', () => {
        if (state.heartbeat === pulse) state.heartbeat = null
      })
    } catch {
      // Retried with the next heartbeat. A runner of an older version doesn't support heartbeats, but isn't lost.
      if (!state.dialFailed) state.lost = false
    } finally {
      state.dialing = false
    }
  }

  function markLost(node: string, state: RunnerState): void {
    state.lost = true
    state.heartbeat?.destroy()
    const error = new InstanceUnreachable(`The runner ${node} no longer responds.`, { retryable: true })
    for (const socket of [...state.sockets]) socket.destroy(error)
  }

  function forget(node: string, state: RunnerState): void {
    clearInterval(state.timer)
    state.heartbeat?.destroy()
    nodes.delete(node)
  }

  return {
    async connect(instance, waitMs) {
      const { sockets } = watch(instance)
      const socket = await dial(instance, keyOf(instance), waitMs)
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      return socket
    },
    isLost: (node) => nodes.get(node)?.lost ?? false,
    keepOnly(nodesToKeep) {
      for (const [node, state] of [...nodes]) if (!nodesToKeep.has(node)) forget(node, state)
    },
    close() {
      for (const [node, state] of [...nodes]) forget(node, state)
    },
  }
}
