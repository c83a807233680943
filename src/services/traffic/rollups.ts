// Adds counts to the rollups every minute. While the database is unavailable, it keeps a limited number for later.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../platform/database/database.ts'
import { randomLabel } from '../../platform/ids.ts'
import type { Counted, Tallies } from '../../platform/observe/tallies.ts'
import { type RollupStep, rollupSteps } from '../../schemas/traffic-columns.ts'
import { addDnsTraffic, addTraffic } from './statements.ts'

export type Rollups = {
  /** Writes the current counts. Never rejects: counts that can't be written are kept. */
  flush(): Promise<void>
  /** Writes the rest. */
  close(): Promise<void>
}

export type RollupsOptions = {
  db: Database
  tallies: Pick<Tallies, 'take'>
  log: Logger
  /** Maximum number of rows to keep while they can't be written. */
  maxRows?: number
  now?(): number
}

/** A part of the counts of one minute. `seq` is set when it is first sent, so a retry has the same number. */
type Part = { atMs: number; steps: readonly RollupStep[]; rows: Counted[]; seq: number | null }

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const maxPartRows = 1_000
// About 8 MB.
const defaultMaxRows = 20_000
const closeMs = 5_000

const sinceHour = (ms: number) => ms - (ms % hourMs)

export const startTrafficRollups = (options: RollupsOptions) => startRollups(addTraffic, options)
export const startDnsRollups = (options: RollupsOptions) => startRollups(addDnsTraffic, options)

function startRollups(
  add: typeof addTraffic | typeof addDnsTraffic,
  { db, tallies, log, maxRows = defaultMaxRows, now = Date.now }: RollupsOptions,
): Rollups {
  const source = randomLabel(20)
  let pending: Part[] = []
  let seq = 0
  let minuteStartMs = now()
  let writing: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  /** Splits rows into parts that one statement writes within milliseconds. */
  function enqueue(rows: Counted[], atMs: number, steps: readonly RollupStep[]): void {
    for (let at = 0; at < rows.length; at += maxPartRows) {
      pending.push({ atMs, steps, rows: rows.slice(at, at + maxPartRows), seq: null })
    }
  }

  const size = () => pending.reduce((sum, { rows }) => sum + rows.length, 0)

  /** Merges waiting minutes into hours; if there are still too many rows, drops the oldest. */
  function limitPending(): void {
    if (size() <= maxRows) return
    const waiting = pending
    // Parts that were sent may have arrived, so they must not change.
    pending = waiting.filter(({ seq }) => seq !== null)
    const hours = Map.groupBy(
      waiting.filter(({ seq }) => seq === null),
      ({ atMs }) => sinceHour(atMs),
    )
    for (const [atMs, parts] of hours) enqueue(mergeCounts(parts.flatMap(({ rows }) => rows)), atMs, ['hour'])
    let lost = 0
    while (size() > maxRows && pending.length > 1) {
      const [oldest] = pending.splice(pending[0]!.seq === null ? 0 : 1, 1)
      lost += oldest!.rows.length
    }
    if (lost > 0) log.error({ lost }, 'dropped the oldest traffic counts: the database was unavailable for too long')
  }

  async function write(): Promise<void> {
    for (;;) {
      const [part] = pending
      if (!part) return
      part.seq ??= ++seq
      const rows = part.rows.map(({ owner, host, counts }) => ({ owner, host, counts: counts.map(Math.round) }))
      await add(db, { source, seq: part.seq, at: new Date(part.atMs), steps: part.steps, rows })
      pending = pending.filter((one) => one !== part)
    }
  }

  function flush(): Promise<void> {
    enqueue(tallies.take(), minuteStartMs, rollupSteps)
    minuteStartMs = now()
    limitPending()
    writing = writing.then(write).catch((err) => log.warn({ err, rows: size() }, 'traffic is written later'))
    return writing
  }

  /** Flushes at the end of each minute, so requests can be counted without reading the clock. */
  function schedule(): void {
    const endMs = minuteStartMs - (minuteStartMs % minuteMs) + minuteMs
    const end = () => {
      void flush()
      // The timer may fire slightly early.
      minuteStartMs = Math.max(minuteStartMs, endMs)
      schedule()
    }
    timer = setTimeout(end, Math.min(minuteMs, Math.max(0, endMs - now())))
    timer.unref()
  }
  schedule()

  return {
    flush,
    async close() {
      clearTimeout(timer)
      await Promise.race([flush(), sleep(closeMs, undefined, { ref: false })])
      if (pending.length > 0) log.error({ lost: size() }, 'traffic counts were lost at shutdown')
    },
  }
}

function mergeCounts(rows: Counted[]): Counted[] {
  const sums = new Map<string, Counted>()
  for (const { owner, host, counts } of rows) {
    const key = `${owner} ${host}`
    const sum = sums.get(key)
    if (!sum) sums.set(key, { owner, host, counts: counts.slice() })
    else for (const [index, count] of counts.entries()) sum.counts[index]! += count
  }
  return [...sums.values()]
}
