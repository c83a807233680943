// One worker process as the primary sees it: started, queried, and followed until it exits.
import cluster from 'node:cluster'
import type { Load } from '../../services/nodes/index.ts'
import type { Answers, FromWorker, Metrics, Start, ToWorker } from '../opening/messages.ts'

export type WorkerProcess = {
  readonly pid: number
  readonly start: Start
  readonly isReady: boolean
  /** When its last message came: one comes every few seconds while its event loop runs. */
  readonly heardMs: number
  /** Its load as last reported. */
  readonly load: Load
  /** Its metrics as last reported. */
  readonly metrics: Metrics
  /** Rejects if it exits before. */
  readonly ready: Promise<void>
  /** Resolves with how it exited. */
  readonly exited: Promise<string>
  /** Null if it is gone or doesn't respond in time. */
  query<W extends keyof Answers>(what: W, role?: string): Promise<Answers[W] | null>
  send(message: ToWorker): void
  kill(): void
}

/** The error of a worker that couldn't start; the worker itself has logged why. */
export class WorkerFailed extends Error {
  override name = 'WorkerFailed'
}

// Below the three seconds that load balancers usually wait, and above the longest check.
const answerTimeoutMs = 2_800

export function startProcess(start: Start): WorkerProcess {
  const worker = cluster.fork()
  const ready = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<string>()
  const pending = new Map<number, (value: unknown) => void>()
  let lastId = 0
  let isReady = false
  let heardMs = performance.now()
  let metrics: Metrics = []
  let load: Load = { cpu: 0, memoryBytes: 0, work: {} }
  ready.promise.catch(() => {})

  function end(how: string): void {
    isReady = false
    ready.reject(new WorkerFailed(`A worker process ended before it was ready (${how}).`))
    for (const answer of pending.values()) answer(null)
    exited.resolve(how)
  }
  function send(message: ToWorker): void {
    // A dead process gets nothing; its exit is reported separately.
    if (worker.isConnected()) worker.send(message, () => {})
  }

  worker.on('message', (message: FromWorker) => {
    heardMs = performance.now()
    if (message.kind === 'ready') {
      isReady = true
      ready.resolve()
    } else if (message.kind === 'last') metrics = message.metrics
    else if (message.kind === 'load') load = message.load
    else pending.get(message.id)?.(message.value)
  })
  worker.on('exit', (code, signal) => end(signal ?? `exit code ${code}`))
  worker.on('error', (error) => worker.process.pid === undefined && end(error.message))
  send(start)

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
    async query<W extends keyof Answers>(what: W, role?: string) {
      if (!isReady) return null
      const id = ++lastId
      const { promise, resolve } = Promise.withResolvers<unknown>()
      const timer = setTimeout(() => resolve(null), answerTimeoutMs)
      pending.set(id, resolve)
      send({ kind: 'ask', id, what, role })
      const answer = (await promise) as Answers[W] | null
      clearTimeout(timer)
      pending.delete(id)
      if (what === 'metrics' && answer) metrics = answer as Metrics
      return answer
    },
    send,
    kill: () => void worker.process.kill('SIGKILL'),
  }
}
