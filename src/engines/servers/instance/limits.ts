// Resource limits and timeouts for servers.

export type ServerLimits = {
  memoryMb: number
  /** Includes threads. */
  processes: number
  cpus?: number
  diskMb: number
  /** From the start of the process to its first response. */
  startTimeoutMs: number
  /** How long a server must keep running after its first response to prove that it works. */
  settleMs: number
  /** How long a request waits for a server to start, including its backoff. */
  waitTimeoutMs: number
  /** How many requests may wait for one server. */
  maxWaiting: number
  /** An exchange ends if neither side sends anything for this long. */
  stallMs: number
  /** How long a replaced server may take to finish its requests. Then its WebSockets are closed too. */
  drainMs: number
  /** How long requests may take to finish when the runner shuts down. */
  closeMs: number
  /** A server that is not in production is stopped after this long without a request. */
  idleMs: number
  /** How many servers outside production may run at once. A new one replaces the one that has been idle longest. */
  maxOnDemand: number
  /**
   * Probes of running servers: one `everyMs` after each response, and a restart after `failures` in a row. After the
   * first failure, edges prefer other instances. The timeout is that of the health check, and a CPU that is busy for 20 s
   * restarts nothing.
   */
  liveness: { everyMs: number; answerMs: number; failures: number }
  /** After a server has run for this long, its next crash counts as the first one. */
  stableMs: number
  /**
   * The delays between a crash and the next start. The first is short, because a first crash is usually temporary and
   * visitors wait. A server that keeps crashing needs a fix by its owner, and each start costs seconds of CPU time.
   */
  restartDelaysMs: readonly number[]
  log: LogLimits
}

export type LogLimits = { bytesPerMinute: number; bytes: number }

export const defaultLimits: ServerLimits = {
  memoryMb: 512,
  processes: 256,
  diskMb: 4096,
  startTimeoutMs: 60_000,
  settleMs: 500,
  waitTimeoutMs: 60_000,
  maxWaiting: 1000,
  stallMs: 60_000,
  drainMs: 30_000,
  closeMs: 10_000,
  idleMs: 15 * 60_000,
  maxOnDemand: 20,
  liveness: { everyMs: 3_000, answerMs: 10_000, failures: 2 },
  stableMs: 60_000,
  restartDelaysMs: [500, 1_000, 2_000, 5_000, 10_000, 30_000],
  log: { bytesPerMinute: 1 << 20, bytes: 10 << 20 },
}
