// Resource limits and timeouts for the server of one deployment.

export type ServerLimits = {
  memoryMb: number
  /** Threads count too. */
  processes: number
  cpus?: number
  diskMb: number
  /** From the start of the process to its first answer. */
  startMs: number
  /** How long a server must keep running after its first answer to be proved. */
  settleMs: number
  /** How long a request waits for a server that does not run yet, its backoff included. */
  waitMs: number
  /** Requests that wait at once for one server. */
  waiting: number
  /** An exchange is ended when neither side sends anything for this long. */
  stallMs: number
  /** How long a replaced server has to finish its requests; WebSockets are closed then. */
  drainMs: number
  /** How long requests have to finish when the runner itself stops. */
  closeMs: number
  /** A server that is not in production is stopped after this long without a request. */
  idleMs: number
  /** How many servers that are not in production may run at once; the longest idle one is stopped for a new one. */
  onDemand: number
  /**
   * How a server that is up is watched: asked again so long after each answer, and given up after so many probes in a row
   * without an answer in time. Edges choose another instance, where there is one, after the first of them. A page that was
   * fast enough for the health check is fast enough here, and a processor that is busy for 20 s ends nothing.
   */
  liveness: { everyMs: number; answerMs: number; failures: number }
  /** After a server has run for this long, its next crash counts as its first again. */
  soundMs: number
  /**
   * From a crash to the next start. The first delay is short, because a first crash is usually temporary and visitors
   * wait. A server that keeps crashing needs a fix by its owner, and each start costs seconds of a core.
   */
  restartDelaysMs: readonly number[]
  log: LogLimits
}

export type LogLimits = { bytesPerMinute: number; bytes: number }

export const defaultLimits: ServerLimits = {
  memoryMb: 512,
  processes: 256,
  diskMb: 4096,
  startMs: 60_000,
  settleMs: 500,
  waitMs: 60_000,
  waiting: 1000,
  stallMs: 60_000,
  drainMs: 30_000,
  closeMs: 10_000,
  idleMs: 15 * 60_000,
  onDemand: 20,
  liveness: { everyMs: 3_000, answerMs: 10_000, failures: 2 },
  soundMs: 60_000,
  restartDelaysMs: [500, 1_000, 2_000, 5_000, 10_000, 30_000],
  log: { bytesPerMinute: 1 << 20, bytes: 10 << 20 },
}
