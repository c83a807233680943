// Takes jobs from the queue and runs them: woken by notifications, protected by leases, retried on the schedule of
// their kind.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { Database, Db } from '../platform/database/database.ts'
import { LostLease, renewLease } from '../platform/database/lease.ts'
import type { Notifications } from '../platform/database/notifications.ts'
import { inGroups } from '../platform/database/pool.ts'
import { randomLabel } from '../platform/ids.ts'
import type { Pausable } from '../platform/observe/draining.ts'
import { inSpan, type SpanOptions } from '../platform/observe/tracing.ts'
import { createClockCheck } from './clock.ts'
import type { JobKind, JobKinds } from './kinds.ts'
import {
  deleteDoneJob,
  failJob,
  findOtherLosses,
  holdJob,
  postponeJob,
  putBackLostJob,
  releaseJob,
  renewJob,
  repeatJob,
  standAside,
  takeBuild,
  takeJob,
} from './statements.ts'
import { createTaking, type Taking } from './taking.ts'

export type Handler<K extends JobKind> = {
  /** How many of this kind run concurrently in this process. */
  concurrency: number
  /**
   * Delays after the first, second, … failure; after one more failure the job fails for good. A kind without delays
   * isn't retried after the loss of its worker either.
   */
  retryDelaysMs: readonly number[]
  /**
   * May run twice: after a crash, another worker starts over. `signal` aborts if this worker stops or loses the job.
   */
  run(payload: JobKinds[K], job: JobRun): Promise<void>
  /** Records the failure, so that nothing waits for this job forever. */
  giveUp(payload: JobKinds[K], error: Error, requireHeld: JobRun['requireHeld']): Promise<void>
}

export type JobRun = {
  attempt: number
  signal: AbortSignal
  /**
   * Throws if another worker has the job, which this one may not know yet if it was paused or cut off. Inside a
   * transaction, it also locks the job until that ends.
   */
  requireHeld(db: Db): Promise<void>
  /**
   * Runs work that only waits, such as for a server on another machine, without a slot: other jobs are taken
   * meanwhile. The lease stays. Afterwards the job gets its slot back at once, even if all are taken.
   */
  withoutSlot?<T>(wait: () => Promise<T>): Promise<T>
}

export type Handlers = { [K in JobKind]?: Handler<K> }

export type Worker = Pausable & {
  stop(): Promise<void>
  taking: Taking
  /** How many jobs run in this process. */
  readonly running: number
}

type Slot = { free(): void; take(): void }

type LeasedJob = Awaited<ReturnType<typeof takeJob>>[number]

// Notifications wake workers at once; polling finds jobs that became due, and those of dead workers.
const pollMs = 2_000

// Each job that waits without a slot keeps its workspace on disk and a server of its own.
const maxWaitingAside = 20

// Delays after the loss of a worker or of what it ran. That is the platform's fault unless it always hits the same job:
// machines restart, and one build that exhausts a machine's memory ends others too.
const lossDelaysMs = [1_000, 5_000, 15_000, 60_000, 300_000] as const
/** While other jobs of the kind are lost too, the longest delay repeats, but not forever. */
const maxLosses = 20

export function startWorker(db: Database, notifications: Notifications, log: Logger, handlers: Handlers): Worker {
  const name = `${hostname()}-${process.pid}-${randomLabel(6)}`
  const stopping = new AbortController()
  /** Runs and pending take queries: a job may still arrive while the worker stops. */
  const running = new Set<Promise<unknown>>()
  const counts = new Map<JobKind, number>()
  const taking = createTaking(log)
  const checkClock = createClockCheck(db)
  let paused = false
  let aside = 0
  /** Ids of the jobs whose handlers run here. */
  const handling = new Set<string>()
  /** Kinds that were requested while every slot was taken or being filled. */
  const missed = new Set<JobKind>()

  const isHeld = async (db: Db, { id }: LeasedJob) => (await holdJob(db, { worker: name, id })).length > 0
  const requiring = (job: LeasedJob) => async (db: Db) => {
    if (!(await isHeld(db, job))) throw new LostLease()
  }

  /** `free` and `take` are those of the job's slot. */
  const withoutSlotOf =
    ({ id }: LeasedJob, { free, take }: Slot): NonNullable<JobRun['withoutSlot']> =>
    async (wait) => {
      // While the database is down, the slot stays as it is.
      const mark = (aside: boolean) => standAside(db, { worker: name, id, aside }).catch(() => [])
      if (aside >= maxWaitingAside || (await mark(true)).length === 0) return wait()
      aside++
      free()
      try {
        return await wait()
      } finally {
        aside--
        take()
        await mark(false)
      }
    }

  async function runJob<K extends JobKind>(kind: K, handler: Handler<K>, job: LeasedJob, slot: Slot): Promise<void> {
    // LeasedJob before the worker was paused or stopped: another worker runs it.
    if (paused || stopping.signal.aborted) return void (await releaseJob(db, { worker: name, id: job.id }))
    const lease = renewLease(async () => (await renewJob(db, { worker: name, id: job.id })).length > 0)
    const signal = AbortSignal.any([stopping.signal, lease.lost])
    try {
      // An earlier attempt ended without any worker reporting how.
      if (job.attempts - 1 > job.failures + job.losses) return await putBackLost(kind, handler, job, null)
      handling.add(job.id)
      // Before the job is settled: afterwards it may be taken again, even by this worker.
      const held = { attempt: job.attempts, signal, requireHeld: requiring(job), withoutSlot: withoutSlotOf(job, slot) }
      const run = () => handler.run(job.payload, held)
      // If the tables of one kind are locked, other kinds and the leases still get connections.
      const grouped = () => inGroups([kind], run)
      const lost = await inSpan(`job ${kind}`, spanOf(kind, job), grouped)
        .then(() => null, lossOf)
        .finally(() => handling.delete(job.id))
      await (lost === null ? finish(job) : putBackLost(kind, handler, job, lost))
    } catch (error) {
      if (stopping.signal.aborted) await releaseJob(db, { worker: name, id: job.id })
      else if (error instanceof Postponed) await postponeJob(db, { worker: name, id: job.id, ...error.until })
      else await fail(kind, handler, job, error as Error)
    } finally {
      lease.stop()
    }
  }

  /** How the machine ended a run; rethrows every other error. */
  function lossOf(error: unknown): RunLost {
    if (error instanceof RunLost && !stopping.signal.aborted) return error
    throw error
  }

  async function finish({ id, runAt }: LeasedJob): Promise<void> {
    const done = await deleteDoneJob(db, { worker: name, id, runAt })
    if (done.length > 0) return
    const again = await repeatJob(db, { worker: name, id })
    if (again.length > 0) wake()
  }

  /** Gives up once the losses point to the job itself. `lost`: this run of it, or null for one of another worker. */
  async function putBackLost<K extends JobKind>(
    kind: K,
    handler: Handler<K>,
    { id, losses }: LeasedJob,
    lost: RunLost | null,
  ): Promise<void> {
    const count = losses + 1
    const why = lost?.message ?? 'the worker was lost'
    const isRetried = handler.retryDelaysMs.length > 0
    let delayMs = isRetried ? lossDelaysMs[losses] : undefined
    if (isRetried && delayMs === undefined && count <= maxLosses) {
      const [other] = await findOtherLosses(db, { kind, id })
      if (other) delayMs = lossDelaysMs.at(-1)
    }
    if (delayMs === undefined) throw new LostError(why, count)
    log.warn({ kind, jobId: id, why, losses: count, retryInMs: delayMs }, 'a job was lost')
    await putBackLostJob(db, { worker: name, id, uncounted: lost === null ? 1 : 0, delayMs })
  }

  async function fail<K extends JobKind>(kind: K, handler: Handler<K>, job: LeasedJob, error: Error): Promise<void> {
    const delayMs = error instanceof LostError ? undefined : handler.retryDelaysMs[job.failures]
    log.warn({ err: error, kind, jobId: job.id, attempt: job.attempts, retryInMs: delayMs ?? null }, 'job failed')
    if (delayMs === undefined) {
      // Whoever has the lease now decides.
      if (!(await isHeld(db, job))) return
      await handler.giveUp(job.payload, error, requiring(job))
    }
    await failJob(db, {
      worker: name,
      id: job.id,
      error: error.message.slice(0, 2000),
      givenUp: delayMs === undefined,
      delayMs: delayMs ?? 0,
    })
  }

  /**
   * Accounts take turns at builds. Jobs of other kinds are taken by age, but an account has at most two of a kind in
   * progress, and the last two slots go to accounts that have none.
   */
  async function takeNext(kind: JobKind, slots: number): Promise<LeasedJob[]> {
    await checkClock()
    if (kind === 'build') return takeBuild(db, { worker: name, slots })
    const maxPerAccount = (counts.get(kind) ?? 0) > slots - 2 ? 1 : 2
    return takeJob(db, { worker: name, kind, most: maxPerAccount })
  }

  async function drain<K extends JobKind>(kind: K, handler: Handler<K>): Promise<void> {
    const { concurrency } = handler
    while (!stopping.signal.aborted && !paused) {
      if ((counts.get(kind) ?? 0) >= concurrency) return void missed.add(kind)
      // Counted before the query, so that two wake-ups don't both take the last slot.
      const take = () => void counts.set(kind, (counts.get(kind) ?? 0) + 1)
      const free = () => void counts.set(kind, counts.get(kind)! - 1)
      take()
      const asking = taking.attempt(kind, () => takeNext(kind, concurrency))
      running.add(asking)
      const [job] = await asking
      running.delete(asking)
      if (!job) {
        free()
        // Jobs queued while the query ran may have been too late for it.
        if (missed.delete(kind)) continue
        return
      }
      // Its lease expired while the database was down. The run continues, and renews the lease that was just taken.
      if (handling.has(job.id)) {
        free()
        continue
      }
      const freed = () => {
        free()
        void drain(kind, handler)
      }
      const run = runJob(kind, handler, job, { free: freed, take })
        .catch((error) => log.error({ err: error, kind, jobId: job.id }, 'job could not be settled'))
        .finally(() => {
          running.delete(run)
          freed()
        })
      running.add(run)
    }
  }

  function wake(only?: string): void {
    for (const [kind, handler] of Object.entries(handlers) as [JobKind, Handler<JobKind>][]) {
      if (only === undefined || only === kind) void drain(kind, handler)
    }
  }

  const off = [notifications.on('job', wake), notifications.on('reconnected', () => wake())]
  const poll = setInterval(() => wake(), pollMs)
  wake()
  return {
    taking,
    get running() {
      return handling.size
    },
    pause(now) {
      paused = now
      if (!paused) wake()
    },
    async stop() {
      clearInterval(poll)
      for (const stop of off) stop()
      stopping.abort()
      while (running.size > 0) await Promise.all(running)
    },
  }
}

/** Thrown by a handler that can't work right now: the job runs again after the delay, with this payload. */
export class Postponed extends Error {
  readonly until: { payload: object; delayMs: number }

  constructor(why: string, until: Postponed['until']) {
    super(why)
    this.until = until
  }
}

function spanOf(kind: JobKind, { id, attempts, trace }: LeasedJob): SpanOptions {
  const attributes = { 'berth.job.kind': kind, 'berth.job.id': id, 'berth.job.attempt': attempts }
  return { kind: 'CONSUMER', parent: trace, attributes }
}

/** Thrown by a handler whose work the machine ended: it counts as the loss of a worker. The message is a clause. */
export class RunLost extends Error {}

/** The job was lost so often that it is given up; `why` says how it was lost last. */
export class LostError extends Error {
  constructor(why: string, losses: number) {
    super(losses === 1 ? why : `${why} ${losses} times in a row`)
  }
}
