// The monthly usage of accounts.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { readTime, refuseTime } from '../../platform/database/query-times.ts'
import type { AccountUsage } from '../../schemas/account.ts'
import type { Actor } from '../identity/index.ts'
import { recordStoredMaximum } from './statements.ts'

const defaultMonths = 12
const maxMonths = 36
const minuteMs = 60_000

/** Months since year 0, in UTC. */
const monthAt = (ms: number) => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth()
const startOf = (month: number) => new Date(Date.UTC(Math.floor(month / 12), month % 12))

/** Rounds `from` down to the start of its month and `to` up to the end of its month. */
export async function readMonths(
  db: Db,
  { accountId }: Actor,
  { from, to }: { from?: string; to?: string },
): Promise<Static<typeof AccountUsage>> {
  const end = monthAt(to === undefined ? Date.now() : readTime('to', to) - 1) + 1
  const start = from === undefined ? end - defaultMonths : monthAt(readTime('from', from))
  if (start >= end) refuseTime('from', 'must be before `to`')
  if (end - start > maxMonths) refuseTime('from', `is more than ${maxMonths} months before \`to\``)
  const month = { gte: startOf(start), lt: startOf(end) }
  const [builds, stored] = await Promise.all([
    db.buildTime.findMany({ where: { accountId, month } }),
    db.monthUsage.findMany({ where: { accountId, name: 'storedBytes', month } }),
  ])
  const buildMs = new Map(builds.map(({ month, ms }) => [month.getTime(), Number(ms)]))
  const bytes = new Map(stored.map(({ month, used }) => [month.getTime(), Number(used)]))
  const months = Array.from({ length: end - start }, (_, index) => {
    const at = startOf(start + index)
    return {
      month: at.toISOString().slice(0, 7),
      buildMinutes: Math.floor((buildMs.get(at.getTime()) ?? 0) / minuteMs),
      storedBytes: bytes.get(at.getTime()) ?? null,
    }
  })
  return { from: startOf(start).toISOString(), to: startOf(end).toISOString(), months }
}

/** Updates each account's maximum of stored bytes in this month; call it hourly. */
export async function recordStoredBytes(db: Db): Promise<void> {
  await recordStoredMaximum(db, {})
}
