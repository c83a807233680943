// Last-good snapshots: saves what a role has in memory to disk, so that it can start while the database is down.
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { Counter, Gauge, type Registry } from 'prom-client'
import { readSealed, UnusableFile, writeSealed } from '../files/sealed-file.ts'
import type { Vault } from '../secrets/secrets.ts'

export type Snapshots = {
  /** `rows` returns everything in memory, as JSON values. It is called for each save, and iterated in steps. */
  open(what: string, rows: () => Iterable<unknown>): Snapshot
  /** Which snapshots are in use because the database was down at startup, and from when they are. */
  readonly inUse: ReadonlyMap<string, Date>
}

/** The snapshot of one table. */
export type Snapshot = {
  /** Passes the rows of the file to `apply` and marks the snapshot as in use; false if there is no usable file. */
  restore<Row>(apply: (rows: Row[], at: Date) => void): Promise<boolean>
  /** The rows of the file, for data that is read at every startup; none if there is no usable file. */
  read<Row>(): Promise<Row[]>
  /** Schedules a save. With `atOnce` there is no delay, for a change that the next startup must not miss. */
  changed(atOnce?: boolean): void
  /** Memory matches the database. Nothing is saved before the first call. */
  current(): void
  close(): Promise<void>
}

export type SnapshotsOptions = {
  directory: string
  vault: Vault
  log: Logger
  registry?: Registry
  maxBytes?: number
  /** Set if another process saves the same data. */
  readOnly?: boolean
  /** How long changes are collected before a save, and the minimum pause between two saves. */
  collectMs?: number
  pauseMs?: number
}

type Head = { version: number; what: string; at: string }

// Incremented whenever the format of rows changes.
const version = 1
const defaultMaxBytes = 1 << 30
const defaultCollectMs = 1_000
const defaultPauseMs = 10_000
// Saving takes at most a twentieth of the time, however large the tables are; half of it if a change must not wait.
const pausePerSave = 20
// Saves without a change too, because of the maximum age.
const rewriteMs = 60 * 60_000
// A secondary also drops a zone after this long without its primary (`expire` in the SOA).
export const maxAgeMs = 7 * 24 * 60 * 60_000
// Files of a process that was killed. Another process's save takes less time.
const staleMs = 10 * 60_000

/** For health checks: null unless data from a snapshot is being served. */
export function snapshotReadiness({ inUse }: Pick<Snapshots, 'inUse'>): () => string | null {
  return () => {
    if (inUse.size === 0) return null
    const parts = [...inUse].map(([what, at]) => `${what} of ${at.toISOString()}`)
    return `The database could not be reached at the start: in use are ${parts.join(', ')}.`
  }
}

export function createSnapshots(options: SnapshotsOptions): Snapshots {
  const inUse = new Map<string, Date>()
  const writtenAtMs = new Map<string, number>()
  const registers = options.registry ? [options.registry] : []
  const labelNames = ['what'] as const
  new Gauge({
    name: 'berth_snapshot_in_use',
    help: 'Whether this is served from the last-good snapshot, because the database was away at the start.',
    labelNames,
    aggregator: 'max',
    registers,
    collect() {
      for (const what of writtenAtMs.keys()) this.set({ what }, inUse.has(what) ? 1 : 0)
    },
  })
  new Gauge({
    name: 'berth_snapshot_age_seconds',
    help: 'Age of the last-good snapshot on disk.',
    labelNames,
    aggregator: 'min',
    registers,
    collect() {
      for (const [what, atMs] of writtenAtMs) this.set({ what }, (Date.now() - atMs) / 1000)
    },
  })
  const bytes = new Gauge({
    name: 'berth_snapshot_bytes',
    help: 'Size of the last-good snapshot on disk.',
    labelNames,
    aggregator: 'max',
    registers,
  })
  const failures = new Counter({
    name: 'berth_snapshot_failures_total',
    help: 'Last-good snapshots that could not be written.',
    labelNames,
    registers,
  })
  return {
    inUse,
    open: (what, rows) =>
      openSnapshot(options, what, rows, {
        inUse,
        onWritten(at, size) {
          writtenAtMs.set(what, at.getTime())
          bytes.set({ what }, size)
        },
        onFailed: () => failures.inc({ what }),
      }),
  }
}

type Hooks = { inUse: Map<string, Date>; onWritten(at: Date, size: number): void; onFailed(): void }

function openSnapshot(
  options: SnapshotsOptions,
  what: string,
  rows: () => Iterable<unknown>,
  { inUse, onWritten, onFailed }: Hooks,
): Snapshot {
  const { directory, vault, log, maxBytes = defaultMaxBytes, readOnly = false } = options
  const { collectMs = defaultCollectMs, pauseMs = defaultPauseMs } = options
  const file = { path: join(directory, what), vault, maxBytes }
  // Starts as false: a partial or old table must not replace a good file.
  let complete = false
  let dirtySinceMs: number | null = null
  let urgent = false
  let failing = false
  let closed = false
  let endedMs = Number.NEGATIVE_INFINITY
  let durationMs = 0
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | null = null

  function accept(head: Head): void {
    if (head.version !== version || head.what !== what) throw new UnusableFile('it is of another version or table')
    if (Date.now() - Date.parse(head.at) > maxAgeMs) throw new UnusableFile(`it is too old: ${head.at}`)
  }

  async function usable<T>(read: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await read()
    } catch (err) {
      log.warn({ err, what }, 'the last-good snapshot cannot be used')
      return otherwise
    }
  }

  async function write(): Promise<void> {
    const at = new Date()
    const startedMs = performance.now()
    dirtySinceMs = null
    urgent = false
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await removeStale(directory, what)
      const head: Head = { version, what, at: at.toISOString() }
      onWritten(at, await writeSealed(file, head, rows()))
      failing = false
    } catch (err) {
      dirtySinceMs = startedMs
      onFailed()
      if (!failing) log.warn({ err, what }, 'the last-good snapshot could not be written; the one before stays')
      failing = true
    }
    endedMs = performance.now()
    durationMs = endedMs - startedMs
  }

  function schedule(): void {
    if (!complete || dirtySinceMs === null || closed || writing || readOnly) return
    clearTimeout(timer)
    const pause = urgent && !failing ? durationMs : Math.max(pauseMs, pausePerSave * durationMs)
    const delayMs = Math.max(dirtySinceMs + (urgent ? 0 : collectMs), endedMs + pause) - performance.now()
    timer = setTimeout(
      () => {
        writing = write().finally(() => {
          writing = null
          schedule()
        })
      },
      Math.max(0, delayMs),
    )
    timer.unref()
  }

  return {
    restore: (apply) =>
      usable(async () => {
        const found = await readSealed<Head, never>(file, accept)
        if (!found) return false
        const at = new Date(found.head.at)
        apply(found.rows, at)
        inUse.set(what, at)
        onWritten(at, (await stat(file.path)).size)
        log.warn({ what, at }, 'the database is away: the last-good snapshot is used until it is back')
        return true
      }, false),
    read: () => usable(async () => (await readSealed<Head, never>(file, accept))?.rows ?? [], []),
    changed(atOnce = false) {
      dirtySinceMs ??= performance.now()
      urgent ||= atOnce
      schedule()
    },
    current() {
      complete = true
      if (inUse.delete(what)) log.info({ what }, 'the database is back: the last-good snapshot is no longer in use')
      if (performance.now() - endedMs > rewriteMs) dirtySinceMs ??= performance.now()
      schedule()
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await writing
      if (complete && dirtySinceMs !== null && !readOnly) await write()
    },
  }
}

async function removeStale(directory: string, what: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(`${what}.`) || !name.endsWith('.new')) continue
    const path = join(directory, name)
    const found = await stat(path).catch(() => null)
    if (found && Date.now() - found.mtimeMs > staleMs) await rm(path, { force: true })
  }
}
