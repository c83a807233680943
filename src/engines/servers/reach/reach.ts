// The nodes of runners as an edge reaches them: whether each is there at all, and connections that end when it is not.
import type { TLSSocket } from 'node:tls'
import type { ServedInstance } from '../../../services/instances/index.ts'
import { type Dial, keyOf, pulseLine, type RunnerNode } from '../instance/dial.ts'
import { NotReached } from '../instance/failures.ts'

export type Reach = {
  /** A connection to the instance; it ends with NotReached when its node does not answer any more. */
  connect(instance: ServedInstance, waitMs: number): Promise<TLSSocket>
  /** It gets no request until it answers again. */
  isLost(node: string): boolean
  /** The others are not asked any more. */
  keep(nodes: ReadonlySet<string>): void
  close(): void
}

type Known = {
  address: string
  lost: boolean
  /** The last try to connect has found nobody. */
  missed: boolean
  pulse: TLSSocket | null
  dialing: boolean
  heardMs: number
  beatMs: number
  sockets: Set<TLSSocket>
  timer: NodeJS.Timeout
}

// A machine that was switched off closes no connection. So a byte goes to each node and back, and if none comes for
// three beats, it is taken for lost: visitors hardly notice, and a node that is only busy is soon found again.
const beatMs = 500
const silentMs = 3 * beatMs
const answerMs = 2_000

export function createReach(openDial: (onLost: (node: string) => void) => Dial): Reach {
  const nodes = new Map<string, Known>()
  const dial = openDial((node) => {
    const known = nodes.get(node)
    // While its pulse is there, that alone decides: many connections at once, or too few descriptors here, make one fail.
    if (!known || known.pulse) return
    known.missed = true
    lose(node, known)
  })

  function watch({ node, address }: RunnerNode): Known {
    const before = nodes.get(node)
    if (before?.address === address) return before
    if (before) forget(node, before)
    const timer = setInterval(() => beat(node, known), beatMs).unref()
    const known: Known = {
      address,
      lost: false,
      missed: false,
      pulse: null,
      dialing: false,
      heardMs: 0,
      beatMs: performance.now(),
      sockets: new Set(),
      timer,
    }
    nodes.set(node, known)
    void feel(node, known)
    return known
  }

  function beat(node: string, known: Known): void {
    const now = performance.now()
    // This process was busy itself: what the node has sent is not read yet.
    const late = now - known.beatMs > 2 * beatMs
    known.beatMs = now
    if (!known.pulse) return void feel(node, known)
    if (now - known.heardMs > silentMs && !late) return void lose(node, known)
    known.pulse.write('.')
  }

  async function feel(node: string, known: Known): Promise<void> {
    if (known.dialing) return
    known.dialing = true
    known.missed = false
    try {
      const pulse = await dial({ node, address: known.address }, pulseLine, answerMs)
      if (nodes.get(node) !== known) return void pulse.destroy()
      known.heardMs = performance.now()
      known.pulse = pulse
      known.lost = false
      pulse.on('data', () => {
        known.heardMs = performance.now()
      })
      pulse.on('error', () => pulse.destroy())
      pulse.on('close', () => {
        if (known.pulse === pulse) known.pulse = null
      })
    } catch {
      // The next beat tries again. A runner of an older version knows no pulse, but it is there.
      if (!known.missed) known.lost = false
    } finally {
      known.dialing = false
    }
  }

  function lose(node: string, known: Known): void {
    known.lost = true
    known.pulse?.destroy()
    const error = new NotReached(`The runner ${node} does not answer any more.`, { again: true })
    for (const socket of [...known.sockets]) socket.destroy(error)
  }

  function forget(node: string, known: Known): void {
    clearInterval(known.timer)
    known.pulse?.destroy()
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
    keep(wanted) {
      for (const [node, known] of [...nodes]) if (!wanted.has(node)) forget(node, known)
    },
    close() {
      for (const [node, known] of [...nodes]) forget(node, known)
    },
  }
}
