// Keeps one deployment's server as it is wanted: started once, restarted after a crash, stopped when nobody needs it.
import { setTimeout as delay } from 'node:timers/promises'
import { ServerUnavailable } from './failures.ts'
import { isGone } from './health.ts'
import type { Instance } from './instance.ts'
import type { ServerLimits } from './limits.ts'
import type { Output } from './output.ts'

export type Supervisor = {
  readonly output: Output
  /** Starts it if it does not run, and keeps it up from then on until `retire`. */
  ready(): Promise<void>
  /** Hands over the healthy run, at once or when there is one; the run is not stopped before `act` has returned. */
  use(act: (instance: Instance) => void, fail: (error: Error) => void): void
  isRunning(instance: Instance): boolean
  /** A connection broke. If that was a crash, its end is noticed a moment later: until then nobody is sent there. */
  suspect(instance: Instance): void
  retire(): Promise<void>
  /** Stops it if it is on demand only and was not asked for as long. */
  stopIfIdle(idleMs: number): Promise<void> | null
  /** Runs or is starting, for requests alone. */
  readonly onDemand: boolean
  /** `performance.now()` of the last use; undefined while it is in use or not running. */
  readonly idleSinceMs: number | undefined
  /** Nothing to remember any more. */
  readonly forgettable: boolean
  close(): Promise<void>
}

export type SupervisorOptions = {
  limits: ServerLimits
  output: Output
  launch(signal: AbortSignal): Promise<Instance>
  /** Makes room for one more server that runs for requests alone, or rejects. */
  admit(): Promise<void>
}

const drainPollMs = 25
// Longer than the way from a crash to its notice on a busy machine.
const noticeMs = 2_000
// Seldom, so that servers that break connections on purpose are not asked for nothing.
const suspectEveryMs = 1_000

export function createSupervisor({ limits, output, launch, admit }: SupervisorOptions): Supervisor {
  let running: Instance | null = null
  let attempt: { promise: Promise<Instance>; cancel: AbortController } | null = null
  // Two processes in one tree would spoil each other's files, so a start waits for the last end.
  let ending: Promise<void> | null = null
  let failures = 0
  let notBeforeMs = 0
  let healthySinceMs = 0
  let readying = 0
  let kept = false
  let waiting = 0
  let closed = false
  let suspicion: { instance: Instance; sinceMs: number; pending: boolean; over: Promise<unknown> } | null = null

  function acquire(): Promise<Instance> {
    if (closed) return Promise.reject(new ServerUnavailable('The edge is stopping.'))
    if (running) return Promise.resolve(running)
    if (!attempt) {
      const cancel = new AbortController()
      const promise = start(cancel.signal).finally(() => {
        attempt = null
      })
      attempt = { promise, cancel }
      promise.catch(() => {
        if (kept) restart()
      })
    }
    return attempt.promise
  }

  function restart(): void {
    // Its failures are in the log, and whoever waits hears of them too.
    void acquire().catch(() => {})
  }

  async function start(signal: AbortSignal): Promise<Instance> {
    try {
      await ending
      if (!kept && readying === 0) await admit()
      const backoffMs = notBeforeMs - performance.now()
      if (backoffMs > 0) await delay(backoffMs, undefined, { signal })
      signal.throwIfAborted()
      const startedMs = performance.now()
      const instance = await launch(signal)
      healthySinceMs = performance.now()
      output.system(`The server answers after ${Math.round(healthySinceMs - startedMs)} ms`)
      running = instance
      void instance.ended.then((end) => crashed(instance, end))
      return instance
    } catch (error) {
      if (signal.aborted) throw new ServerUnavailable('The server was stopped before it was healthy.')
      const [reason] = (error as Error).message.split('\n', 1)
      output.system(`${reason} (next start not before ${backOff() / 1000} s from now)`)
      throw error
    }
  }

  /** Counts a failure; returns how long the next start has to wait. */
  function backOff(): number {
    const { restartDelaysMs: table } = limits
    const delayMs = table[Math.min(failures++, table.length - 1)]!
    notBeforeMs = performance.now() + delayMs
    return delayMs
  }

  function crashed(instance: Instance, end: string): void {
    if (running !== instance) return
    running = null
    if (performance.now() - healthySinceMs >= limits.soundMs) failures = 0
    const recentlyUsed = performance.now() - instance.lastUsedMs < limits.idleMs
    output.system(`The server ${end}; it is started again in ${backOff() / 1000} s`)
    if (kept || recentlyUsed) restart()
  }

  const busy = (instance: Instance) => instance.exchanges > 0 || waiting > 0

  function stop(): Promise<void> {
    const instance = running
    running = null
    if (instance) {
      const killed = instance.kill().finally(() => {
        if (ending === killed) ending = null
      })
      ending = killed
    }
    return ending ?? Promise.resolve()
  }

  function use(act: (instance: Instance) => void, fail: (error: Error) => void): void {
    if (running && !suspicion?.pending) return void act(running)
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
        // It may have crashed already; then there is another start to wait for.
        (instance) => (instance === running ? finish(() => act(instance)) : next()),
        (error) => finish(() => fail(error)),
      )
    }
    if (suspicion?.pending) void suspicion.over.then(next)
    else next()
  }

  function suspect(instance: Instance): void {
    const nowMs = performance.now()
    const known = suspicion?.instance === instance && nowMs - suspicion.sinceMs < suspectEveryMs
    if (running !== instance || known) return
    const gone = isGone(instance.address).then(async (gone) => {
      if (gone) await delay(noticeMs, undefined, { ref: false })
    })
    const over = Promise.race([instance.ended, gone])
    const current = { instance, sinceMs: nowMs, pending: true, over }
    suspicion = current
    void over.then(() => {
      current.pending = false
    })
  }

  return {
    output,
    use,
    suspect,
    isRunning: (instance) => running === instance,
    async ready() {
      readying++
      try {
        await acquire()
        kept = true
      } finally {
        readying--
      }
    },
    async retire() {
      kept = false
      const retiredMs = performance.now()
      if (attempt) {
        const { promise, cancel } = attempt
        if (waiting === 0) cancel.abort()
        await promise.catch(() => {})
      }
      const instance = running
      if (!instance) return void (await ending)
      const endMs = retiredMs + limits.drainMs
      while (running === instance && busy(instance) && performance.now() < endMs) await delay(drainPollMs)
      // Wanted again meanwhile, as by a promotion back.
      if (kept || running !== instance) return void (await ending)
      instance.cut(['request', 'tunnel'], retiredMs)
      // Requests that came since are for the deployment's own address: it goes on for them, until it is idle.
      if (busy(instance)) return
      output.system('Another deployment has taken over; the server is stopped')
      await stop()
    },
    stopIfIdle(idleMs) {
      if (!running || kept || busy(running) || performance.now() - running.lastUsedMs < idleMs) return null
      output.system('The server is stopped for want of requests; the next one starts it again')
      return stop()
    },
    get onDemand() {
      return !kept && readying === 0 && (running !== null || attempt !== null)
    },
    get idleSinceMs() {
      return running && !kept && !busy(running) ? running.lastUsedMs : undefined
    },
    get forgettable() {
      return !running && !attempt && !ending && waiting === 0 && performance.now() > notBeforeMs + limits.soundMs
    },
    async close() {
      closed = true
      kept = false
      attempt?.cancel.abort()
      await attempt?.promise.catch(() => {})
      const instance = running
      if (instance) {
        // A WebSocket has no end of its own to wait for.
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
