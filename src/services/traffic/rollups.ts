// Adds what was counted to the rollups each minute. While the database is away it is kept, within bounds, for later.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Database } from '../../platform/database/database.ts'
import { randomLabel } from '../../platform/ids.ts'
import type { Counted, Tallies } from '../../platform/observe/tallies.ts'
import { type RollupStep, rollupSteps } from '../../schemas/traffic-columns.ts'
import { addDnsTraffic, addTraffic } from './statements.ts'

export type Rollups = {
  /** Writes what was counted up to now. Never rejects: what cannot be written is kept. */
  flush(): Promise<void>
  /** Writes the rest. */
  close(): Promise<void>
}

export type RollupsOptions = {
  db: Database
  tallies: Pick<Tallies, 'take'>
  log: Logger
  /** How many rows are kept at most while they cannot be written. */
  maxRows?: number
  now?(): number
}

/** What was counted in one minute, or a part of it; `seq` is set once it was sent, and stays if it is sent again. */
type Part = { atMs: number; steps: readonly RollupStep[]; rows: Counted[]; seq: number | null }

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const rowsInAPart = 1_000
// Some 8 MB.
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
  let beganMs = now()
  let writing: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  /** In parts of a size that a statement writes in some milliseconds. */
  function keep(rows: Counted[], atMs: number, steps: readonly RollupStep[]): void {
    for (let at = 0; at < rows.length; at += rowsInAPart) {
      pending.push({ atMs, steps, rows: rows.slice(at, at + rowsInAPart), seq: null })
    }
  }

  const size = () => pending.reduce((sum, { rows }) => sum + rows.length, 0)

  /** Minutes that wait are summed up by the hour; if those are too many as well, the oldest are lost. */
  function bound(): void {
    if (size() <= maxRows) return
    const waiting = pending
    // What was sent may have arrived, so it stays as it is.
    pending = waiting.filter(({ seq }) => seq !== null)
    const hours = Map.groupBy(
      waiting.filter(({ seq }) => seq === null),
      ({ atMs }) => sinceHour(atMs),
    )
    for (const [atMs, parts] of hours) keep(sumUp(parts.flatMap(({ rows }) => rows)), atMs, ['hour'])
    let lost = 0
    while (size() > maxRows && pending.length > 1) {
      const [oldest] = pending.splice(pending[0]!.seq === null ? 0 : 1, 1)
      lost += oldest!.rows.length
    }
    if (lost > 0) log.error({ lost }, 'the database is away for too long, and the oldest counts of traffic are lost')
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
    keep(tallies.take(), beganMs, rollupSteps)
    beganMs = now()
    bound()
    writing = writing.then(write).catch((err) => log.warn({ err, rows: size() }, 'traffic is written later'))
    return writing
  }

  /** At the end of each minute, so that counts are those of the minute and no request needs to know the time. */
  function wait(): void {
    const endMs = beganMs - (beganMs % minuteMs) + minuteMs
    const end = () => {
      void flush()
      // The clock may be a moment behind.
      beganMs = Math.max(beganMs, endMs)
      wait()
    }
    timer = setTimeout(end, Math.min(minuteMs, Math.max(0, endMs - now())))
    timer.unref()
  }
  wait()

  return {
    flush,
    async close() {
      clearTimeout(timer)
      await Promise.race([flush(), sleep(closeMs, undefined, { ref: false })])
      if (pending.length > 0) log.error({ lost: size() }, 'the process ends with counts of traffic that nobody has')
    },
  }
}

function sumUp(rows: Counted[]): Counted[] {
  const sums = new Map<string, Counted>()
  for (const { owner, host, counts } of rows) {
    const key = `${owner} ${host}`
    const sum = sums.get(key)
    if (!sum) sums.set(key, { owner, host, counts: counts.slice() })
    else for (const [index, count] of counts.entries()) sum.counts[index]! += count
  }
  return [...sums.values()]
}
