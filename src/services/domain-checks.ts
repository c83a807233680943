// Checks of ownership: what one needs to know of the claims to a name, how its result is written, and when the next is.
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { enqueue } from '../jobs/queue.ts'
import { nextRecheckAt, nextSearchAt } from './check-schedule.ts'
import { hostOf, isWildcard, parentsOf } from './domain-names.ts'
import { lockName, type Method, markUnverified, markVerified, type Observed, recordCheck } from './domain-states.ts'
import { claimOrder } from './served-zones.ts'

/** A domain as the check of its ownership sees it, with whoever else has a say in the name. */
export type Claim = {
  id: string
  accountId: string
  name: string
  /** The name that is asked for: a wildcard is proved by what it stands below. */
  host: string
  verified: boolean
  method: Method | null
  txtValue: string
  nextCheckAt: Date | null
  checkingSince: Date
  /** The nameservers serve this claim and not another account's. */
  served: boolean
  /** The closest name above, or the host of a wildcard, that an account has proved to own. */
  nearestOwned: { name: string; own: boolean } | null
  /** Names above, and the host of a wildcard, that this account has attached, proved or not. */
  attachedAbove: string[]
}

export type CheckResult =
  | { outcome: 'proved'; method: Method; observed: Observed }
  /** The DNS was asked, and the proof is not there. */
  | { outcome: 'missed'; observed: Observed; reason: string }
  /** The DNS could not be asked, or does not agree with itself, which says nothing about the owner. */
  | { outcome: 'unknown'; observed: Observed; reason: string }

type ClaimRow = Omit<Claim, 'host' | 'served' | 'nearestOwned' | 'attachedAbove'> & { servedId: string }

/** Null if the domain is gone, or is not to be checked. */
export async function readClaim(db: Db, id: string): Promise<Claim | null> {
  const [row] = await rows<ClaimRow>(
    db,
    sql`SELECT claim.id, claim.account_id AS "accountId", claim.name, claim.verified, claim.method,
          claim.txt_value AS "txtValue", claim.next_check_at AS "nextCheckAt",
          claim.checking_since AS "checkingSince", (
            SELECT d.id FROM domain d WHERE d.name = claim.name ORDER BY ${claimOrder} LIMIT 1) AS "servedId"
        FROM domain claim WHERE claim.id = ${id} AND claim.next_check_at IS NOT NULL`,
  )
  if (!row) return null
  const { servedId, ...claim } = row
  const host = hostOf(claim.name)
  const above = isWildcard(claim.name) ? [host, ...parentsOf(host)] : parentsOf(host)
  const related = await rows<{ name: string; own: boolean; verified: boolean }>(
    db,
    sql`SELECT name, account_id = ${claim.accountId} AS own, verified FROM domain
        WHERE name = ANY(${above}::text[]) AND (verified OR account_id = ${claim.accountId})
        ORDER BY length(name) DESC`,
  )
  return {
    ...claim,
    host,
    served: servedId === claim.id,
    nearestOwned: related.find(({ verified }) => verified) ?? null,
    attachedAbove: related.filter(({ own }) => own).map(({ name }) => name),
  }
}

export type Settled = 'verified' | 'unverified' | 'taken' | 'unchanged'

/**
 * Writes down what a check found, and enqueues the next one in the same transaction, so that no crash can leave a
 * domain behind that nobody looks at. Null if the domain is gone.
 */
export async function settleCheck(
  db: Db,
  config: Config,
  claim: Claim,
  result: CheckResult,
  now: Date,
): Promise<Settled | null> {
  const { id, name } = claim
  return inTransaction(db, async (db) => {
    await lockName(db, name)
    const [row] = await rows<{ verified: boolean; nextCheckAt: Date | null; checkingSince: Date }>(
      db,
      sql`SELECT verified, next_check_at AS "nextCheckAt", checking_since AS "checkingSince" FROM domain
          WHERE id = ${id} FOR UPDATE`,
    )
    if (!row) return null
    const { outcome, observed } = result
    // Another account's proof ended this claim meanwhile.
    if (row.nextCheckAt === null && outcome !== 'proved') return 'unchanged'
    // Whoever asked for a check after this one had begun gets one, with the job that waits for it already.
    const asked = row.nextCheckAt?.getTime() === claim.nextCheckAt?.getTime() ? null : row.nextCheckAt
    const settle = async (next: Date | null, write: (next: Date | null) => Promise<unknown>) => {
      const written = await write(asked ?? next)
      if (written && written !== 'taken' && next && !asked) await enqueue(db, 'verify', id, { domainId: id }, next)
      return written
    }
    if (outcome === 'proved' && !row.verified) {
      const { method } = result
      const next = nextRecheckAt(now, outcome)
      const proved = await settle(next, (next) => markVerified(db, config, id, method, observed, next))
      return proved === 'taken' ? 'taken' : 'verified'
    }
    const next = row.verified ? nextRecheckAt(now, outcome) : nextSearchAt(now, row.checkingSince)
    const noted = next || outcome === 'proved' ? result : { ...result, reason: `${result.reason} ${endedReason(name)}` }
    await settle(next, (next) => recordCheck(db, id, { ...noted, nextCheckAt: next }))
    if (outcome !== 'missed' || !row.verified) return 'unchanged'
    const lost = await settle(nextSearchAt(now, now), (next) =>
      markUnverified(db, config, id, observed, result.reason, next),
    )
    return lost ? 'unverified' : 'unchanged'
  })
}

function endedReason(name: string): string {
  const ended = 'After 30 days without a proof, Berth has stopped looking'
  return `${ended}; POST /api/domains/${name}/verify makes it look again.`
}

/**
 * Domains whose check is overdue and that no job stands for: its job was given up, or a backup was put back without it.
 * Cheap enough to be done now and then for ever.
 */
export async function requeueForgottenChecks(db: Db): Promise<number> {
  const queued = await rows(
    db,
    sql`INSERT INTO job (kind, key, payload, run_at)
        SELECT 'verify', d.id, jsonb_build_object('domainId', d.id), now() FROM domain d
        WHERE d.next_check_at < now() - interval '1 minute' AND NOT EXISTS (
          SELECT 1 FROM job j WHERE j.kind = 'verify' AND j.key = d.id AND j.failed_at IS NULL)
        ON CONFLICT DO NOTHING RETURNING id::text`,
  )
  return queued.length
}
