// Last-good snapshots: what a role has in memory is kept on disk too, so that it can start while the database is away.
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { Counter, Gauge, type Registry } from 'prom-client'
import { readSealed, UnusableFile, writeSealed } from '../files/sealed-file.ts'
import type { Vault } from '../secrets/secrets.ts'

export type Snapshots = {
  /** `rows` is everything in memory, as JSON has it; called for every writing, and read in steps. */
  open(what: string, rows: () => Iterable<unknown>): KeptSnapshot
  /** What is in use since a start without the database, and of when it is. */
  readonly inUse: ReadonlyMap<string, Date>
}

/** The snapshot of one table. */
export type KeptSnapshot = {
  /** Passes the rows of the file to `apply`, and says that they are in use; false if there is no file to be used. */
  restore<Row>(apply: (rows: Row[], at: Date) => void): Promise<boolean>
  /** The rows of the file, for who reads them at every start; none if there is no file to be used. */
  read<Row>(): Promise<Row[]>
  /** Memory changed. It is written soon, or without delay if a start must not miss this change. */
  changed(atOnce?: boolean): void
  /** Memory equals the database. Nothing is written before this is so for the first time. */
  current(): void
  close(): Promise<void>
}

export type SnapshotsOptions = {
  directory: string
  vault: Vault
  log: Logger
  registry?: Registry
  maxBytes?: number
  /** Another process writes what this one would. */
  readOnly?: boolean
  /** How long changes are gathered before they are written, and the least pause between two writings. */
  gatherMs?: number
  pauseMs?: number
}

type Head = { version: number; what: string; at: string }

// Grows with every change of what rows look like.
const version = 1
const defaultMaxBytes = 1 << 30
const defaultGatherMs = 1_000
const defaultPauseMs = 10_000
// Writing takes at most a twentieth of the time, however large the tables are; half of it if a change must not wait.
const pausePerWriting = 20
// Also written without a change, because of the age below.
const rewriteMs = 60 * 60_000
// A nameserver's zones expire after as long without contact to their primary (`expire` of the SOA).
export const maxAgeMs = 7 * 24 * 60 * 60_000
// What a process that was killed has left; the writing of another process takes less.
const abandonedMs = 10 * 60_000

/** For health: null unless something is served as it was when the database was last seen. */
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
): KeptSnapshot {
  const { directory, vault, log, maxBytes = defaultMaxBytes, readOnly = false } = options
  const { gatherMs = defaultGatherMs, pauseMs = defaultPauseMs } = options
  const file = { path: join(directory, what), vault, maxBytes }
  // False at first: a part of the table, or an old one, must not replace a good file.
  let whole = false
  let dirtySinceMs: number | null = null
  let urgent = false
  let failing = false
  let closed = false
  let endedMs = Number.NEGATIVE_INFINITY
  let tookMs = 0
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
      await removeAbandoned(directory, what)
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
    tookMs = endedMs - startedMs
  }

  function schedule(): void {
    if (!whole || dirtySinceMs === null || closed || writing || readOnly) return
    clearTimeout(timer)
    const pause = urgent && !failing ? tookMs : Math.max(pauseMs, pausePerWriting * tookMs)
    const delayMs = Math.max(dirtySinceMs + (urgent ? 0 : gatherMs), endedMs + pause) - performance.now()
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
      whole = true
      if (inUse.delete(what)) log.info({ what }, 'the database is back: the last-good snapshot is no longer in use')
      if (performance.now() - endedMs > rewriteMs) dirtySinceMs ??= performance.now()
      schedule()
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await writing
      if (whole && dirtySinceMs !== null && !readOnly) await write()
    },
  }
}

async function removeAbandoned(directory: string, what: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(`${what}.`) || !name.endsWith('.new')) continue
    const path = join(directory, name)
    const found = await stat(path).catch(() => null)
    if (found && Date.now() - found.mtimeMs > abandonedMs) await rm(path, { force: true })
  }
}
