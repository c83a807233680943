// Checks of ownership: what a check reads, how its result is written, and when the next one is.
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

/** A domain as a check reads it, with the other claims that matter for its name. */
export type Claim = {
  id: string
  accountId: string
  name: string
  /** The name that is asked for: that of a wildcard without its star. */
  host: string
  verified: boolean
  method: Method | null
  txtValue: string
  nextCheckAt: Date | null
  /** The claim's own pair of the pool. */
  nameservers: string[]
  /** The pairs of other accounts' claims, now or earlier, to the host and to names above it. */
  here: string[]
  /** A delegation to the pair can only be meant for this claim. */
  exclusive: boolean
  /** The nameservers answer with the records of this claim. */
  served: boolean
  /** The closest name above, or the host of a wildcard, that an account has proved to own. */
  nearestOwned: { name: string; own: boolean } | null
  /** The keys that the zone is signed with. */
  keys: { tag: number; publicKey: Uint8Array }[]
  /** Names above, and the host of a wildcard, that this account has attached, proved or not. */
  attachedAbove: string[]
}

export type CheckResult =
  /** `byPair`: by a delegation to the claim's pair, which proves it only while the pair is exclusive; `note`: what keeps it from working anyway. */
  | { outcome: 'proved'; method: Method; observed: Observed; byPair?: boolean; note?: string | null }
  /** The DNS was asked, and the proof is not there. */
  | { outcome: 'missed'; observed: Observed; reason: string }
  /** The DNS could not be asked, or does not agree with itself, which says nothing about the owner. */
  | { outcome: 'unknown'; observed: Observed; reason: string }

/** The pairs that other accounts have, or had, for a host and the names above it. */
async function readRivalPairs(db: Db, accountId: string, host: string): Promise<string[]> {
  const where = { name: { in: [host, ...parentsOf(host)] }, accountId: { not: accountId } }
  const found = await db.domainClaim.findMany({ where, distinct: ['pair'], select: { pair: true } })
  return found.map(({ pair }) => pair)
}

/** Null if the domain is gone, or is not to be checked. */
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
  // The longest name is the nearest, because each of these names ends in every shorter one.
  const nearestFirst = related
    .map((one) => ({ name: one.name, verified: one.verified, own: one.accountId === accountId }))
    .sort((one, other) => other.name.length - one.name.length)
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

/** `guard` throws if another worker has the job, and writes the result. */
export type Guarded = { guard(db: Db): Promise<void> }

export type Settled = 'verified' | 'unverified' | 'taken' | 'ended' | 'unchanged'

/**
 * Writes what a check found, and queues the next check in the same transaction, so that a crash cannot leave a domain
 * without one. Null if the domain is gone.
 */
export async function settleCheck(
  db: Db,
  options: ViewOptions & SigningOptions & Guarded,
  claim: Claim,
  found: CheckResult,
): Promise<Settled | null> {
  return inTransaction(db, async (db) => {
    // The name above before the one below it, always: whoever takes it from the account waits, or is seen.
    if (claim.nearestOwned) await lockHost(db, { host: hostOf(claim.nearestOwned.name) })
    await lockHost(db, { host: claim.host })
    // Read before the domain is locked, because changes of its records wait for that lock.
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

type ToSettle = {
  row: ValuesOf<typeof checkedDomain>
  found: CheckResult
  proof: CheckResult
  rivals: Rivals
  /** Gets what is to be queued. */
  jobs: AnyJob[]
}

/** The host and the domain are locked. */
async function settle(
  db: Db,
  options: ViewOptions,
  claim: Claim,
  { row, found, proof, rivals, jobs }: ToSettle,
): Promise<Settled> {
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
  // A check that was asked for while this one ran is made next; its job is queued already.
  const asked = row.nextCheckAt?.getTime() === claim.nextCheckAt?.getTime() ? null : row.nextCheckAt
  const settleAt = async (next: Date | null, write: (next: Date | null) => Promise<unknown>) => {
    const written = await write(asked ?? next)
    if (written && written !== 'taken' && next && !asked)
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
  // What the operator assigned is not lost because the DNS does not say so yet.
  const isAssigned = row.verified && row.method === 'operator' && outcome === 'missed'
  const noted = isAssigned ? { ...result, outcome: 'unknown' as const } : result
  await settleAt(next, (next) => recordCheck(db, id, { ...noted, nextCheckAt: next }))
  if (noted.outcome !== 'missed' || !row.verified) return 'unchanged'
  const { reason } = noted
  const lost = await settleAt(nextSearchAt(now, now), (next) =>
    markUnverified(db, options, id, { observed, reason, nextCheckAt: next }),
  )
  return lost ? 'unverified' : 'unchanged'
}

/**
 * The result, unless while the check ran the name above that proves it was lost, or somebody else has claimed the name
 * with the same pair.
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
 * Queues the checks that are overdue and have no job: the job was given up, or a restored backup did not have it.
 * Cheap enough to run periodically. Returns how many checks were queued.
 */
export async function requeueForgottenChecks(db: Db): Promise<number> {
  return (await queueForgottenChecks(db, {})).length
}
