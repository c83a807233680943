// Supervises one deployment's server: started once, restarted after a crash, stopped when it is not needed.
import { setTimeout as delay } from 'node:timers/promises'
import { createCrashCheck } from '../instance/crash-check.ts'
import { ServerUnavailable } from '../instance/failures.ts'
import type { Instance, Upstream } from '../instance/instance.ts'
import type { ServerLimits } from '../instance/limits.ts'
import type { Output } from '../instance/output.ts'
import { createBackOff } from './back-off.ts'
import { type Silence, watchLiveness } from './liveness.ts'
import type { ServerMetrics } from './metrics.ts'

export type Supervisor = {
  readonly output: Output
  /** Starts the server if it does not run, and keeps it up until `retire`. */
  ready(): Promise<void>
  /** Keeps it up until `retire`, however often it fails; the first start is by `ready` or a request. */
  keep(): void
  /** Starts it and keeps it up until `release`; it is not restarted if it fails. */
  hold(): Promise<Instance>
  /** From here on it runs on demand only, unless it is kept. */
  release(): void
  /** Ends the hold and stops the held server, unless it is kept. */
  abandon(why: string): Promise<void>
  /** Calls `act` with a healthy run as soon as there is one; the run is not stopped before `act` has returned. */
  use(act: (instance: Instance) => void, fail: (error: Error) => void): void
  isRunning(instance: Upstream): boolean
  /** A healthy run is there. */
  readonly isUp: boolean
  /** It runs or starts, or a request waits for it. */
  readonly isWanted: boolean
  /** Exchanges that are under way. */
  readonly load: number
  /** A connection broke. A crash is reported a moment later: until then no request is sent to the run. */
  checkForCrash(instance: Upstream): void
  /** Stops it when its requests are done; `why` is for its log. */
  retire(why?: string): Promise<void>
  /** Stops it now, whatever it is doing, until somebody wants it again. */
  halt(): Promise<void>
  /** Stops it if it runs on demand only and had no request for this long. */
  stopIfIdle(idleMs: number): Promise<void> | null
  /** It runs or is starting, on demand only. */
  readonly onDemand: boolean
  /** `performance.now()` of the last use; undefined while it is in use or not running. */
  readonly idleSinceMs: number | undefined
  /** Its state can be dropped. */
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
  /** Told of each change; `stopped` means that it is not started again by itself. */
  onState?(state: RunState, error?: Error): void
}

export type RunState = 'starting' | 'healthy' | 'failed' | 'stopped'

const drainPollMs = 25

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { limits, output, launch, admit, metrics, onState = () => {} } = options
  let running: Instance | null = null
  let attempt: { promise: Promise<Instance>; cancel: AbortController } | null = null
  // A deployment has one process at a time, with the memory of one server, so a start waits until the last run ended.
  let ending: Promise<void> | null = null
  const backOff = createBackOff(limits)
  let healthySinceMs = 0
  let readying = 0
  let kept = false
  let holds = 0
  let waiting = 0
  let closed = false
  /** Requests that still wait must not start it again. */
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
      promise.catch(() => kept && restart())
    }
    return attempt.promise
  }

  /** Failures are logged, and requests that wait get them too. */
  const restart = () => void acquire().catch(() => {})

  async function start(signal: AbortSignal): Promise<Instance> {
    try {
      await ending
      if (!kept && readying === 0) await admit()
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
      watchLiveness(instance, limits.liveness, (silence) => hear(instance, silence))
      return instance
    } catch (error) {
      if (signal.aborted) throw new ServerUnavailable('The server was stopped before it was healthy.')
      const [reason] = (error as Error).message.split('\n', 1)
      output.system(`${reason} (next start not before ${backOff.failed() / 1000} s from now)`)
      onState('failed', error as Error)
      throw error
    }
  }

  /** While it is silent edges choose another instance, where there is one. */
  function hear(instance: Instance, silence: Silence): void {
    if (running !== instance) return
    if (silence === null || silence === 'short') return void onState(silence ? 'starting' : 'healthy')
    kill(instance)
    crashed(instance, silence.reason)
  }

  function crashed(instance: Instance, end: string): void {
    if (running !== instance) return
    running = null
    metrics.crashed()
    const delayS = backOff.failed(performance.now() - healthySinceMs) / 1000
    const restarts = kept || holds > 0 || performance.now() - instance.lastUsedMs < limits.idleMs
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
    if (waiting >= limits.waiting) return void fail(new ServerUnavailable('Too many requests wait for this server.'))
    waiting++
    let over = false
    const finish = (what: () => void) => {
      if (over) return
      over = true
      clearTimeout(timer)
      what()
      waiting--
    }
    const timer = setTimeout(() => {
      finish(() => fail(new ServerUnavailable(`The server did not start within ${limits.waitMs / 1000} s.`)))
    }, limits.waitMs)
    const next = () => {
      if (over) return
      acquire().then(
        // It may have crashed already; then the request waits for the next start.
        (instance) => (instance === running ? finish(() => act(instance)) : next()),
        (error) => finish(() => fail(error)),
      )
    }
    if (crashCheck.pending) void crashCheck.pending.then(next)
    else next()
  }

  async function readied(): Promise<Instance> {
    halted = false
    readying++
    try {
      return await acquire()
    } finally {
      readying--
    }
  }

  async function retire(why = 'Another deployment has taken over'): Promise<void> {
    kept = false
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
    while (!kept && running === instance && busy(instance) && performance.now() < endMs) await delay(drainPollMs)
    // Kept again meanwhile, for example by a rollback.
    if (kept || running !== instance) return void (await ending)
    instance.cut(['request', 'tunnel'], retiredMs)
    // Newer requests are for the deployment's own address: it runs for them until it is idle.
    if (busy(instance)) return
    output.system(`${why}; the server is stopped`)
    await stop()
  }

  async function halt(): Promise<void> {
    kept = false
    holds = 0
    halted = true
    running?.cut(['request', 'tunnel'])
    if (attempt) {
      attempt.cancel.abort()
      await attempt.promise.catch(() => {})
      // Wanted again meanwhile.
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
      await readied()
      kept = true
    },
    keep() {
      halted = false
      kept = true
    },
    async hold() {
      const instance = await readied()
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
      if (!kept) await retire(why)
    },
    stopIfIdle(idleMs) {
      if (!running || kept || holds > 0 || busy(running) || performance.now() - running.lastUsedMs < idleMs) return null
      output.system('The server is stopped for want of requests; the next one starts it again')
      return stop()
    },
    get onDemand() {
      return !kept && holds === 0 && readying === 0 && (running !== null || attempt !== null)
    },
    get idleSinceMs() {
      return running && !kept && holds === 0 && !busy(running) ? running.lastUsedMs : undefined
    },
    get forgettable() {
      return !kept && !running && !attempt && !ending && waiting === 0 && backOff.isOver
    },
    async close() {
      closed = true
      kept = false
      attempt?.cancel.abort()
      await attempt?.promise.catch(() => {})
      const instance = running
      if (instance) {
        // A WebSocket does not end by itself.
        instance.cut(['tunnel'])
        const endMs = performance.now() + limits.closeMs
        while (running === instance && instance.exchanges > 0 && performance.now() < endMs) await delay(drainPollMs)
        instance.cut(['request'])
      }
      await stop()
      await output.flush()
    },
  }
}
