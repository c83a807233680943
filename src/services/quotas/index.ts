// Quotas: what an account may have. The counters and most refusals are triggers of the database: prisma/functions/quotas.sql.
import type { Db, RefusedQuota } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import { type Limits, type QuotaName, quotaNames, quotas } from '../../schemas/quotas.ts'
import { readLimit } from './statements.ts'

/** The platform's own limits, for the triggers to read; called when the API starts. */
export async function writeQuotaDefaults(db: Db, limits: Limits): Promise<void> {
  const written = new Map((await db.quotaDefault.findMany()).map(({ name, max }) => [name, max]))
  for (const name of quotaNames) {
    const max = BigInt(limits[name])
    if (written.get(name) === max) continue
    await db.quotaDefault.upsert({ where: { name }, create: { name, max }, update: { max } })
  }
}

/** A refusal that says what is used up and what to do. */
export function quotaFault({ limit, used, max }: RefusedQuota): Fault {
  const quota = quotas[limit as QuotaName]
  const detail = `${quota.what}: ${used} of ${max} used. ${quota.cure}, or ask the operator for a higher limit.`
  return new Fault('quota_exceeded', detail, { limit, used, max })
}

/** What the account may have; infinite if nothing bounds it. */
export async function limitOf(db: Db, accountId: string, name: QuotaName): Promise<number> {
  const [found] = await readLimit(db, { accountId, name })
  return found?.max == null ? Number.POSITIVE_INFINITY : Number(found.max)
}

/** Refuses one more where so many are used. For what has no counter; the caller holds the lock that makes it exact. */
export async function checkQuota(db: Db, accountId: string, limit: QuotaName, used: number): Promise<void> {
  const max = await limitOf(db, accountId, limit)
  if (used >= max) throw quotaFault({ limit, used, max })
}
