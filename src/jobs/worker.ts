// Takes jobs from the queue and runs them: woken by notification, held by heartbeat, retried by each kind's own table.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { type Database, rows, sql } from '../db.ts'
import { randomLabel } from '../ids.ts'
import type { Notifications } from '../notifications.ts'
import type { JobKind, JobKinds } from './kinds.ts'

export type Handler<K extends JobKind> = {
  /** How many of this kind run at once in this process. */
  concurrency: number
  /** Waits after the first, second, … failure; one failure more and the job is given up. */
  retryDelaysMs: readonly number[]
  /** May run twice: after a crash another worker begins anew. `signal` aborts when this worker stops or lost the job. */
  run(payload: JobKinds[K], job: { attempt: number; signal: AbortSignal }): Promise<void>
  /** Records the failure, so that nothing waits for this job for ever. */
  giveUp(payload: JobKinds[K], error: Error): Promise<void>
}

export type Handlers = { [K in JobKind]?: Handler<K> }

export type Worker = { stop(): Promise<void> }

type Taken = { id: string; payload: never; attempts: number; runAt: string }

// A worker that dies is noticed when its lease ends; three missed heartbeats end it.
const leaseSeconds = 30
const heartbeatMs = 10_000
// Notifications wake workers at once; this finds jobs whose time has come, and those of dead workers.
const pollMs = 2_000

export function startWorker(db: Database, notifications: Notifications, log: Logger, handlers: Handlers): Worker {
  const name = `${hostname()}-${process.pid}-${randomLabel(6)}`
  const stopping = new AbortController()
  /** Runs, and the asking for jobs: one that is asked for may still come while the worker stops. */
  const running = new Set<Promise<unknown>>()
  const counts = new Map<JobKind, number>()

  async function take(kind: JobKind): Promise<Taken | undefined> {
    const [job] = await rows<Taken>(
      db,
      sql`UPDATE job SET locked_by = ${name}, attempts = attempts + 1, taken_run_at = run_at, locked_until = now() + ${leaseSeconds}::int * interval '1 second'
          WHERE id = (SELECT id FROM job WHERE kind = ${kind} AND failed_at IS NULL AND run_at <= now()
                        AND (locked_until IS NULL OR locked_until < now())
                      ORDER BY run_at LIMIT 1 FOR UPDATE SKIP LOCKED)
          RETURNING id::text AS id, payload, attempts, run_at::text AS "runAt"`,
    )
    return job
  }

  async function runJob<K extends JobKind>(kind: K, handler: Handler<K>, job: Taken): Promise<void> {
    const lost = new AbortController()
    const heartbeat = setInterval(async () => {
      const held = await rows(
        db,
        sql`UPDATE job SET locked_until = now() + ${leaseSeconds}::int * interval '1 second'
            WHERE id = ${job.id}::text::bigint AND locked_by = ${name} RETURNING id::text AS id`,
      ).catch(() => null)
      // The row is gone or another's: whatever this run still does would be done twice.
      if (held?.length === 0) lost.abort()
    }, heartbeatMs)
    const signal = AbortSignal.any([stopping.signal, lost.signal])
    try {
      stopping.signal.throwIfAborted()
      // A job beyond its table is one whose workers died; it gets its end without another try.
      if (job.attempts > handler.retryDelaysMs.length + 1) throw new LostError()
      await handler.run(job.payload, { attempt: job.attempts, signal })
      await finish(job)
    } catch (error) {
      if (stopping.signal.aborted) await release(job)
      else await fail(kind, handler, job, error as Error)
    } finally {
      clearInterval(heartbeat)
    }
  }

  /** Done, unless somebody asked for it again: their time is told from ours by the very statement that deletes. */
  async function finish(job: Taken): Promise<void> {
    const done = await rows(
      db,
      sql`DELETE FROM job WHERE id = ${job.id}::text::bigint AND locked_by = ${name}
            AND run_at = ${job.runAt}::text::timestamptz RETURNING kind`,
    )
    if (done.length > 0) return
    const again = await rows(
      db,
      sql`UPDATE job SET locked_by = NULL, locked_until = NULL, attempts = 0
          WHERE id = ${job.id}::text::bigint AND locked_by = ${name} RETURNING kind`,
    )
    if (again.length > 0) wake()
  }

  async function fail<K extends JobKind>(kind: K, handler: Handler<K>, job: Taken, error: Error): Promise<void> {
    const delayMs = error instanceof LostError ? undefined : handler.retryDelaysMs[job.attempts - 1]
    log.warn({ err: error, kind, jobId: job.id, attempt: job.attempts, retryInMs: delayMs ?? null }, 'job failed')
    if (delayMs === undefined) await handler.giveUp(job.payload, error)
    await rows(
      db,
      sql`UPDATE job SET locked_by = NULL, locked_until = NULL, last_error = ${error.message.slice(0, 2000)},
            failed_at = CASE WHEN ${delayMs === undefined}::boolean THEN now() END,
            run_at = now() + ${delayMs ?? 0}::int * interval '1 millisecond'
          WHERE id = ${job.id}::text::bigint AND locked_by = ${name} RETURNING kind`,
    )
  }

  /** A worker that stops in order gives its jobs back at once, uncounted. */
  async function release(job: Taken): Promise<void> {
    await rows(
      db,
      sql`UPDATE job SET locked_by = NULL, locked_until = NULL, attempts = attempts - 1, run_at = now()
          WHERE id = ${job.id}::text::bigint AND locked_by = ${name} RETURNING kind`,
    )
  }

  async function drain<K extends JobKind>(kind: K, handler: Handler<K>): Promise<void> {
    while (!stopping.signal.aborted && (counts.get(kind) ?? 0) < handler.concurrency) {
      // Counted before it is asked for, so that two wake-ups do not both take the last place.
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
      const free = () => counts.set(kind, counts.get(kind)! - 1)
      const asking = take(kind).catch(() => undefined)
      running.add(asking)
      const job = await asking
      running.delete(asking)
      if (!job) return void free()
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
    async stop() {
      clearInterval(poll)
      for (const stop of off) stop()
      stopping.abort()
      while (running.size > 0) await Promise.all(running)
    },
  }
}

/** The worker that held the job died, as often as the table allows. */
export class LostError extends Error {
  constructor() {
    super('the worker was lost')
  }
}
