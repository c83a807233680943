// Deletes old rollups.
import { deleteInBatches } from '../../platform/batches.ts'
import type { Database } from '../../platform/database/database.ts'
import type { RollupStep } from '../../schemas/traffic-columns.ts'

const dayMs = 24 * 60 * 60_000
export const minuteDays = 2
export const hourMonths = 13
// A process that was disconnected for longer counts as a new source.
const sourceDays = 2

/** The oldest time that rollups are kept for: the start of a day or month (UTC), so that none is incomplete. */
export function retentionStart(step: RollupStep, nowMs: number): Date {
  const now = new Date(nowMs)
  if (step === 'minute') return new Date(nowMs - (nowMs % dayMs) - minuteDays * dayMs)
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - hourMonths, 1))
}

/** Deletes old rollups and silent sources, and returns the number of rows. */
export async function deleteOldTraffic(db: Database, signal: AbortSignal): Promise<number> {
  let count = 0
  for (const step of ['minute', 'hour'] as const) {
    const where = { step, at: { lt: retentionStart(step, Date.now()) } }
    count += await deleteInBatches(signal, (limit) => db.traffic.deleteMany({ where, limit }))
    count += await deleteInBatches(signal, (limit) => db.dnsTraffic.deleteMany({ where, limit }))
  }
  const silent = { at: { lt: new Date(Date.now() - sourceDays * dayMs) } }
  return count + (await deleteInBatches(signal, (limit) => db.trafficSource.deleteMany({ where: silent, limit })))
}
