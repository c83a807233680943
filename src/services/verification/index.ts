// Ownership checks of domains: reading a claim, settling the result, and scheduling the next check.
import { type AnyJob, enqueueAll } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import type { ValuesOf } from '../../platform/database/statement.ts'
import { findServedClaim, type SigningOptions, signingJob } from '../dns/index.ts'
import {
  type checkedDomain,
  endedReason,
  hasEnded,
  isExclusive,
  issueJob,
  lockCheckedDomain,
  lockHost,
  type Method,
  markEnded,
  markProved,
  markUnverified,
  nameserversOf,
  nextRecheckAt,
  nextSearchAt,
  type Observed,
  queueForgottenChecks,
  type Rivals,
  readRivals,
  recordCheck,
  sharedText,
  type ViewOptions,
} from '../domains/index.ts'
import { hostOf, isWildcard, parentsOf } from '../names/index.ts'

/** A domain under verification, with related claims. */
export type Claim = {
  id: string
  accountId: string
  name: string
  /** The name to query: a wildcard without its star. */
  host: string
  verified: boolean
  method: Method | null
  txtValue: string
  nextCheckAt: Date | null
  /** The pair of nameservers that this claim was assigned. */
  nameservers: string[]
  /** The pairs of other accounts' current or earlier claims to the host and its parents. */
  here: string[]
  /** Whether a delegation to the pair can only mean this claim. */
  exclusive: boolean
  /** Whether our nameservers serve the records of this claim. */
  served: boolean
  /** The closest parent, or the host of a wildcard, that an account has verified. */
  nearestOwned: { name: string; own: boolean } | null
  /** The keys that sign the zone. */
  keys: { tag: number; publicKey: Uint8Array }[]
  /** Parents, and the host of a wildcard, that this account has attached, verified or not. */
  attachedAbove: string[]
}

export type CheckResult =
  /** `byPair`: proved by a delegation to the pair, valid while the pair is exclusive. `note`: a remaining problem. */
  | { outcome: 'proved'; method: Method; observed: Observed; byPair?: boolean; note?: string | null }
  /** The DNS answered, but without the proof. */
  | { outcome: 'missed'; observed: Observed; reason: string }
  /** The DNS did not answer or its answers disagree, which says nothing about the owner. */
  | { outcome: 'unknown'; observed: Observed; reason: string }

/** The pairs that other accounts have or had for a host and its parents. */
async function readRivalPairs(db: Db, accountId: string, host: string): Promise<string[]> {
  const where = { name: { in: [host, ...parentsOf(host)] }, accountId: { not: accountId } }
  const found = await db.domainClaim.findMany({ where, distinct: ['pair'], select: { pair: true } })
  return found.map(({ pair }) => pair)
}

/** Returns null if the domain was deleted or needs no check. */
export async function readClaim(db: Db, { nameservers: pool }: ViewOptions, id: string): Promise<Claim | null> {
  const keys = { select: { tag: true, publicKey: true } } as const
  const row = await db.domain.findFirst({ where: { id, nextCheckAt: { not: null } }, include: { zoneKeys: keys } })
  if (!row) return null
  const { accountId, name, verified, method, txtValue, nextCheckAt } = row
  const host = hostOf(name)
  const above = isWildcard(name) ? [host, ...parentsOf(host)] : parentsOf(host)
  const [served] = await findServedClaim(db, { name })
  const nameservers = nameserversOf(pool, row.nameservers)
  const here = await readRivalPairs(db, accountId, host)
  const related = await db.domain.findMany({
    where: { name: { in: above }, OR: [{ verified: true }, { accountId }] },
    select: { name: true, verified: true, accountId: true },
  })
  // The longest name is the nearest, because each name ends in every shorter one.
  const nearestFirst = related
    .map((domain) => ({ name: domain.name, verified: domain.verified, own: domain.accountId === accountId }))
    .sort((a, b) => b.name.length - a.name.length)
  return {
    id,
    accountId,
    name,
    host,
    verified,
    method: method as Method | null,
    txtValue,
    nextCheckAt,
    nameservers,
    here,
    exclusive: isExclusive(nameservers, { here }),
    served: served?.id === id,
    nearestOwned: nearestFirst.find(({ verified }) => verified) ?? null,
    keys: row.zoneKeys,
    attachedAbove: nearestFirst.filter(({ own }) => own).map(({ name }) => name),
  }
}

/** `guard` throws if another worker has the job. */
export type Guarded = { guard(db: Db): Promise<void> }

export type CheckEffect = 'verified' | 'unverified' | 'taken' | 'ended' | 'unchanged'

/**
 * Writes the result of a check and queues the next one in the same transaction, so that a crash can't leave a domain
 * without a check. Returns null if the domain was deleted.
 */
export async function settleCheck(
  db: Db,
  options: ViewOptions & SigningOptions & Guarded,
  claim: Claim,
  found: CheckResult,
): Promise<CheckEffect | null> {
  return inTransaction(db, async (db) => {
    // Lock order: parent, host. A concurrent change of the parent's owner waits, or is visible here.
    if (claim.nearestOwned) await lockHost(db, { host: hostOf(claim.nearestOwned.name) })
    await lockHost(db, { host: claim.host })
    // Read before locking the domain, because changes of its records wait for that lock.
    const proof = await stillProved(db, options, claim, found)
    const rivals = proof.outcome === 'proved' ? await readRivals(db, claim) : { taken: false, losers: [] }
    const [row] = await lockCheckedDomain(db, { id: claim.id })
    await options.guard(db)
    if (!row) return null
    const jobs: AnyJob[] = []
    const settled = await settle(db, options, claim, { row, found, proof, rivals, jobs })
    const signing = await signingJob(db, options, claim.id)
    await enqueueAll(db, signing ? [...jobs, signing] : jobs)
    return settled
  })
}

type Settlement = {
  row: ValuesOf<typeof checkedDomain>
  found: CheckResult
  proof: CheckResult
  rivals: Rivals
  /** Receives the jobs to queue. */
  jobs: AnyJob[]
}

/** Requires locks on the host and the domain. */
async function settle(
  db: Db,
  options: ViewOptions,
  claim: Claim,
  { row, found, proof, rivals, jobs }: Settlement,
): Promise<CheckEffect> {
  const { id, name } = claim
  const now = new Date()
  // Another account's proof ended this claim while the check ran.
  if (row.nextCheckAt === null && found.outcome !== 'proved') return 'unchanged'
  if (!row.verified && hasEnded(now, row.unprovedSince)) {
    const last = found.outcome === 'proved' ? '' : `${found.reason} `
    await markEnded(db, options, id, { observed: found.observed, reason: last + endedReason(name) })
    return 'ended'
  }
  const result = row.verified ? found : proof
  const { outcome, observed } = result
  // A check that was requested while this one ran comes next; its job is queued already.
  const requested = row.nextCheckAt?.getTime() === claim.nextCheckAt?.getTime() ? null : row.nextCheckAt
  const settleAt = async (next: Date | null, write: (next: Date | null) => Promise<unknown>) => {
    const written = await write(requested ?? next)
    if (written && written !== 'taken' && next && !requested)
      jobs.push({ kind: 'verify', key: id, payload: { domainId: id }, runAt: next })
    return written
  }
  if (outcome === 'proved' && !row.verified) {
    const { method, note = null } = result
    const next = nextRecheckAt(now, outcome)
    const proved = await settleAt(next, (next) =>
      markProved(db, options, claim, { method, observed, note, nextCheckAt: next, ...rivals }),
    )
    if (proved === 'taken') return 'taken'
    if (proved) jobs.push(issueJob(id))
    return 'verified'
  }
  const next = row.verified ? nextRecheckAt(now, outcome) : nextSearchAt(now, row.checkingSince, row.unprovedSince)
  // A domain assigned by the operator stays verified even if the DNS does not confirm it yet.
  const isAssigned = row.verified && row.method === 'operator' && outcome === 'missed'
  const effective = isAssigned ? { ...result, outcome: 'unknown' as const } : result
  await settleAt(next, (next) => recordCheck(db, id, { ...effective, nextCheckAt: next }))
  if (effective.outcome !== 'missed' || !row.verified) return 'unchanged'
  const { reason } = effective
  const lost = await settleAt(nextSearchAt(now, now), (next) =>
    markUnverified(db, options, id, { observed, reason, nextCheckAt: next }),
  )
  return lost ? 'unverified' : 'unchanged'
}

/**
 * The result, downgraded if during the check the account lost the parent that proves it, or another account claimed the
 * name with the same pair.
 */
async function stillProved(
  db: Db,
  { nameservers: pool }: ViewOptions,
  { accountId, host, nameservers, nearestOwned: above }: Claim,
  result: CheckResult,
): Promise<CheckResult> {
  if (result.outcome !== 'proved' || result.method !== 'nameservers') return result
  const { observed } = result
  if (!result.byPair) {
    if (!above?.own || (await db.domain.count({ where: { name: above.name, accountId, verified: true } })) > 0)
      return result
    return { outcome: 'unknown', observed, reason: `${above.name} was lost while ${host} was checked.` }
  }
  const here = await readRivalPairs(db, accountId, host)
  if (isExclusive(nameservers, { here })) return result
  return { outcome: 'missed', observed, reason: sharedText(host, pool, { here }) }
}

/**
 * Queues overdue checks without a job, which failed or is missing from a restored backup. Cheap enough to run
 * periodically. Returns the number of queued checks.
 */
export async function requeueForgottenChecks(db: Db): Promise<number> {
  return (await queueForgottenChecks(db, {})).length
}
