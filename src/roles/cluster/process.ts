// One worker process, seen from the primary: started, asked, and followed to its end.
import cluster from 'node:cluster'
import type { Load } from '../../services/nodes/index.ts'
import type { Answers, FromWorker, Metrics, Start, ToWorker } from '../opening/messages.ts'

export type WorkerProcess = {
  readonly pid: number
  readonly start: Start
  readonly isReady: boolean
  /** When it told something last: a message comes every few seconds while its event loop turns. */
  readonly heardMs: number
  /** How busy it was, as told last. */
  readonly load: Load
  /** What it told last of its metrics. */
  readonly metrics: Metrics
  /** Rejects if it ends before. */
  readonly ready: Promise<void>
  /** Resolves with how it ended. */
  readonly exited: Promise<string>
  /** Null if it is gone or does not answer in time. */
  ask<W extends keyof Answers>(what: W, role?: string): Promise<Answers[W] | null>
  tell(message: ToWorker): void
  kill(): void
}

/** The sentence of a worker that could not start; it has said why itself. */
export class WorkerFailed extends Error {
  override name = 'WorkerFailed'
}

// Below the three seconds that balancers usually wait, and above what a check takes at most.
const answerMs = 2_800

export function startProcess(start: Start): WorkerProcess {
  const worker = cluster.fork()
  const ready = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<string>()
  const questions = new Map<number, (value: unknown) => void>()
  let asked = 0
  let isReady = false
  let heardMs = performance.now()
  let metrics: Metrics = []
  let load: Load = { cpu: 0, memoryBytes: 0, work: {} }
  ready.promise.catch(() => {})

  function end(how: string): void {
    isReady = false
    ready.reject(new WorkerFailed(`A worker process ended before it was ready (${how}).`))
    for (const answer of questions.values()) answer(null)
    exited.resolve(how)
  }
  function tell(message: ToWorker): void {
    // Whoever is gone is told nothing; its end is heard of separately.
    if (worker.isConnected()) worker.send(message, () => {})
  }

  worker.on('message', (message: FromWorker) => {
    heardMs = performance.now()
    if (message.kind === 'ready') {
      isReady = true
      ready.resolve()
    } else if (message.kind === 'last') metrics = message.metrics
    else if (message.kind === 'load') load = message.load
    else questions.get(message.id)?.(message.value)
  })
  worker.on('exit', (code, signal) => end(signal ?? `exit code ${code}`))
  worker.on('error', (error) => worker.process.pid === undefined && end(error.message))
  tell(start)

  return {
    get pid() {
      return worker.process.pid ?? 0
    },
    start,
    get isReady() {
      return isReady
    },
    get heardMs() {
      return heardMs
    },
    get load() {
      return load
    },
    get metrics() {
      return metrics
    },
    ready: ready.promise,
    exited: exited.promise,
    async ask<W extends keyof Answers>(what: W, role?: string) {
      if (!isReady) return null
      const id = ++asked
      const { promise, resolve } = Promise.withResolvers<unknown>()
      const timer = setTimeout(() => resolve(null), answerMs)
      questions.set(id, resolve)
      tell({ kind: 'ask', id, what, role })
      const answer = (await promise) as Answers[W] | null
      clearTimeout(timer)
      questions.delete(id)
      if (what === 'metrics' && answer) metrics = answer as Metrics
      return answer
    },
    tell,
    kill: () => void worker.process.kill('SIGKILL'),
  }
}
