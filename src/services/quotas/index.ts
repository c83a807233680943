// Quotas of accounts. Triggers maintain the counters and refuse most excess; see `prisma/functions`.
import type { Db, RefusedQuota } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { type Limits, type QuotaName, quotaNames, quotas } from '../../schemas/quotas.ts'
import { readLimit } from './statements.ts'

/** Stores the platform's default limits for the triggers. Called when the API starts. */
export async function writeQuotaDefaults(db: Db, limits: Limits): Promise<void> {
  const written = new Map((await db.quotaDefault.findMany()).map(({ name, max }) => [name, max]))
  for (const name of quotaNames) {
    const max = BigInt(limits[name])
    if (written.get(name) === max) continue
    await db.quotaDefault.upsert({ where: { name }, create: { name, max }, update: { max } })
  }
}

/** An error that says which quota is used up and what to do. */
export function quotaFault({ limit, used, max }: RefusedQuota): Fault {
  const quota = quotas[limit as QuotaName]
  const detail = `${quota.what}: ${used} of ${max} used. ${quota.cure}, or ask the operator for a higher limit.`
  return new Fault('quota_exceeded', detail, { limit, used, max })
}

/** The limit of an account; infinite if there is none. */
export async function limitOf(db: Db, accountId: string, name: QuotaName): Promise<number> {
  const [found] = await readLimit(db, { accountId, name })
  return found?.max == null ? Number.POSITIVE_INFINITY : Number(found.max)
}

/** Throws if the quota has no room for one more. For quotas without a counter; the caller must hold a suitable lock. */
export async function checkQuota(db: Db, accountId: string, limit: QuotaName, used: number): Promise<void> {
  const max = await limitOf(db, accountId, limit)
  if (used >= max) throw quotaFault({ limit, used, max })
}
