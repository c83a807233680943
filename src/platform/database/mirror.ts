// Keeps data in memory in sync with the database: all of it is compared at start and after an outage, else by name.
import type { Logger } from 'pino'
import type { Notifications } from './notifications.ts'

export type Source = {
  /** Calls `changed` with the name of each change; returns a function that stops it. */
  listen(changed: (name: string) => void): () => void
  /** For the log: `certificates`. */
  what: string
  /** Updates memory where it differs, or returns the names that differ. */
  compare(): Promise<Iterable<string>>
  /** Reads these names from the database into memory. */
  read(names: string[]): Promise<void>
  /** How many of them, at most, in one statement. */
  namesAtOnce?: number
  /** Fills memory without the database, with what was last good; false if that is not possible. */
  restore?(): Promise<boolean>
  /** Called when memory falls behind the database, and when it is in sync again. */
  onBehind?(): void
  onCurrent?(): void
}

// Backoff while the database is unavailable or overloaded.
const retryDelaysMs = [100, 250, 500, 1_000, 2_000]
// Whatever was missed is found by this.
const compareMs = 5 * 60_000
// The same while no notifications come, though the database may answer.
const unheardCompareMs = 5_000
const defaultNamesAtOnce = 500

export type Following = {
  /** The refresh in progress, settled when memory is in sync; null if there is none. */
  settled(): Promise<void> | null
  close(): Promise<void>
}

/**
 * Resolves when everything is read. If the database is unavailable then, it resolves with what `restore` finds, and
 * reads everything as soon as it can, or rejects. Later it retries.
 */
export async function follow(source: Source, notifications: Notifications, log: Logger): Promise<Following> {
  const { what, compare, read, namesAtOnce = defaultNamesAtOnce } = source
  const pending = new Set<string>()
  let closed = false
  let whole = true
  /** Fewer after a failure, down to one: a name that cannot be read keeps no other from being read. */
  let atOnce = namesAtOnce
  let running: Promise<void> | null = null
  let wake = () => {}

  async function refresh(): Promise<void> {
    if (whole) {
      whole = false
      try {
        for (const name of await compare()) pending.add(name)
      } catch (error) {
        whole = true
        throw error
      }
    }
    while (!closed && pending.size > 0 && !whole) {
      const names = [...pending].slice(0, atOnce)
      // Removed before the read, so that a change during it is read again.
      for (const name of names) pending.delete(name)
      try {
        await read(names)
        atOnce = Math.min(namesAtOnce, atOnce * 2)
      } catch (error) {
        // Behind the others.
        for (const name of names) pending.add(name)
        atOnce = Math.max(1, Math.floor(names.length / 4))
        throw error
      }
    }
  }

  // One refresh at a time: changes notified meanwhile are read together by the next one, after their commit.
  async function run(): Promise<void> {
    for (let failures = 0; !closed && (whole || pending.size > 0); ) {
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
    if (closed || (!whole && pending.size === 0)) return
    source.onBehind?.()
    running ??= run()
  }

  function compareAgain(): void {
    whole = true
    wake()
    start()
  }

  // Listening before loading: a change between the two would be missed.
  const off = [
    source.listen((name) => {
      pending.add(name)
      start()
    }),
    notifications.on('reconnected', compareAgain),
  ]
  const timers = [
    setInterval(compareAgain, compareMs),
    setInterval(() => notifications.connected || compareAgain(), unheardCompareMs),
  ]
  for (const timer of timers) timer.unref()

  async function close(): Promise<void> {
    closed = true
    for (const stop of off) stop()
    for (const timer of timers) clearInterval(timer)
    wake()
    await running
  }

  // Without its notifications the database is away, and asking takes as long as a connection may take.
  const first = source.restore && !notifications.connected ? Promise.reject(unreachable()) : refresh()
  running = first.catch(() => {})
  try {
    await first
  } catch (error) {
    if (!(await source.restore?.())) {
      await close()
      throw error
    }
    whole = true
  }
  running = null
  if (!whole) source.onCurrent?.()
  start()
  return { settled: () => running, close }
}

/** With the code of the system, by which it is told in one line if nothing can be restored. */
function unreachable(): Error {
  return Object.assign(new Error('not connected, and no snapshot to start from'), { code: 'ECONNREFUSED' })
}
