// Keeps something in memory as the database has it: compared whole at start and after an outage, otherwise by name.
import type { Logger } from 'pino'
import type { Notifications } from './notifications.ts'

export type Source = {
  /** Calls `changed` with the name of whatever changed, until it is told to stop. */
  listen(changed: (name: string) => void): () => void
  /** For the log: `certificates`. */
  what: string
  /** Brings to memory what differs, or tells the names of it. */
  compare(): Promise<Iterable<string>>
  /** Reads these names from the database into memory. */
  read(names: string[]): Promise<void>
  /** How many of them, at most, in one statement. */
  namesAtOnce?: number
  /** Memory is behind the database from now on, and again as it is there. */
  onBehind?(): void
  onCurrent?(): void
}

// The database is away or overloaded: soon at first, then without adding to its trouble.
const retryDelaysMs = [100, 250, 500, 1_000, 2_000]
// A connection that died without a word brings no notifications; this bounds how long nobody would notice.
const compareMs = 5 * 60_000
const defaultNamesAtOnce = 500

export type Following = {
  /** What is being read at the moment, settled when memory is as the database has it; null where nothing is. */
  settled(): Promise<void> | null
  close(): Promise<void>
}

/** Resolves when everything is read; a database that is away then is an error, later it is waited for. */
export async function follow(source: Source, notifications: Notifications, log: Logger): Promise<Following> {
  const { what, compare, read, namesAtOnce = defaultNamesAtOnce } = source
  const pending = new Set<string>()
  let closed = false
  let whole = true
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
      const names = [...pending].slice(0, namesAtOnce)
      // Taken out before reading: a change that is heard of meanwhile is read again.
      for (const name of names) pending.delete(name)
      try {
        await read(names)
      } catch (error) {
        for (const name of names) pending.add(name)
        throw error
      }
    }
  }

  // One refresh at a time: what is heard of meanwhile is read together by the next, never before it was committed.
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
    source.onCurrent?.()
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
  const timer = setInterval(compareAgain, compareMs)
  timer.unref()

  async function close(): Promise<void> {
    closed = true
    for (const stop of off) stop()
    clearInterval(timer)
    wake()
    await running
  }

  const first = refresh()
  running = first.catch(() => {})
  try {
    await first
  } catch (error) {
    await close()
    throw error
  }
  running = null
  source.onCurrent?.()
  start()
  return { settled: () => running, close }
}
