// Keeps data in memory in sync with the database: compares all of it at startup and after an outage, else reads by name.
import type { Logger } from 'pino'
import type { Notifications } from './notifications.ts'

export type Source = {
  /** Calls `changed` with the name of each change; returns a function that stops listening. */
  listen(changed: (name: string) => void): () => void
  /** A plural noun for the log, such as `certificates`. */
  what: string
  /** Updates memory where it differs, or returns the names that differ. */
  compare(): Promise<Iterable<string>>
  /** Reads these names from the database into memory. */
  read(names: string[]): Promise<void>
  /** The maximum number of names per call of `read`. */
  maxNames?: number
  /** Fills memory from the last-good snapshot, without the database; false if that isn't possible. */
  restore?(): Promise<boolean>
  /** Called when memory falls behind the database, and when it is in sync again. */
  onBehind?(): void
  onCurrent?(): void
}

// Backoff while the database is unavailable or overloaded.
const retryDelaysMs = [100, 250, 500, 1_000, 2_000]
// Finds changes whose notifications were missed.
const compareMs = 5 * 60_000
// The same while notifications are down, even though the database may respond.
const disconnectedCompareMs = 5_000
const defaultMaxNames = 500

export type Following = {
  /** Settles when memory is in sync; null if no refresh is running. */
  settled(): Promise<void> | null
  close(): Promise<void>
}

/**
 * Resolves when everything is read. If the database is unavailable, it resolves with what `restore` finds and reads
 * everything as soon as possible, or rejects if there is nothing to restore. Later failures are retried.
 */
export async function follow(source: Source, notifications: Notifications, log: Logger): Promise<Following> {
  const { what, compare, read, maxNames = defaultMaxNames } = source
  const pending = new Set<string>()
  let closed = false
  let compareAll = true
  /** Shrinks after a failure, down to one, so that a name that can't be read doesn't block the others. */
  let batchSize = maxNames
  let running: Promise<void> | null = null
  let wake = () => {}

  async function refresh(): Promise<void> {
    if (compareAll) {
      compareAll = false
      try {
        for (const name of await compare()) pending.add(name)
      } catch (error) {
        compareAll = true
        throw error
      }
    }
    while (!closed && pending.size > 0 && !compareAll) {
      const names = [...pending].slice(0, batchSize)
      // Removed first, so that a change during the read is read again.
      for (const name of names) pending.delete(name)
      try {
        await read(names)
        batchSize = Math.min(maxNames, batchSize * 2)
      } catch (error) {
        // They go to the end of the queue.
        for (const name of names) pending.add(name)
        batchSize = Math.max(1, Math.floor(names.length / 4))
        throw error
      }
    }
  }

  // One refresh at a time. The next one reads changes that arrive in the meantime together, after their commit.
  async function run(): Promise<void> {
    for (let failures = 0; !closed && (compareAll || pending.size > 0); ) {
      try {
        await refresh()
        failures = 0
      } catch (err) {
        if (failures === 0) log.warn({ err }, `${what} could not be refreshed; those that are known stay in use`)
        const delayMs = retryDelaysMs[Math.min(failures++, retryDelaysMs.length - 1)]
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, delayMs)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    }
    running = null
    if (!closed) source.onCurrent?.()
  }

  function start(): void {
    if (closed || (!compareAll && pending.size === 0)) return
    source.onBehind?.()
    running ??= run()
  }

  function compareAgain(): void {
    compareAll = true
    wake()
    start()
  }

  // Listens before loading, so that no change in between is missed.
  const off = [
    source.listen((name) => {
      pending.add(name)
      start()
    }),
    notifications.on('reconnected', compareAgain),
  ]
  const timers = [
    setInterval(compareAgain, compareMs),
    setInterval(() => notifications.connected || compareAgain(), disconnectedCompareMs),
  ]
  for (const timer of timers) timer.unref()

  async function close(): Promise<void> {
    closed = true
    for (const stop of off) stop()
    for (const timer of timers) clearInterval(timer)
    wake()
    await running
  }

  // Without notifications the database is down, and a query would wait for the compareAll connection timeout.
  const first = source.restore && !notifications.connected ? Promise.reject(unreachable()) : refresh()
  running = first.catch(() => {})
  try {
    await first
  } catch (error) {
    if (!(await source.restore?.())) {
      await close()
      throw error
    }
    compareAll = true
  }
  running = null
  if (!compareAll) source.onCurrent?.()
  start()
  return { settled: () => running, close }
}

/** Has a system error code, so that a failed startup reports it in one line. */
function unreachable(): Error {
  return Object.assign(new Error('not connected, and no snapshot to start from'), { code: 'ECONNREFUSED' })
}
