// Runs periodic tasks: once per interval across all processes, by whichever holds the lease. If a process dies, another
// takes over when the lease expires.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { Counter, type Registry } from 'prom-client'
import type { Database } from '../platform/database/database.ts'
import { renewLease } from '../platform/database/lease.ts'
import { randomLabel } from '../platform/ids.ts'
import type { Pausable } from '../platform/observe/draining.ts'
import { requireRightClock } from './clock.ts'
import { endTask, renewTask, takeTask } from './task-statements.ts'

export type Task = {
  /** The name of the lease. Work on a machine's disk includes the machine's name, so that each machine does its own. */
  name: string
  everyMs: number
  /** May be aborted at any point and run again. `signal` aborts if the process stops or loses the lease. */
  run(signal: AbortSignal): Promise<void>
}

export type Tasks = Pausable & { stop(): Promise<void> }

const defaultPollMs = 30_000
// A failed task doesn't wait for a day.
const retryMs = 5 * 60_000

export type TaskDeps = { db: Database; log: Logger; registry: Registry }

export function startTasks({ db, log, registry }: TaskDeps, tasks: Task[], pollMs = defaultPollMs): Tasks {
  const worker = `${hostname()}-${process.pid}-${randomLabel(6)}`
  const stopping = new AbortController()
  const running = new Map<string, Promise<void>>()
  let paused = false
  const runs = new Counter({
    name: 'berth_task_runs_total',
    help: 'Runs of periodic tasks in this process, by how they ended: done, failed or stopped.',
    labelNames: ['task', 'outcome'],
    registers: [registry],
  })

  async function attempt({ name, everyMs, run }: Task): Promise<void> {
    const [taken] = await takeTask(db, { name, worker })
    if (!taken) return
    const lease = renewLease(async () => (await renewTask(db, { name, worker })).length > 0)
    const running = async () => {
      requireRightClock(taken.now)
      await run(AbortSignal.any([stopping.signal, lease.lost]))
    }
    const [outcome, delayMs] = await running().then(
      () => ['done', everyMs] as const,
      (err) => {
        if (stopping.signal.aborted) return ['stopped', 0] as const
        log.warn({ err, task: name }, 'a periodic task failed')
        return ['failed', Math.min(everyMs, retryMs)] as const
      },
    )
    lease.stop()
    runs.inc({ task: name, outcome })
    await endTask(db, { name, worker, delayMs })
  }

  function startDue(): void {
    if (paused) return
    for (const task of tasks) {
      if (running.has(task.name)) continue
      const run = attempt(task)
        .catch((err) => log.warn({ err, task: task.name }, 'a periodic task could not be taken or ended'))
        .finally(() => running.delete(task.name))
      running.set(task.name, run)
    }
  }

  const timer = setInterval(startDue, pollMs)
  startDue()
  return {
    pause(now) {
      paused = now
    },
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await Promise.all(running.values())
    },
  }
}

// Longer than any task waits for its next run.
const keptMs = 30 * 24 * 60 * 60_000

/** Forgets tasks that no process has any more, such as those of machines that are gone; returns how many. */
export async function forgetOldTasks(db: Database): Promise<number> {
  const { count } = await db.task.deleteMany({ where: { dueAt: { lt: new Date(Date.now() - keptMs) } } })
  return count
}
