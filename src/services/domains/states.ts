// The state machines of domains: whether the ownership is verified, and the state of the certificate.
import type { Domain, Prisma } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { append, type EventType } from '../events/index.ts'
import { hostOf, parentsOf } from '../names/index.ts'
import { type CertificateView, type DomainView, type ViewOptions, viewDomain, withNames } from './domains.ts'
import { checkNamesBelow, checkNamesWithReason, lockHost } from './statements.ts'

type Ssl = DomainView['ssl']
export type Method = NonNullable<DomainView['verification']['method']>
type Seen = DomainView['verification']['observed']
export type Observed = Omit<Seen, 'asked'> & Partial<Pick<Seen, 'asked'>>

/** Checks in a row that must miss the proof before a verified domain is lost: one miss may be a fault of the DNS. */
export const missesUntilLost = 3
/** Misses closer together than this count once, so that a check on demand does not speed up the loss. */
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

export type Move = {
  guard: Prisma.DomainWhereInput
  data: Prisma.DomainUpdateManyMutationInput
  event: EventType | null
  /** Whose doing it is, if not the system's. */
  actor?: string
}

/** The one place where a domain's state changes, with its event; null if the guard failed. */
export async function move(
  db: Db,
  options: ViewOptions,
  id: string,
  { guard, data, event, actor = system }: Move,
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
  /** Null when the domain is not checked any more. */
  nextCheckAt?: Date | null
}

/** The columns of a check that was made just now. */
function checked({ observed, nextCheckAt = null }: Check, reason: string | null) {
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
 * Writes a check that changes no state. A proof that is missing counts against a verified domain, once a day however
 * often it is looked for; from `missesUntilLost` on markUnverified takes effect. A check that could not be made counts
 * neither way. Null if the domain is gone.
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
        // While an account is suspended, its zones may be refused: that is no loss of ownership.
        where: { id, verified: true, account: { suspendedAt: null }, OR: [{ missedAt: null }, { missedAt: earlier }] },
        data: { misses: { increment: 1 }, missedAt: now },
      })
    }
    const [row] = await db.domain.updateManyAndReturn({
      where: { id },
      data: checked(check, check.outcome === 'proved' ? (check.note ?? null) : check.reason),
      select: { verified: true, misses: true },
    })
    return row ?? null
  })
}

type Proof = Check & { method: Method; note?: string | null }

/**
 * The proof is there. Of two accounts that prove one name at the same time one wins; the other gets `taken`, and its
 * claim ends with an event. Null if the domain is gone or verified already.
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

type Proved = Pick<Domain, 'id' | 'name' | 'accountId'>

/** `losers`: the claims of others that end with the proof. */
export type Rivals = { taken: boolean; losers: readonly string[] }

/** What stands against a proof; the host is locked. */
export async function readRivals(db: Db, claim: Proved): Promise<Rivals> {
  const { id, name } = claim
  if (await isTaken(db, claim)) return { taken: true, losers: [] }
  const losers = await db.domain.findMany({
    where: { name, id: { not: id } },
    orderBy: { id: 'asc' },
    select: { id: true },
  })
  return { taken: false, losers: losers.map(({ id }) => id) }
}

/** Queued in the transaction that proves a domain. */
export const issueJob = (id: string) => ({ kind: 'issue' as const, key: id, payload: { domainId: id } })

/**
 * As `markVerified`, with what was read before the domain was locked: changes of its records wait for that lock. The caller
 * queues `issueJob`.
 */
export async function markProved(
  db: Db,
  options: ViewOptions,
  { id, name, accountId }: Proved,
  check: Proof & Rivals,
): Promise<DomainView | 'taken' | null> {
  if (check.taken) {
    await endClaim(db, options, id, checked({ observed: check.observed }, takenReason))
    return 'taken'
  }
  const { from, to, event } = verifiedTransitions.find((step) => step.to)!
  const view = await move(db, options, id, {
    guard: { verified: from },
    data: {
      verified: to,
      verifiedAt: new Date(),
      method: check.method,
      misses: 0,
      missedAt: null,
      // The first attempt on a certificate does not wait because of failures before.
      certificateFailures: 0,
      ...checked(check, check.note ?? null),
    },
    event,
  })
  if (!view) return null
  for (const loser of check.losers) await endClaim(db, options, loser, { nextCheckAt: null, reason: takenReason })
  // A wildcard and names below may be proved by this one.
  await checkNamesBelow(db, { accountId, ending: `.${name}` })
  return view
}

/** Whether somebody else has proved the name, or it or one above it is reserved for another account. */
async function isTaken(db: Db, { id, name, accountId }: Proved) {
  // The TXT record of a wildcard is that of its host, which has one owner.
  const same = [{ name }, { name: hostOf(name), accountId: { not: accountId } }]
  if ((await db.domain.count({ where: { OR: same, verified: true, id: { not: id } } })) > 0) return true
  // A reserved name is taken too: an older claim must not be verified by a delegation that the owner left behind.
  const names = [name, ...parentsOf(name)]
  const where = { name: { in: names }, accountId: { not: accountId }, until: { gt: new Date() } }
  return (await db.domainHold.count({ where })) > 0
}

/** The 30 days of an unproved claim are over. */
export async function markEnded(
  db: Db,
  options: ViewOptions,
  id: string,
  { observed, reason }: { observed: Observed; reason: string },
): Promise<void> {
  const guard = { verified: false, nextCheckAt: { not: null } }
  await move(db, options, id, { guard, data: checked({ observed }, reason), event: 'domain.unverified' })
}

/** Ends a claim because of another account's proof; the event is written once, however often that is found out. */
async function endClaim(db: Db, options: ViewOptions, id: string, data: Move['data']): Promise<void> {
  const guard = { verified: false, OR: [{ reason: null }, { reason: { not: takenReason } }] }
  const ended = await move(db, options, id, { guard, data, event: 'domain.unverified' })
  if (!ended) await db.domain.updateMany({ where: { id, verified: false }, data: { nextCheckAt: null } })
}

/** The proof was missing for `missesUntilLost` checks; null if it was not, or the domain was not verified. */
export async function markUnverified(
  db: Db,
  options: ViewOptions,
  id: string,
  check: Check & { reason: string },
): Promise<DomainView | null> {
  const { from, to, event } = verifiedTransitions.find((step) => !step.to)!
  return inTransaction(db, async (db) => {
    const view = await move(db, options, id, {
      guard: { verified: from, misses: { gte: missesUntilLost } },
      data: {
        verified: to,
        verifiedAt: null,
        method: null,
        misses: 0,
        missedAt: null,
        checkingSince: new Date(),
        unprovedSince: new Date(),
        ...checked(check, check.reason),
      },
      event,
    })
    // Another account may own the name by now; its claims were refused until this moment.
    if (view) await checkNamesWithReason(db, { name: view.name, reason: takenReason })
    return view
  })
}

/** Moves the certificate's state along the table; null if no step leads from where it is, or the guard failed. */
export async function changeSsl(
  db: Db,
  options: ViewOptions,
  id: string,
  { to, certificate, guard }: { to: Ssl; certificate?: CertificateView; guard?: Move['guard'] },
): Promise<DomainView | null> {
  return inTransaction(db, async (db) => {
    const row = await db.domain.findUnique({ where: { id }, select: { ssl: true } })
    const step = sslTransitions.find((transition) => transition.from === row?.ssl && transition.to === to)
    if (!step) return null
    const { from, event } = step
    return move(db, options, id, { guard: { ...guard, ssl: from }, data: { ssl: to, certificate }, event })
  })
}

/**
 * Notes a failed attempt on a certificate that still serves: `ssl` stays ACTIVE while renewal is tried again. `warns`:
 * with an event, because little of its time is left.
 */
export async function noteCertificate(
  db: Db,
  options: ViewOptions,
  id: string,
  { certificate, warns }: { certificate: CertificateView; warns: boolean },
): Promise<void> {
  await move(db, options, id, { guard: {}, data: { certificate }, event: warns ? 'domain.ssl.failing' : null })
}
