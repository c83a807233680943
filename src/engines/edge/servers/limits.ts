// What the server of one deployment may use, and how long anybody waits for it.

export type ServerLimits = {
  memoryMb: number
  /** Threads count too. */
  processes: number
  cpus?: number
  diskMb: number
  /** From the start of the process to its first answer. */
  startMs: number
  /** How long a server that is proved must go on after its first answer. */
  settleMs: number
  /** How long a request waits for a server that does not run yet, its backoff included. */
  waitMs: number
  /** Requests that wait at once for one server. */
  waiting: number
  /** An exchange in which neither side sends anything for this long is over. */
  stallMs: number
  /** What a server that was replaced gets to finish its requests; WebSockets are closed then. */
  drainMs: number
  /** What requests get when the edge itself stops. */
  closeMs: number
  /** A server that is nobody's production is stopped after this long without a request. */
  idleMs: number
  /** Servers that are nobody's production and run at once; the one that was idle longest makes room. */
  onDemand: number
  /** A server that answered for this long is sound: its next crash is its first again. */
  soundMs: number
  /**
   * From a crash to the next start. The first is most often a passing fault and visitors wait, so soon; one that keeps
   * crashing does so for a reason that only its owner can mend, and each start costs seconds of a core.
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
  soundMs: 60_000,
  restartDelaysMs: [500, 1_000, 2_000, 5_000, 10_000, 30_000],
  log: { bytesPerMinute: 1 << 20, bytes: 10 << 20 },
}
