// The state machines of domains: verification of ownership, and the state of the certificate.
import type { Domain, Prisma } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { append, type EventType } from '../events/index.ts'
import { hostOf, parentsOf } from '../names/index.ts'
import { type CertificateView, type DomainView, type ViewOptions, viewDomain, withNames } from './domains.ts'
import { checkNamesBelow, checkNamesWithReason, lockHost } from './statements.ts'

type Ssl = DomainView['ssl']
export type Method = NonNullable<DomainView['verification']['method']>
type ObservedDns = DomainView['verification']['observed']
export type Observed = Omit<ObservedDns, 'asked'> & Partial<Pick<ObservedDns, 'asked'>>

/** Consecutive misses before a verified domain is lost, because a single miss may be a DNS fault. */
export const missesUntilLost = 3
/** Misses closer together than this count once, so checks on demand don't speed up the loss. */
const missMs = 20 * 60 * 60_000

export const verifiedTransitions: { from: boolean; to: boolean; when: string; event: EventType }[] = [
  { from: false, to: true, when: 'the nameservers or the TXT record prove the ownership', event: 'domain.verified' },
  { from: false, to: true, when: 'the operator assigned it to the account', event: 'domain.verified' },
  { from: true, to: false, when: `${missesUntilLost} checks in a row missed the proof`, event: 'domain.unverified' },
  { from: true, to: false, when: 'the operator assigned it to another account', event: 'domain.unverified' },
]

/** A step without an event is internal. */
export const sslTransitions: { from: Ssl; to: Ssl; when: string; event: EventType | null }[] = [
  { from: 'PENDING', to: 'ISSUING', when: 'the domain is verified', event: null },
  { from: 'ISSUING', to: 'ACTIVE', when: 'the certificate is issued', event: 'domain.ssl.active' },
  { from: 'ISSUING', to: 'ERROR', when: 'the authority refused or did not answer', event: 'domain.ssl.error' },
  { from: 'ERROR', to: 'ISSUING', when: 'it is time to try again', event: null },
  { from: 'ACTIVE', to: 'ACTIVE', when: 'the certificate is renewed', event: 'domain.ssl.renewed' },
  { from: 'ACTIVE', to: 'EXPIRED', when: 'renewal kept failing until the end', event: 'domain.ssl.expired' },
  { from: 'EXPIRED', to: 'ISSUING', when: 'it is time to try again', event: null },
]

const takenReason =
  'Another account owns this name, or removed it less than 7 days ago. Request a check again after that.'
const system = 'system'

export type StateChange = {
  guard: Prisma.DomainWhereInput
  data: Prisma.DomainUpdateManyMutationInput
  event: EventType | null
  /** The actor of the event; default: the system. */
  actor?: string
}

/** Changes a domain's state, with its event; nothing else does. Returns null if the guard failed. */
export async function changeState(
  db: Db,
  options: ViewOptions,
  id: string,
  { guard, data, event, actor = system }: StateChange,
): Promise<DomainView | null> {
  const [row] = await db.domain.updateManyAndReturn({
    where: { ...guard, id },
    data: { ...data, updatedAt: new Date() },
    include: withNames,
  })
  if (!row) return null
  const view = viewDomain(options, row)
  if (event) {
    const { accountId, projectId, name } = row
    await append(db, [{ accountId, projectId, type: event, actor, subject: name, data: view }])
  }
  return view
}

type Check = {
  observed: Observed
  /** Null if the domain is no longer checked. */
  nextCheckAt?: Date | null
}

/** The columns of a finished check. */
function checkColumns({ observed, nextCheckAt = null }: Check, reason: string | null) {
  return {
    checkedAt: new Date(),
    nextCheckAt,
    reason,
    observedNameservers: observed.nameservers,
    observedTxt: observed.txt,
    observedAsked: observed.asked ?? [],
  }
}

/**
 * Records a check without changing the state. A missing proof counts against a verified domain at most once a day; from
 * `missesUntilLost` on, markUnverified takes effect. An inconclusive check does not count. Returns null if the domain
 * was deleted.
 */
export async function recordCheck(
  db: Db,
  id: string,
  check: Check &
    ({ outcome: 'proved'; method: Method; note?: string | null } | { outcome: 'missed' | 'unknown'; reason: string }),
): Promise<{ verified: boolean; misses: number } | null> {
  return inTransaction(db, async (db) => {
    const now = new Date()
    if (check.outcome === 'proved') {
      const data = { method: check.method, misses: 0, missedAt: null }
      await db.domain.updateMany({ where: { id, verified: true }, data })
    }
    if (check.outcome === 'missed') {
      const earlier = { lte: new Date(now.getTime() - missMs) }
      await db.domain.updateMany({
        // Zones of suspended accounts may be refused, which is no loss of ownership.
        where: { id, verified: true, account: { suspendedAt: null }, OR: [{ missedAt: null }, { missedAt: earlier }] },
        data: { misses: { increment: 1 }, missedAt: now },
      })
    }
    const [row] = await db.domain.updateManyAndReturn({
      where: { id },
      data: checkColumns(check, check.outcome === 'proved' ? (check.note ?? null) : check.reason),
      select: { verified: true, misses: true },
    })
    return row ?? null
  })
}

type Proof = Check & { method: Method; note?: string | null }

/**
 * Verifies a domain. If two accounts prove a name at the same time, one wins; the other gets `taken`, and its claim
 * ends with an event. Returns null if the domain was deleted or is verified already.
 */
export async function markVerified(
  db: Db,
  options: ViewOptions,
  id: string,
  check: Proof,
): Promise<DomainView | 'taken' | null> {
  return inTransaction(db, async (db) => {
    const claim = await db.domain.findUnique({ where: { id } })
    if (!claim) return null
    // With the lock, the second transaction sees the first; without it, the unique index would abort the second.
    await lockHost(db, { host: hostOf(claim.name) })
    const proved = await markProved(db, options, claim, { ...check, ...(await readRivals(db, claim)) })
    if (proved && proved !== 'taken') await enqueue(db, issueJob(id))
    return proved
  })
}

type ProvedClaim = Pick<Domain, 'id' | 'name' | 'accountId'>

/** `losers`: other claims, which end with the proof. */
export type Rivals = { taken: boolean; losers: readonly string[] }

/** Finds claims that conflict with a proof. The host must be locked. */
export async function readRivals(db: Db, claim: ProvedClaim): Promise<Rivals> {
  const { id, name } = claim
  if (await isTaken(db, claim)) return { taken: true, losers: [] }
  const losers = await db.domain.findMany({
    where: { name, id: { not: id } },
    orderBy: { id: 'asc' },
    select: { id: true },
  })
  return { taken: false, losers: losers.map(({ id }) => id) }
}

/** The job to queue in the transaction that verifies a domain. */
export const issueJob = (id: string) => ({ kind: 'issue' as const, key: id, payload: { domainId: id } })

/**
 * Like `markVerified`, but with rivals that the caller read before locking the domain, because changes of its records
 * wait for that lock. The caller must queue `issueJob`.
 */
export async function markProved(
  db: Db,
  options: ViewOptions,
  { id, name, accountId }: ProvedClaim,
  check: Proof & Rivals,
): Promise<DomainView | 'taken' | null> {
  if (check.taken) {
    await endClaim(db, options, id, checkColumns({ observed: check.observed }, takenReason))
    return 'taken'
  }
  const { from, to, event } = verifiedTransitions.find((step) => step.to)!
  const view = await changeState(db, options, id, {
    guard: { verified: from },
    data: {
      verified: to,
      verifiedAt: new Date(),
      method: check.method,
      misses: 0,
      missedAt: null,
      // Earlier failures must not delay the first attempt to issue a certificate.
      certificateFailures: 0,
      ...checkColumns(check, check.note ?? null),
    },
    event,
  })
  if (!view) return null
  for (const loser of check.losers) await endClaim(db, options, loser, { nextCheckAt: null, reason: takenReason })
  // This domain may prove a wildcard and names below it.
  await checkNamesBelow(db, { accountId, ending: `.${name}` })
  return view
}

/** Whether another account has verified the name, or it or a parent is reserved for another account. */
async function isTaken(db: Db, { id, name, accountId }: ProvedClaim) {
  // A wildcard shares the TXT record of its host, which has one owner.
  const same = [{ name }, { name: hostOf(name), accountId: { not: accountId } }]
  if ((await db.domain.count({ where: { OR: same, verified: true, id: { not: id } } })) > 0) return true
  // A reserved name is taken too: a delegation that its owner left behind must not verify an older claim.
  const names = [name, ...parentsOf(name)]
  const where = { name: { in: names }, accountId: { not: accountId }, until: { gt: new Date() } }
  return (await db.domainHold.count({ where })) > 0
}

/** Ends an unproved claim after its 30 days. */
export async function markEnded(
  db: Db,
  options: ViewOptions,
  id: string,
  { observed, reason }: { observed: Observed; reason: string },
): Promise<void> {
  const guard = { verified: false, nextCheckAt: { not: null } }
  await changeState(db, options, id, { guard, data: checkColumns({ observed }, reason), event: 'domain.unverified' })
}

/** Ends a claim because of another account's proof, with an event only the first time. */
async function endClaim(db: Db, options: ViewOptions, id: string, data: StateChange['data']): Promise<void> {
  const guard = { verified: false, OR: [{ reason: null }, { reason: { not: takenReason } }] }
  const ended = await changeState(db, options, id, { guard, data, event: 'domain.unverified' })
  if (!ended) await db.domain.updateMany({ where: { id, verified: false }, data: { nextCheckAt: null } })
}

/** Unverifies a domain after `missesUntilLost` misses. Returns null if there were fewer, or it was not verified. */
export async function markUnverified(
  db: Db,
  options: ViewOptions,
  id: string,
  check: Check & { reason: string },
): Promise<DomainView | null> {
  const { from, to, event } = verifiedTransitions.find((step) => !step.to)!
  return inTransaction(db, async (db) => {
    const view = await changeState(db, options, id, {
      guard: { verified: from, misses: { gte: missesUntilLost } },
      data: {
        verified: to,
        verifiedAt: null,
        method: null,
        misses: 0,
        missedAt: null,
        checkingSince: new Date(),
        unprovedSince: new Date(),
        ...checkColumns(check, check.reason),
      },
      event,
    })
    // Recheck claims of other accounts, which were refused until now.
    if (view) await checkNamesWithReason(db, { name: view.name, reason: takenReason })
    return view
  })
}

/** Changes the certificate's state along the table. Returns null if the transition is invalid or the guard failed. */
export async function changeSsl(
  db: Db,
  options: ViewOptions,
  id: string,
  { to, certificate, guard }: { to: Ssl; certificate?: CertificateView; guard?: StateChange['guard'] },
): Promise<DomainView | null> {
  return inTransaction(db, async (db) => {
    const row = await db.domain.findUnique({ where: { id }, select: { ssl: true } })
    const step = sslTransitions.find((transition) => transition.from === row?.ssl && transition.to === to)
    if (!step) return null
    const { from, event } = step
    return changeState(db, options, id, { guard: { ...guard, ssl: from }, data: { ssl: to, certificate }, event })
  })
}

/**
 * Records a failed renewal of a certificate in service; `ssl` stays ACTIVE during retries. `warns`: with an event,
 * because the certificate expires soon.
 */
export async function recordCertificate(
  db: Db,
  options: ViewOptions,
  id: string,
  { certificate, warns }: { certificate: CertificateView; warns: boolean },
): Promise<void> {
  await changeState(db, options, id, { guard: {}, data: { certificate }, event: warns ? 'domain.ssl.failing' : null })
}
