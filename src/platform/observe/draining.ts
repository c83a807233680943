// Draining: the process reports that it isn't ready and takes no new work, but keeps serving until load balancers notice.

/** What servers need to know about it. Like an AbortSignal, except that a drain may also end, with a `resume` event. */
export type DrainSignal = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>

/** Takes no new work while paused; work in progress continues. */
export type Pausable = { pause(paused: boolean): void }

/** Pauses the parts whenever the process drains. */
export function pauseWhile(draining: DrainSignal, parts: readonly Pausable[]): void {
  const pause = () => {
    for (const part of parts) part.pause(draining.aborted)
  }
  for (const change of ['abort', 'resume']) draining.addEventListener(change, pause)
  pause()
}

/**
 * Stops a worker process's server from accepting connections once another process has replaced it. A connection accepted
 * just before the server closes would be closed before its first request; node:cluster gives refused ones to the others.
 */
export function refuseOnceReplaced(server: { maxConnections: number }, draining: DrainSignal | undefined): void {
  draining?.addEventListener('replaced', () => {
    server.maxConnections = 0
  })
}

const sentences = {
  stopping: 'The process is stopping; it still serves for a moment.',
  drained: 'The node is drained: it serves on, but takes no new work until `berth undrain`.',
}

/** `replaced`: another worker process has taken over, so load balancers needn't know. */
export type DrainReason = keyof typeof sentences | 'replaced'

/** Emits `abort` when a drain starts and `resume` when it ends, for whatever reason. */
export class Draining extends EventTarget implements DrainSignal {
  readonly #reasons = new Set<DrainReason>()

  get aborted(): boolean {
    return this.#reasons.size > 0
  }

  has(reason: DrainReason): boolean {
    return this.#reasons.has(reason)
  }

  set(reason: DrainReason, holds: boolean): void {
    const before = this.aborted
    if (holds) this.#reasons.add(reason)
    else this.#reasons.delete(reason)
    if (holds && reason === 'replaced') this.dispatchEvent(new Event('replaced'))
    if (this.aborted !== before) this.dispatchEvent(new Event(this.aborted ? 'abort' : 'resume'))
  }

  /** For health checks. */
  readonly readiness = (): string | null => {
    const reason = this.has('stopping') ? 'stopping' : this.has('drained') ? 'drained' : null
    return reason && sentences[reason]
  }
}
