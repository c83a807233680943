// Supervises one server: starts it, restarts it after crashes, and stops it when it isn't needed.
import { setTimeout as delay } from 'node:timers/promises'
import { createCrashCheck } from '../instance/crash-check.ts'
import { ServerUnavailable } from '../instance/failures.ts'
import type { Instance, Upstream } from '../instance/instance.ts'
import type { ServerLimits } from '../instance/limits.ts'
import type { Output } from '../instance/output.ts'
import { createBackOff } from './back-off.ts'
import { type LivenessChange, watchLiveness } from './liveness.ts'
import type { ServerMetrics } from './metrics.ts'

export type Supervisor = {
  readonly output: Output
  /** Starts the server if it isn't running, and keeps it up until `retire`. */
  ready(): Promise<void>
  /** Keeps it up until `retire`, however often it fails. `ready` or a request starts it the first time. */
  keep(): void
  /** Starts it and keeps it up until `release`. If the start fails, it isn't retried. */
  hold(): Promise<Instance>
  /** From now on it only runs on demand, unless it is kept. */
  release(): void
  /** Ends all holds and stops the server, unless it is kept. */
  abandon(why: string): Promise<void>
  /** Calls `act` once there is a healthy run, which isn't stopped before `act` returns. */
  use(act: (instance: Instance) => void, fail: (error: Error) => void): void
  isRunning(instance: Upstream): boolean
  /** Whether there is a healthy run. */
  readonly isUp: boolean
  /** Whether it runs, starts, or has waiting requests. */
  readonly isWanted: boolean
  /** The number of open exchanges. */
  readonly load: number
  /** Called when a connection broke. Holds back requests until a possible crash is reported. */
  checkForCrash(instance: Upstream): void
  /** Stops it when its requests are done. `why` is for its log. */
  retire(why?: string): Promise<void>
  /** Stops it now, whatever it is doing, until it is used again. */
  halt(): Promise<void>
  /** Stops it if it runs on demand and has been idle for this long. */
  stopIfIdle(idleMs: number): Promise<void> | null
  /** Whether it runs or starts, on demand only. */
  readonly onDemand: boolean
  /** `performance.now()` of the last use; undefined while it is in use or not running. */
  readonly idleSinceMs: number | undefined
  /** Whether its state can be dropped. */
  readonly forgettable: boolean
  close(): Promise<void>
}

export type SupervisorOptions = {
  limits: ServerLimits
  output: Output
  launch(signal: AbortSignal): Promise<Instance>
  /** Makes room for one more server on demand, or rejects. */
  admit(): Promise<void>
  metrics: ServerMetrics
  /** Called on each change. `stopped` means that it won't restart on its own. */
  onState?(state: RunState, error?: Error): void
}

export type RunState = 'starting' | 'healthy' | 'failed' | 'stopped'

const drainPollMs = 25

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { limits, output, launch, admit, metrics, onState = () => {} } = options
  let running: Instance | null = null
  let attempt: { promise: Promise<Instance>; cancel: AbortController } | null = null
  // A start waits for the end of the previous run, so that a server never uses the memory of two.
  let ending: Promise<void> | null = null
  const backOff = createBackOff(limits)
  let healthySinceMs = 0
  let readying = 0
  let isKept = false
  let holds = 0
  let waiting = 0
  let closed = false
  /** Keeps waiting requests from starting it again. */
  let halted = false
  const crashCheck = createCrashCheck((instance) => running === instance)

  function acquire(): Promise<Instance> {
    if (closed) return Promise.reject(new ServerUnavailable('The runner is stopping.'))
    if (halted) return Promise.reject(new ServerUnavailable('The server was stopped by the platform.'))
    if (running) return Promise.resolve(running)
    if (!attempt) {
      const cancel = new AbortController()
      const promise = start(cancel.signal).finally(() => {
        attempt = null
      })
      attempt = { promise, cancel }
      promise.catch(() => isKept && restart())
    }
    return attempt.promise
  }

  /** Failures are logged, and waiting requests get them too. */
  const restart = () => void acquire().catch(() => {})

  async function start(signal: AbortSignal): Promise<Instance> {
    try {
      await ending
      if (!isKept && readying === 0) await admit()
      if (backOff.waitMs > 0) await delay(backOff.waitMs, undefined, { signal })
      signal.throwIfAborted()
      const startedMs = performance.now()
      const instance = await launch(signal)
      healthySinceMs = performance.now()
      output.system(`The server answers after ${Math.round(healthySinceMs - startedMs)} ms`)
      running = instance
      metrics.started()
      void instance.ended.then((end) => crashed(instance, end))
      onState('healthy')
      watchLiveness(instance, limits.liveness, (change) => onLiveness(instance, change))
      return instance
    } catch (error) {
      if (signal.aborted) throw new ServerUnavailable('The server was stopped before it was healthy.')
      const [reason] = (error as Error).message.split('\n', 1)
      output.system(`${reason} (next start not before ${backOff.failed() / 1000} s from now)`)
      onState('failed', error as Error)
      throw error
    }
  }

  /** While it doesn't respond, edges choose another instance if there is one. */
  function onLiveness(instance: Instance, change: LivenessChange): void {
    if (running !== instance) return
    if (change === null || change === 'short') return void onState(change ? 'starting' : 'healthy')
    kill(instance)
    crashed(instance, change.reason)
  }

  function crashed(instance: Instance, end: string): void {
    if (running !== instance) return
    running = null
    metrics.crashed()
    const delayS = backOff.failed(performance.now() - healthySinceMs) / 1000
    const restarts = isKept || holds > 0 || performance.now() - instance.lastUsedMs < limits.idleMs
    output.system(`The server ${end}; it is started again in ${delayS} s`)
    onState(restarts ? 'starting' : 'stopped')
    if (restarts) restart()
  }

  const busy = (instance: Instance) => instance.exchanges > 0 || waiting > 0

  function kill(instance: Instance): void {
    const killed = instance.kill().finally(() => {
      ending = ending === killed ? null : ending
    })
    ending = killed
  }

  function stop(): Promise<void> {
    const instance = running
    running = null
    if (instance) kill(instance)
    if (instance) onState('stopped')
    return ending ?? Promise.resolve()
  }

  function use(act: (instance: Instance) => void, fail: (error: Error) => void): void {
    halted = false
    if (running && !crashCheck.pending) return void act(running)
    if (waiting >= limits.maxWaiting) return void fail(new ServerUnavailable('Too many requests wait for this server.'))
    waiting++
    let isDone = false
    const finish = (what: () => void) => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      what()
      waiting--
    }
    const timer = setTimeout(() => {
      finish(() => fail(new ServerUnavailable(`The server did not start within ${limits.waitTimeoutMs / 1000} s.`)))
    }, limits.waitTimeoutMs)
    const next = () => {
      if (isDone) return
      acquire().then(
        // It may already have crashed. Then the request waits for the next start.
        (instance) => (instance === running ? finish(() => act(instance)) : next()),
        (error) => finish(() => fail(error)),
      )
    }
    if (crashCheck.pending) void crashCheck.pending.then(next)
    else next()
  }

  async function acquireReady(): Promise<Instance> {
    halted = false
    readying++
    try {
      return await acquire()
    } finally {
      readying--
    }
  }

  async function retire(why = 'Another deployment has taken over'): Promise<void> {
    isKept = false
    holds = 0
    const retiredMs = performance.now()
    if (attempt) {
      const { promise, cancel } = attempt
      if (waiting === 0) cancel.abort()
      await promise.catch(() => {})
    }
    const instance = running
    if (!instance) return void (await ending)
    const endMs = retiredMs + limits.drainMs
    while (!isKept && running === instance && busy(instance) && performance.now() < endMs) await delay(drainPollMs)
    // Kept again since, for example by a rollback.
    if (isKept || running !== instance) return void (await ending)
    instance.abort(['request', 'tunnel'], retiredMs)
    // Newer requests are for the deployment's own URL, so it runs until it is idle.
    if (busy(instance)) return
    output.system(`${why}; the server is stopped`)
    await stop()
  }

  async function halt(): Promise<void> {
    isKept = false
    holds = 0
    halted = true
    running?.abort(['request', 'tunnel'])
    if (attempt) {
      attempt.cancel.abort()
      await attempt.promise.catch(() => {})
      // Used again since.
      if (!halted) return
    }
    if (running) output.system('The platform has stopped the server')
    await stop()
  }

  return {
    output,
    use,
    halt,
    checkForCrash(instance) {
      if (running === instance) crashCheck.check(running)
    },
    isRunning: (instance) => running === instance,
    get isUp() {
      return running !== null
    },
    get isWanted() {
      return running !== null || attempt !== null || waiting > 0
    },
    get load() {
      return running?.exchanges ?? 0
    },
    async ready() {
      await acquireReady()
      isKept = true
    },
    keep() {
      halted = false
      isKept = true
    },
    async hold() {
      const instance = await acquireReady()
      holds++
      return instance
    },
    release() {
      holds = Math.max(0, holds - 1)
      running?.touch()
    },
    retire,
    async abandon(why) {
      holds = 0
      if (!isKept) await retire(why)
    },
    stopIfIdle(idleMs) {
      if (!running || isKept || holds > 0 || busy(running) || performance.now() - running.lastUsedMs < idleMs)
        return null
      output.system('The server is idle and was stopped; the next request starts it again')
      return stop()
    },
    get onDemand() {
      return !isKept && holds === 0 && readying === 0 && (running !== null || attempt !== null)
    },
    get idleSinceMs() {
      return running && !isKept && holds === 0 && !busy(running) ? running.lastUsedMs : undefined
    },
    get forgettable() {
      return !isKept && !running && !attempt && !ending && waiting === 0 && backOff.isOver
    },
    async close() {
      closed = true
      isKept = false
      attempt?.cancel.abort()
      await attempt?.promise.catch(() => {})
      const instance = running
      if (instance) {
        // WebSockets don't end on their own.
        instance.abort(['tunnel'])
        const endMs = performance.now() + limits.closeMs
        while (running === instance && instance.exchanges > 0 && performance.now() < endMs) await delay(drainPollMs)
        instance.abort(['request'])
      }
      await stop()
      await output.flush()
    },
  }
}
