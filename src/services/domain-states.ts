// The state machines of domains: who proved the ownership, and how far the certificate is. Engines call these.
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, type Sql, sql } from '../db.ts'
import { jobSql } from '../jobs/queue.ts'
import { parentsOf } from './domain-names.ts'
import { type CertificateView, type DomainRow, type DomainView, domainColumns, viewDomain } from './domains.ts'
import { append, type EventType } from './events.ts'

type Ssl = DomainView['ssl']
export type Method = NonNullable<DomainView['verification']['method']>
export type Observed = DomainView['verification']['observed']

/** Checks in a row that must miss the proof before a verified domain counts as lost: one may be an outage of the DNS. */
export const missesUntilLost = 3
/** Misses closer together than this are one: a check that somebody asks for must not speed the loss up. */
const missHours = 20

export const verifiedTransitions: { from: boolean; to: boolean; when: string; event: EventType }[] = [
  { from: false, to: true, when: 'the nameservers or the TXT record prove the ownership', event: 'domain.verified' },
  { from: true, to: false, when: `${missesUntilLost} checks in a row missed the proof`, event: 'domain.unverified' },
]

/** A step without an event is one that nobody outside waits for. */
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
  'Another account has proved that it owns this name, or removed it less than 7 days ago. Ask again when that is over.'
const system = 'system'

async function readDomain(db: Db, id: string): Promise<DomainRow | null> {
  const [row] = await rows<DomainRow>(
    db,
    sql`SELECT ${domainColumns} FROM domain d JOIN project p ON p.id = d.project_id WHERE d.id = ${id}`,
  )
  return row ?? null
}

/** The one place where a domain's row moves: guarded by `guard`, with its event beside it; null if the guard failed. */
async function move(
  db: Db,
  config: Config,
  id: string,
  change: Sql,
  guard: Sql,
  event: EventType | null,
): Promise<DomainView | null> {
  const moved = await rows(
    db,
    sql`UPDATE domain SET ${change}, updated_at = now() WHERE id = ${id} AND ${guard} RETURNING id`,
  )
  if (moved.length === 0) return null
  const row = (await readDomain(db, id))!
  const view = viewDomain(config, row)
  if (event) {
    const { accountId, projectId, name } = row
    await append(db, [{ accountId, projectId, type: event, actor: system, subject: name, data: view }])
  }
  return view
}

function seen(observed: Observed, reason: string | null, nextCheckAt: Date | null): Sql {
  return sql`checked_at = now(), next_check_at = ${nextCheckAt}::timestamptz, reason = ${reason}::text,
    observed_nameservers = ${observed.nameservers}::text[], observed_txt = ${observed.txt}::text[]`
}

/**
 * Notes a check that changes no state. A proof that is missing counts against a verified domain, once a day however
 * often it is looked for; from `missesUntilLost` on markUnverified takes effect. A check that could not be made counts
 * neither way. Null if the domain is gone.
 */
export async function recordCheck(
  db: Db,
  id: string,
  check: { nextCheckAt: Date | null; observed: Observed } & (
    | { outcome: 'proved'; method: Method }
    | { outcome: 'missed' | 'unknown'; reason: string }
  ),
): Promise<{ verified: boolean; misses: number } | null> {
  const proved = check.outcome === 'proved'
  const reason = proved ? null : check.reason
  const counts = sql`verified AND ${check.outcome === 'missed'}::boolean
    AND (missed_at IS NULL OR missed_at <= now() - ${missHours}::int * interval '1 hour')`
  const [row] = await rows<{ verified: boolean; misses: number }>(
    db,
    sql`UPDATE domain SET ${seen(check.observed, reason, check.nextCheckAt)},
          method = CASE WHEN verified THEN COALESCE(${proved ? check.method : null}::text, method) END,
          misses = CASE WHEN ${proved}::boolean THEN 0 WHEN ${counts} THEN misses + 1 ELSE misses END,
          missed_at = CASE WHEN ${proved}::boolean THEN NULL WHEN ${counts} THEN now() ELSE missed_at END
        WHERE id = ${id} RETURNING verified, misses`,
  )
  return row ?? null
}

/** Taking turns by name lets the loser see the winner; running into the unique index would end the transaction. */
export async function lockName(db: Db, name: string): Promise<void> {
  await rows(db, sql`SELECT 1 FROM pg_advisory_xact_lock(hashtextextended(${`domain ${name}`}, 0))`)
}

/** Has the checks of some domains made now: all that waited for what just changed. */
async function checkNow(db: Db, which: Sql): Promise<void> {
  await rows(
    db,
    // Whoever is being checked at this moment is left alone: waiting for one another could go in a circle.
    sql`WITH woken AS (
          UPDATE domain SET next_check_at = now(), checking_since = now() WHERE id IN (
            SELECT id FROM domain WHERE NOT verified AND ${which} FOR UPDATE SKIP LOCKED) RETURNING id)
        INSERT INTO job (kind, key, payload, run_at)
        SELECT 'verify', id, jsonb_build_object('domainId', id), now() FROM woken
        ON CONFLICT (kind, key) WHERE failed_at IS NULL DO UPDATE SET run_at = excluded.run_at RETURNING id::text`,
  )
}

/**
 * The proof is there. Of two accounts that prove one name at the same time one wins; the other gets `taken`, and its
 * claim ends with an event. Null if the domain is gone or verified already.
 */
export async function markVerified(
  db: Db,
  config: Config,
  id: string,
  method: Method,
  observed: Observed,
  nextCheckAt: Date | null = null,
): Promise<DomainView | 'taken' | null> {
  const { from, to, event } = verifiedTransitions.find((step) => step.to)!
  return inTransaction(db, async (db) => {
    const claim = await readDomain(db, id)
    if (!claim) return null
    await lockName(db, claim.name)
    const names = [claim.name, ...parentsOf(claim.name)]
    // A hold counts here too: a claim made before the owner proved the name must not inherit the delegation it left.
    const [other] = await rows(
      db,
      sql`SELECT 1 FROM domain WHERE name = ${claim.name} AND verified AND id <> ${id}
          UNION ALL SELECT 1 FROM domain_hold
          WHERE name = ANY(${names}::text[]) AND account_id <> ${claim.accountId} AND until > now()`,
    )
    if (other) {
      await endClaim(db, config, id, seen(observed, takenReason, null))
      return 'taken'
    }
    // Whatever kept the certificate away before, a domain that is proved anew does not wait for it.
    const change = sql`verified = ${to}::boolean, verified_at = now(), method = ${method}::text, misses = 0,
      missed_at = NULL, certificate_failures = 0, ${seen(observed, null, nextCheckAt)}`
    const view = await move(db, config, id, change, sql`verified = ${from}::boolean`, event)
    if (!view) return null
    // The certificate is wanted from this moment on, so its job commits with it.
    await rows(db, sql`${jobSql('issue', id, { domainId: id }, sql`(SELECT 1) AS verified`)} RETURNING id::text`)
    const losers = await rows<{ id: string }>(
      db,
      sql`SELECT id FROM domain WHERE name = ${claim.name} AND id <> ${id} ORDER BY id`,
    )
    for (const loser of losers) {
      await endClaim(db, config, loser.id, sql`next_check_at = NULL, reason = ${takenReason}::text`)
    }
    // A wildcard and names below may be proved by this one.
    const ending = `.${claim.name}`
    const below = sql`account_id = ${claim.accountId} AND right(name, ${ending.length}::int) = ${ending}`
    await checkNow(db, sql`next_check_at IS NOT NULL AND ${below}`)
    return view
  })
}

/** A claim that another account's proof ended; said once, however often it is found out. */
async function endClaim(db: Db, config: Config, id: string, change: Sql): Promise<void> {
  const guard = sql`NOT verified AND reason IS DISTINCT FROM ${takenReason}`
  const ended = await move(db, config, id, change, guard, 'domain.unverified')
  if (!ended) await rows(db, sql`UPDATE domain SET next_check_at = NULL WHERE id = ${id} AND NOT verified RETURNING id`)
}

/** The proof stayed away for `missesUntilLost` checks; null if it did not, or the domain was not verified. */
export async function markUnverified(
  db: Db,
  config: Config,
  id: string,
  observed: Observed,
  reason: string,
  nextCheckAt: Date | null = null,
): Promise<DomainView | null> {
  const { from, to, event } = verifiedTransitions.find((step) => !step.to)!
  return inTransaction(db, async (db) => {
    const view = await move(
      db,
      config,
      id,
      sql`verified = ${to}::boolean, verified_at = NULL, method = NULL, misses = 0, missed_at = NULL,
        checking_since = now(), ${seen(observed, reason, nextCheckAt)}`,
      sql`verified = ${from}::boolean AND misses >= ${missesUntilLost}::int`,
      event,
    )
    // Whoever took the name over outside may have claimed it here, in vain until now.
    if (view) await checkNow(db, sql`name = ${view.name} AND reason = ${takenReason}`)
    return view
  })
}

/** Moves the certificate's state along the table; null if no step leads from where it is. */
export async function changeSsl(
  db: Db,
  config: Config,
  id: string,
  to: Ssl,
  certificate?: CertificateView,
): Promise<DomainView | null> {
  return inTransaction(db, async (db) => {
    const row = await readDomain(db, id)
    const step = sslTransitions.find((transition) => transition.from === row?.ssl && transition.to === to)
    if (!step) return null
    const face = certificate ? sql`${JSON.stringify(certificate)}::jsonb` : sql`certificate`
    return move(db, config, id, sql`ssl = ${step.to}, certificate = ${face}`, sql`ssl = ${step.from}`, step.event)
  })
}

/** Notes a failed attempt on a certificate that still serves: `ssl` stays ACTIVE while renewal is tried again. */
export async function noteCertificate(db: Db, id: string, certificate: CertificateView): Promise<void> {
  await rows(
    db,
    sql`UPDATE domain SET certificate = ${JSON.stringify(certificate)}::jsonb, updated_at = now() WHERE id = ${id}
        RETURNING id`,
  )
}
