// Takes jobs from the queue and runs them: woken by notifications, held by a lease, retried by each kind's own table.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import type { Database, Db } from '../platform/database.ts'
import type { Pausable } from '../platform/draining.ts'
import { randomLabel } from '../platform/ids.ts'
import { holdLease, LostLease } from '../platform/lease.ts'
import type { Notifications } from '../platform/notifications.ts'
import { inGroups } from '../platform/pool.ts'
import { inSpan, type SpanOptions } from '../platform/tracing.ts'
import { createClockCheck } from './clock.ts'
import type { JobKind, JobKinds } from './kinds.ts'
import {
  deleteDoneJob,
  failJob,
  holdJob,
  postponeJob,
  releaseJob,
  renewJob,
  repeatJob,
  takeBuild,
  takeJob,
} from './statements.ts'
import { createTaking, type Taking } from './taking.ts'

export type Handler<K extends JobKind> = {
  /** How many of this kind run at once in this process. */
  concurrency: number
  /** Delays after the first, second, … failure; after one more failure the job is given up. */
  retryDelaysMs: readonly number[]
  /** May run twice: after a crash another worker starts over. `signal` aborts if this worker stops or loses the job. */
  run(payload: JobKinds[K], job: Held): Promise<void>
  /** Records the failure, so that nothing waits for this job forever. */
  giveUp(payload: JobKinds[K], error: Error, requireHeld: Held['requireHeld']): Promise<void>
}

export type Held = {
  attempt: number
  signal: AbortSignal
  /**
   * Throws if another worker has the job, which this one may not have heard yet: it was paused, or cut off. In a
   * transaction nobody else takes it before that ends.
   */
  requireHeld(db: Db): Promise<void>
}

export type Handlers = { [K in JobKind]?: Handler<K> }

export type Worker = Pausable & {
  stop(): Promise<void>
  taking: Taking
  /** How many jobs run here. */
  readonly running: number
}

type Taken = Awaited<ReturnType<typeof takeJob>>[number]

// Notifications wake workers at once; polling finds jobs that became due, and those of dead workers.
const pollMs = 2_000

export function startWorker(db: Database, notifications: Notifications, log: Logger, handlers: Handlers): Worker {
  const name = `${hostname()}-${process.pid}-${randomLabel(6)}`
  const stopping = new AbortController()
  /** Runs and pending take queries: a job may still arrive while the worker stops. */
  const running = new Set<Promise<unknown>>()
  const counts = new Map<JobKind, number>()
  const taking = createTaking(log)
  const checkClock = createClockCheck(db)
  let paused = false
  /** Ids of the jobs whose handlers run here. */
  const inHand = new Set<string>()
  /** Kinds that were asked for while every slot was taken or being filled. */
  const missed = new Set<JobKind>()

  const isHeld = async (db: Db, { id }: Taken) => (await holdJob(db, { worker: name, id })).length > 0
  const requiring = (job: Taken) => async (db: Db) => {
    if (!(await isHeld(db, job))) throw new LostLease()
  }

  async function runJob<K extends JobKind>(kind: K, handler: Handler<K>, job: Taken): Promise<void> {
    // Asked for before the worker was paused or stopped: somebody else takes it.
    if (paused || stopping.signal.aborted) return void (await releaseJob(db, { worker: name, id: job.id }))
    const lease = holdLease(async () => (await renewJob(db, { worker: name, id: job.id })).length > 0)
    const signal = AbortSignal.any([stopping.signal, lease.lost])
    try {
      // More attempts than the table allows means that workers died; the job is given up without another try.
      if (job.attempts > handler.retryDelaysMs.length + 1) throw new LostError()
      inHand.add(job.id)
      // Before the job is settled: from then on it may be taken again, by this worker too.
      const run = () => handler.run(job.payload, { attempt: job.attempts, signal, requireHeld: requiring(job) })
      // A kind whose table is locked leaves connections to the others, and to the leases.
      const grouped = () => inGroups([kind], run)
      await inSpan(`job ${kind}`, spanOf(kind, job), grouped).finally(() => inHand.delete(job.id))
      await finish(job)
    } catch (error) {
      if (stopping.signal.aborted) await releaseJob(db, { worker: name, id: job.id })
      else if (error instanceof Postponed) await postponeJob(db, { worker: name, id: job.id, ...error.until })
      else await fail(kind, handler, job, error as Error)
    } finally {
      lease.stop()
    }
  }

  async function finish({ id, runAt }: Taken): Promise<void> {
    const done = await deleteDoneJob(db, { worker: name, id, runAt })
    if (done.length > 0) return
    const again = await repeatJob(db, { worker: name, id })
    if (again.length > 0) wake()
  }

  async function fail<K extends JobKind>(kind: K, handler: Handler<K>, job: Taken, error: Error): Promise<void> {
    const delayMs = error instanceof LostError ? undefined : handler.retryDelaysMs[job.attempts - 1]
    log.warn({ err: error, kind, jobId: job.id, attempt: job.attempts, retryInMs: delayMs ?? null }, 'job failed')
    if (delayMs === undefined) {
      // Whoever has it now decides.
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
   * Accounts take turns at builds. Jobs of other kinds are taken by age, but an account has two of a kind under way at
   * most, and the last two slots are for those that have none.
   */
  async function take(kind: JobKind, slots: number): Promise<Taken[]> {
    await checkClock()
    if (kind === 'build') return takeBuild(db, { worker: name, slots })
    const most = (counts.get(kind) ?? 0) > slots - 2 ? 1 : 2
    return takeJob(db, { worker: name, kind, most })
  }

  async function drain<K extends JobKind>(kind: K, handler: Handler<K>): Promise<void> {
    const { concurrency } = handler
    while (!stopping.signal.aborted && !paused) {
      if ((counts.get(kind) ?? 0) >= concurrency) return void missed.add(kind)
      // Counted before the query, so that two wake-ups do not both take the last place.
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
      const free = () => counts.set(kind, counts.get(kind)! - 1)
      const asking = taking.attempt(kind, () => take(kind, concurrency))
      running.add(asking)
      const [job] = await asking
      running.delete(asking)
      if (!job) {
        free()
        // What was queued while the query ran may have come too late for it.
        if (missed.delete(kind)) continue
        return
      }
      // Its lease ran out while the database was away; the run goes on, and renews what was taken now.
      if (inHand.has(job.id)) {
        free()
        continue
      }
      const run = runJob(kind, handler, job)
        .catch((error) => log.error({ err: error, kind, jobId: job.id }, 'job could not be settled'))
        .finally(() => {
          free()
          running.delete(run)
          void drain(kind, handler)
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
      return inHand.size
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

/** Thrown by a handler that cannot do its work at present: it is run again after the delay, with this payload. */
export class Postponed extends Error {
  readonly until: { payload: object; delayMs: number }

  constructor(why: string, until: Postponed['until']) {
    super(why)
    this.until = until
  }
}

function spanOf(kind: JobKind, { id, attempts, trace }: Taken): SpanOptions {
  const attributes = { 'berth.job.kind': kind, 'berth.job.id': id, 'berth.job.attempt': attempts }
  return { kind: 'CONSUMER', parent: trace, attributes }
}

/** The workers that held the job died, as often as the table allows. */
export class LostError extends Error {
  constructor() {
    super('the worker was lost')
  }
}
