// The worker processes of `--workers`: starts them, restarts those that die, replaces them one by one, stops all. The
// primary accepts connections and hands each to the next free worker (node:cluster). Separate sockets (SO_REUSEPORT)
// would cost less per connection, but closing one resets the connections in its queue.
import cluster from 'node:cluster'
import type { Logger } from 'pino'
import type { Start } from '../opening/messages.ts'
import { startProcess, type WorkerProcess } from './process.ts'

export type Workers = {
  readonly count: number
  /** One for each slot, even if it isn't ready. */
  readonly processes: readonly WorkerProcess[]
  /** Those that should serve, and those that still do. */
  readonly living: ReadonlySet<WorkerProcess>
  /** Replaces one process after another: the new one serves before the old one starts to leave. */
  replaceAll(): Promise<void>
  /** Resolves when all are gone. */
  stop(drain: boolean): Promise<void>
}

export type WorkersOptions = {
  count: number
  drainSeconds: number
  log: Logger
  /** The start message of the worker in a slot, counted from 0. */
  startOf(slot: number): Start
  /** Called when one has exited; `unexpected` unless it was told to. */
  onEnd(process: WorkerProcess, unexpected: boolean): void
}

type Slot = { number: number; process: WorkerProcess; startedMs: number; failures: number; retry?: NodeJS.Timeout }

const minPauseMs = 1_000
const maxPauseMs = 30_000
// A process that lived this long is restarted at once.
const steadyMs = 60_000
// A process that has been silent for this long hangs, and so do its connections.
const silentMs = 60_000
const checkMs = 5_000
// In addition to the drain: the time for requests and streams to end, and some more.
const leavingMs = 20_000

export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { count, drainSeconds, log, startOf, onEnd } = options
  const living = new Set<WorkerProcess>()
  const slots: Slot[] = []
  let started = false
  let stopping = false
  let replacing: Promise<void> | null = null
  cluster.schedulingPolicy = cluster.SCHED_RR

  /** A process that has no slot yet. */
  function start(number: number): WorkerProcess {
    const process = startProcess(startOf(number))
    living.add(process)
    void process.exited.then((how) => {
      living.delete(process)
      const slot = slots.find((one) => one.process === process)
      const unexpected = started && !stopping && slot !== undefined
      onEnd(process, unexpected)
      if (unexpected) restart(slot, how)
    })
    return process
  }

  function restart(slot: Slot, how: string): void {
    slot.failures = performance.now() - slot.startedMs > steadyMs ? 0 : slot.failures + 1
    const pauseMs = slot.failures === 0 ? 0 : Math.min(maxPauseMs, minPauseMs * 2 ** (slot.failures - 1))
    const details = { worker: slot.number + 1, workerPid: slot.process.pid, how, pauseMs }
    log.error(details, 'a worker process exited unexpectedly and is restarted')
    slot.retry = setTimeout(() => fill(slot, start(slot.number)), pauseMs)
  }

  function fill(slot: Slot, process: WorkerProcess): void {
    clearTimeout(slot.retry)
    Object.assign(slot, { process, startedMs: performance.now() })
  }

  async function leave(process: WorkerProcess, drain: boolean, replaced: boolean): Promise<void> {
    process.send({ kind: 'stop', drain, replaced })
    const timer = setTimeout(
      () => {
        log.error({ workerPid: process.pid }, 'a worker process does not exit and is killed')
        process.kill()
      },
      (drain ? drainSeconds * 1000 : 0) + leavingMs,
    )
    await process.exited
    clearTimeout(timer)
  }

  async function replace(slot: Slot): Promise<void> {
    const next = start(slot.number)
    await next.ready
    const { process: old } = slot
    fill(slot, next)
    await leave(old, true, true)
  }

  async function replaceEach(): Promise<void> {
    log.info({ workers: count }, 'replacing the worker processes one by one')
    for (const slot of slots) {
      if (stopping) return
      try {
        await replace(slot)
      } catch (err) {
        return log.error({ err, worker: slot.number + 1 }, 'a new worker process did not start, so the old ones stay')
      }
    }
    log.info({ workers: count }, 'replaced all worker processes')
  }

  function killSilent(): void {
    for (const process of living) {
      if (!process.isReady || performance.now() - process.heardMs < silentMs) continue
      log.error({ workerPid: process.pid }, 'a worker process does not respond and is killed')
      process.kill()
    }
  }
  const checking = setInterval(killSilent, checkMs)
  checking.unref()

  async function stop(drain: boolean): Promise<void> {
    stopping = true
    clearInterval(checking)
    for (const slot of slots) clearTimeout(slot.retry)
    await Promise.all(Array.from(living, (process) => leave(process, drain, false)))
  }

  try {
    for (let number = 0; number < count; number++) {
      slots.push({ number, process: start(number), startedMs: performance.now(), failures: 0 })
      // Only the first one: why it can't start is reported once.
      if (number === 0) await slots[0]!.process.ready
    }
    await Promise.all(slots.map(({ process }) => process.ready))
  } catch (error) {
    await stop(false)
    throw error
  }
  started = true
  for (const slot of slots) if (!living.has(slot.process)) restart(slot, 'it exited at once')
  return {
    count,
    get processes() {
      return slots.map(({ process }) => process)
    },
    living,
    replaceAll() {
      // A request during a replacement starts over, because the first processes predate it.
      const before = replacing ?? Promise.resolve()
      const own = before.then(replaceEach).finally(() => {
        if (replacing === own) replacing = null
      })
      replacing = own
      return own
    },
    stop,
  }
}
