// Manages the worker thread for large zones: starts and replaces it, and shares it fairly between accounts.
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { Fault } from '../../../platform/errors.ts'
import { programFile } from '../../../platform/installation.ts'
import {
  type AnyResult,
  deserializeError,
  type FromThread,
  type Results,
  type ThreadData,
  type ToThread,
  type ZoneJob,
} from './messages.ts'

export type ZoneThread = {
  /** Resolves with the result, or rejects with the signal's reason when it aborts. */
  run<K extends ZoneJob['kind']>(
    accountId: string,
    job: ZoneJob & { kind: K },
    signal: AbortSignal,
  ): Promise<Results[K]>
  close(): Promise<void>
}

// The thread works on one job while the database works on another.
const concurrency = 2
// An account's jobs run one at a time; more than this many waiting ones are refused.
const maxWaiting = 10
// A file of 16 MiB with the maximum number of records takes half of this.
const maxHeapMb = 1_024
// An idle thread ends, because its heap stays as large as its largest zone: about 70 MB after 50,000 records.
const idleMs = 60_000
const program = programFile('src/services/dns/thread/worker')

type Task = {
  id: number
  accountId: string
  job: ZoneJob
  settle(outcome: { result: AnyResult } | { error: unknown }): void
}

function startWorker(data: ThreadData): Worker {
  return new Worker(program, { workerData: data, resourceLimits: { maxOldGenerationSizeMb: maxHeapMb } })
}

export function createZoneThread(databaseUrl: string, log: Logger, createWorker = startWorker): ZoneThread {
  /** Waiting tasks by account, in the order of the accounts' turns. */
  const waiting = new Map<string, Task[]>()
  const running = new Map<number, Task>()
  let worker: Worker | null = null
  let closed = false
  let lastId = 0
  let idle: NodeJS.Timeout | undefined
  let ended: Promise<unknown> = Promise.resolve()

  function end(): void {
    const last = worker
    worker = null
    ended = Promise.resolve(last?.terminate())
  }

  function start(): Worker {
    const started = createWorker({ databaseUrl, connections: concurrency })
    started.on('message', (message: FromThread) => {
      const task = running.get(message.id)
      running.delete(message.id)
      task?.settle('result' in message ? message : { error: deserializeError(message.error) })
      next()
      if (running.size === 0 && worker === started) idle = setTimeout(end, idleMs).unref()
    })
    started.on('error', (err) => log.error({ err }, 'the thread for large zones failed and is replaced'))
    started.on('exit', () => {
      if (worker !== started) return
      worker = null
      const lost = [...running.values()]
      running.clear()
      for (const task of lost) task.settle({ error: new Fault('overloaded', undefined, { retryAfterSeconds: 5 }) })
      next()
    })
    // The thread must not keep the process alive.
    started.unref()
    return started
  }

  function send(message: ToThread, transfer: ArrayBuffer[] = []): void {
    worker?.postMessage(message, transfer)
  }

  /** Starts waiting tasks: accounts take turns, each with one task at a time. */
  function next(): void {
    const busy = new Set(Array.from(running.values(), ({ accountId }) => accountId))
    for (const [accountId, tasks] of waiting) {
      if (closed || running.size >= concurrency) return
      if (busy.has(accountId)) continue
      const task = tasks.shift()!
      // Move the account behind all others.
      waiting.delete(accountId)
      if (tasks.length > 0) waiting.set(accountId, tasks)
      busy.add(accountId)
      running.set(task.id, task)
      clearTimeout(idle)
      worker ??= start()
      const { id, job } = task
      send({ id, job }, job.kind === 'import' ? [job.octets] : [])
    }
  }

  function cancelTask({ id, accountId }: Task): void {
    // A running task keeps its slot until the thread reports that it has stopped.
    if (running.has(id)) send({ cancel: id })
    const left = (waiting.get(accountId) ?? []).filter((task) => task.id !== id)
    if (left.length > 0) waiting.set(accountId, left)
    else waiting.delete(accountId)
  }

  return {
    run<K extends ZoneJob['kind']>(accountId: string, job: ZoneJob & { kind: K }, signal: AbortSignal) {
      const ahead = waiting.get(accountId)?.length ?? 0
      if (ahead >= maxWaiting) {
        const detail = 'Too many large zones of the account are waiting to be processed.'
        return Promise.reject(new Fault('rate_limited', detail, { retryAfterSeconds: 2 }))
      }
      return new Promise<Results[K]>((resolve, reject) => {
        const task: Task = {
          id: ++lastId,
          accountId,
          job,
          settle(outcome) {
            signal.removeEventListener('abort', abort)
            if ('result' in outcome) resolve(outcome.result as Results[K])
            else reject(outcome.error)
          },
        }
        function abort(): void {
          cancelTask(task)
          reject(signal.reason)
        }
        if (signal.aborted) return reject(signal.reason)
        signal.addEventListener('abort', abort, { once: true })
        waiting.set(accountId, [...(waiting.get(accountId) ?? []), task])
        next()
      })
    },
    async close() {
      closed = true
      const fault = () => new Fault('overloaded', 'The server is shutting down.', { retryAfterSeconds: 5 })
      for (const task of [...waiting.values()].flat()) task.settle({ error: fault() })
      waiting.clear()
      clearTimeout(idle)
      await Promise.all([ended, worker?.terminate()])
    },
  }
}
