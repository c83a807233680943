// Draining: the process says that it is not ready and takes no new work, but serves on until balancers know it.

/** What those who serve need to know of it. An AbortSignal will do, but a drain may also end: with a `resume` event. */
export type DrainSignal = Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>

/** Takes no new work while it is paused; what is under way goes on. */
export type Pausable = { pause(paused: boolean): void }

/** Pauses them whenever the process drains. */
export function pauseWhile(draining: DrainSignal, parts: readonly Pausable[]): void {
  const pause = () => {
    for (const part of parts) part.pause(draining.aborted)
  }
  for (const change of ['abort', 'resume']) draining.addEventListener(change, pause)
  pause()
}

/**
 * A server of a worker process whose place another one has gets no more connections. One that came a moment before the
 * server closes would be closed with it, before its first request; node:cluster gives what is refused to the others.
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

/** `replaced`: of a worker process whose place another one has, so that no balancer needs to know. */
export type DrainReason = keyof typeof sentences | 'replaced'

/** Emits `abort` when it begins and `resume` when it ends, by whichever reason. */
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

  /** For health. */
  readonly readiness = (): string | null => {
    const reason = this.has('stopping') ? 'stopping' : this.has('drained') ? 'drained' : null
    return reason && sentences[reason]
  }
}
