// Keeps the zones as the database has them: compared whole at start and after an outage, otherwise read by name.
import type { Logger } from 'pino'
import type { Database } from '../../db.ts'
import type { Notifications } from '../../notifications.ts'
import type { PlatformZones } from '../../services/platform-zones.ts'
import { readServedStates, readServedZones } from '../../services/served-zones.ts'
import type { ZoneConstants } from './zone.ts'
import { ZoneTable } from './zone-table.ts'

export type Snapshot = {
  readonly table: ZoneTable
  /** Told the names of zones that came, went or changed, after they are answered that way. */
  onChange(listener: (names: readonly string[]) => void): () => void
  /** Told when a name may have passed from one zone to another. */
  onMoved(listener: () => void): () => void
  /** For how long the zones have not been known to be those of the database; 0 while they are. */
  ageSeconds(): number
  close(): Promise<void>
}

// The database is away or overloaded: soon at first, then without adding to its trouble.
const retryDelaysMs = [100, 250, 500, 1_000, 2_000]
// A connection that died without a word brings no notifications; this bounds how long nobody would notice.
const compareMs = 5 * 60_000
const statesAtOnce = 20_000
// A thousand zones of ten records are some 700 KB, and a statement of 20 ms.
const zonesAtOnce = 1_000

function listeners<T extends unknown[]>() {
  const all = new Set<(...args: T) => void>()
  return {
    add(listener: (...args: T) => void) {
      all.add(listener)
      return () => void all.delete(listener)
    },
    tell(...args: T) {
      for (const listener of all) listener(...args)
    },
  }
}

export async function createSnapshot(
  db: Database,
  notifications: Notifications,
  platform: PlatformZones,
  constants: ZoneConstants,
  log: Logger,
): Promise<Snapshot> {
  const changes = listeners<[names: readonly string[]]>()
  const moves = listeners<[]>()
  const table = new ZoneTable(constants, () => moves.tell())
  let closed = false
  let whole = true
  const pending = new Set<string>()
  let staleSinceMs: number | null = Date.now()
  let running: Promise<void> | null = null
  let wake = () => {}

  /** Which names differ: a serial grows with every change, so names, ids and serials tell without the records. */
  async function compare(): Promise<void> {
    const gone = new Set(table.names())
    for (const name of platform.keys()) pending.add(name)
    for (let after = ''; !closed; ) {
      const states = await readServedStates(db, platform, after, statesAtOnce)
      for (const state of states) {
        gone.delete(state.name)
        if (!table.isCurrent(state)) pending.add(state.name)
      }
      if (states.length < statesAtOnce) break
      after = states.at(-1)!.name
    }
    for (const name of gone) pending.add(name)
  }

  async function readNext(): Promise<void> {
    const names = [...pending].slice(0, zonesAtOnce)
    // Taken out before reading: a change that is heard of meanwhile is read again.
    for (const name of names) pending.delete(name)
    try {
      const changed = table.apply(names, await readServedZones(db, platform, names))
      if (changed.length > 0) changes.tell(changed)
    } catch (error) {
      for (const name of names) pending.add(name)
      throw error
    }
  }

  async function refresh(): Promise<void> {
    if (whole) {
      whole = false
      try {
        await compare()
      } catch (error) {
        whole = true
        throw error
      }
    }
    while (!closed && pending.size > 0 && !whole) await readNext()
  }

  // One refresh at a time: what is heard of meanwhile is read together by the next, never before it was committed.
  async function run(): Promise<void> {
    for (let failures = 0; !closed && (whole || pending.size > 0); ) {
      try {
        await refresh()
        failures = 0
      } catch (err) {
        if (failures === 0) log.warn({ err }, 'the nameserver could not refresh its zones; it answers those it knows')
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
    if (notifications.connected) staleSinceMs = null
  }

  function start(): void {
    staleSinceMs ??= Date.now()
    if (!closed) running ??= run()
  }

  function compareAgain(): void {
    whole = true
    wake()
    start()
  }

  // Listening before loading: a change between the two would be missed.
  const off = [
    notifications.on('zone', (name) => {
      // A wildcard is a name in its parent's zone and has none of its own.
      if (name.startsWith('*')) return
      pending.add(name)
      start()
    }),
    notifications.on('lost', () => {
      staleSinceMs ??= Date.now()
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

  // At start there is nothing to answer from, so a database that is away is an error and not a reason to wait.
  const first = refresh()
  running = first.catch(() => {})
  try {
    await first
  } catch (error) {
    await close()
    throw error
  }
  running = null
  staleSinceMs = null
  if (whole || pending.size > 0) start()

  return {
    table,
    onChange: changes.add,
    onMoved: moves.add,
    ageSeconds: () => (staleSinceMs === null ? 0 : (Date.now() - staleSinceMs) / 1000),
    close,
  }
}
