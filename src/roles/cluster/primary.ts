// The worker processes of `--workers`: starts them, starts those that died again, replaces them one by one, stops all.
// The primary accepts connections and hands each to the next worker that is free (node:cluster). Sockets of their own
// (SO_REUSEPORT) would cost less for each connection, but one that is closed resets the connections in its queue.
import cluster from 'node:cluster'
import type { Logger } from 'pino'
import type { Start } from '../opening/messages.ts'
import { startProcess, type WorkerProcess } from './process.ts'

export type Workers = {
  readonly count: number
  /** One for each place, also if it is not ready. */
  readonly processes: readonly WorkerProcess[]
  /** Those that are to serve, and those that still do. */
  readonly living: ReadonlySet<WorkerProcess>
  /** Replaces each by a new one, one after the other: the new one serves before the old one begins to leave. */
  replaceAll(): Promise<void>
  /** Resolves when all are gone. */
  stop(drain: boolean): Promise<void>
}

export type WorkersOptions = {
  count: number
  drainSeconds: number
  log: Logger
  /** What the worker in a place, counted from 0, begins with. */
  startOf(place: number): Start
  /** Called when one has ended; `unasked` if it was not told to. */
  onEnd(process: WorkerProcess, unasked: boolean): void
}

type Place = { number: number; process: WorkerProcess; startedMs: number; failures: number; retry?: NodeJS.Timeout }

const minPauseMs = 1_000
const maxPauseMs = 30_000
// One that lived as long is started again at once.
const steadyMs = 60_000
// One that is not heard for so long hangs, and connections that it has would hang with it.
const silentMs = 60_000
const lookMs = 5_000
// Beside the drain: what requests and streams get to end, and some more.
const leavingMs = 20_000

export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { count, drainSeconds, log, startOf, onEnd } = options
  const living = new Set<WorkerProcess>()
  const places: Place[] = []
  let started = false
  let stopping = false
  let replacing: Promise<void> | null = null
  cluster.schedulingPolicy = cluster.SCHED_RR

  /** A process that has no place yet. */
  function begin(number: number): WorkerProcess {
    const process = startProcess(startOf(number))
    living.add(process)
    void process.exited.then((how) => {
      living.delete(process)
      const place = places.find((one) => one.process === process)
      const unasked = started && !stopping && place !== undefined
      onEnd(process, unasked)
      if (unasked) startAgain(place, how)
    })
    return process
  }

  function startAgain(place: Place, how: string): void {
    place.failures = performance.now() - place.startedMs > steadyMs ? 0 : place.failures + 1
    const pauseMs = place.failures === 0 ? 0 : Math.min(maxPauseMs, minPauseMs * 2 ** (place.failures - 1))
    const told = { worker: place.number + 1, workerPid: place.process.pid, how, pauseMs }
    log.error(told, 'a worker process ended unasked and is started again')
    place.retry = setTimeout(() => fill(place, begin(place.number)), pauseMs)
  }

  function fill(place: Place, process: WorkerProcess): void {
    clearTimeout(place.retry)
    Object.assign(place, { process, startedMs: performance.now() })
  }

  async function leave(process: WorkerProcess, drain: boolean, replaced: boolean): Promise<void> {
    process.tell({ kind: 'stop', drain, replaced })
    const timer = setTimeout(
      () => {
        log.error({ workerPid: process.pid }, 'a worker process does not end and is killed')
        process.kill()
      },
      (drain ? drainSeconds * 1000 : 0) + leavingMs,
    )
    await process.exited
    clearTimeout(timer)
  }

  async function replace(place: Place): Promise<void> {
    const next = begin(place.number)
    await next.ready
    const { process: old } = place
    fill(place, next)
    await leave(old, true, true)
  }

  async function replaceEach(): Promise<void> {
    log.info({ workers: count }, 'the worker processes are replaced one by one')
    for (const place of places) {
      if (stopping) return
      try {
        await replace(place)
      } catch (err) {
        return log.error({ err, worker: place.number + 1 }, 'a new worker process did not start, so the old ones stay')
      }
    }
    log.info({ workers: count }, 'all worker processes were replaced')
  }

  function killSilent(): void {
    for (const process of living) {
      if (!process.isReady || performance.now() - process.heardMs < silentMs) continue
      log.error({ workerPid: process.pid }, 'a worker process does not answer and is killed')
      process.kill()
    }
  }
  const looking = setInterval(killSilent, lookMs)
  looking.unref()

  async function stop(drain: boolean): Promise<void> {
    stopping = true
    clearInterval(looking)
    for (const place of places) clearTimeout(place.retry)
    await Promise.all(Array.from(living, (process) => leave(process, drain, false)))
  }

  try {
    for (let number = 0; number < count; number++) {
      places.push({ number, process: begin(number), startedMs: performance.now(), failures: 0 })
      // The first one alone: what keeps it from starting is told once.
      if (number === 0) await places[0]!.process.ready
    }
    await Promise.all(places.map(({ process }) => process.ready))
  } catch (error) {
    await stop(false)
    throw error
  }
  started = true
  for (const place of places) if (!living.has(place.process)) startAgain(place, 'it ended at once')
  return {
    count,
    get processes() {
      return places.map(({ process }) => process)
    },
    living,
    replaceAll() {
      // Asked again meanwhile, it begins anew: the first ones are of before.
      const before = replacing ?? Promise.resolve()
      const mine = before.then(replaceEach).finally(() => {
        if (replacing === mine) replacing = null
      })
      replacing = mine
      return mine
    },
    stop,
  }
}
