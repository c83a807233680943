// The issue job: checks, locks, checks again, obtains a certificate, and records the outcome.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Database } from '../../platform/database/database.ts'
import { LostLease, leaseMs, renewLease } from '../../platform/database/lease.ts'
import { newId, randomLabel } from '../../platform/ids.ts'
import { inSpan } from '../../platform/observe/tracing.ts'
import { placeOf, type Vault } from '../../platform/secrets/secrets.ts'
import {
  type AcmeOrder,
  domainCertificate,
  extendLease,
  type Holder,
  type Lease,
  leaseOrder,
  type ManagedCertificate,
  type OrderScope,
  platformCertificate,
  publishChallenges,
  releaseOrder,
  resetOrder,
  setOrderUrl,
  setRenewAt,
} from '../../services/certificates/index.ts'
import type { Authority } from './authority.ts'
import { IssueFailure, nextAttemptAt, type RetryTable } from './failures.ts'
import { readChain } from './keys.ts'
import type { IssuerMetrics } from './metrics.ts'
import { isDue, plannedRenewal } from './renewal.ts'

export type IssueOptions = {
  config: Config
  db: Database
  vault: Vault
  log: Logger
  authority: Authority
  retry: RetryTable
  metrics: IssuerMetrics
}

type Attempt = {
  managed: ManagedCertificate
  scope: OrderScope
  order: AcmeOrder
  lease: Lease
  names: string[]
  signal: AbortSignal
}

// Orders mostly wait for the authority, so several run at once.
const concurrency = 8
// For internal errors, such as an unavailable database. The authority's failures have their own table.
const retryDelaysMs = [5_000, 30_000, 120_000, 600_000] as const
// If another worker holds the order, it has finished or lost its lease by then.
const busyDelayMs = leaseMs + 1_000

const isWaiting = (holder: Holder, now: Date) =>
  holder.failures > 0 && holder.nextAttemptAt !== null && holder.nextAttemptAt > now

export function createIssueHandler(options: IssueOptions): Handler<'issue'> {
  const { config, db, vault, log, authority, retry, metrics } = options

  /** A certificate of the development CA is replaced once another authority is configured. */
  function isOutdated({ certificate }: Holder): boolean {
    return certificate !== null && certificate.directory === '' && certificate.issuer !== authority.issuer
  }

  const needs = (holder: Holder, now: Date) => isDue(holder.certificate, holder.names, now) || isOutdated(holder)

  const runAgain = ({ job }: ManagedCertificate, at: Date) =>
    enqueue(db, { kind: 'issue', key: job.key, payload: job.payload, runAt: at })

  /** When to issue: now, at a later check, or never. */
  async function decide(
    managed: ManagedCertificate,
    scope: OrderScope,
    signal: AbortSignal,
  ): Promise<'now' | Date | null> {
    const [own] = scope.holders
    const now = new Date()
    const endAt = own.certificate?.notAfter ?? null
    const isExpired = endAt !== null && endAt <= now
    if (isExpired && own.ssl === 'ACTIVE') await managed.expire()
    const noticeAt = own.ssl === 'ACTIVE' && !isExpired ? endAt : null
    if (!own.entitled) return noticeAt
    if (isWaiting(own, now)) return earliest(own.nextAttemptAt!, noticeAt)
    if (needs(own, now)) return 'now'
    const certificate = own.certificate!
    const window = await authority.renewalWindow(certificate, signal)
    if (!window) return certificate.renewAt
    const renewAt = earliest(certificate.renewAt, window.at)
    if (renewAt < certificate.renewAt) await setRenewAt(db, certificate.id, renewAt)
    return renewAt <= now ? 'now' : earliest(renewAt, window.nextCheckAt)
  }

  /** The holders for one order: the job's own, and its companions unless they wait after a failure of their own. */
  function holdersOf({ holders: [own, ...others] }: OrderScope, dropped: Set<string>): Holder[] {
    const now = new Date()
    const isFree = (holder: Holder) => !isWaiting(holder, now) && !holder.names.some((name) => dropped.has(name))
    return [own, ...others.filter((holder) => holder.entitled && isFree(holder))]
  }

  async function attempt({ managed, scope, order, lease, names, signal }: Attempt): Promise<void> {
    const platformZone = scope.accountId === null ? scope.holders[0].zone : null
    const zones = new Map(scope.holders.flatMap((holder) => holder.names.map((name) => [name, holder.zone] as const)))
    // Extra names belong to the zone of the domain above them.
    const extraZone = scope.holders.find(({ zone }) => zone !== null)?.zone ?? null
    const { chain, key } = await authority.obtain({
      names,
      zoneOf: (name) => (zones.has(name) ? zones.get(name)! : extraZone),
      replaces: scope.holders[0].certificate,
      order,
      begin(key) {
        const sealed = vault.seal(key, placeOf.acmeOrder(lease.subject))
        return resetOrder(db, lease, { names, directory: authority.directory, key: sealed })
      },
      setUrl: (url) => setOrderUrl(db, lease, url),
      publish: (challenges) => publishChallenges(db, lease, challenges, platformZone),
      signal,
    })
    const facts = readChain(chain, key, names)
    const renewAt = plannedRenewal(facts.notBefore, facts.notAfter)
    const checkRenewalAt = earliest(renewAt, new Date(Date.now() + authority.renewalCheckMs))
    const id = newId('crt')
    const sealedKey = vault.seal(key, placeOf.certificate(id))
    const issued = { id, ...facts, chain, renewAt, checkRenewalAt, directory: authority.directory, sealedKey }
    if (!(await managed.install(scope, lease, issued))) throw new LostLease()
    metrics.attempted('issued')
    log.info({ names, issuer: facts.issuer, notAfter: facts.notAfter }, 'a certificate was issued')
  }

  /** Runs under the lease. If one name fails, the others get a certificate with another order. */
  async function issueWithLease(
    managed: ManagedCertificate,
    first: AcmeOrder,
    lease: Lease,
    signal: AbortSignal,
  ): Promise<void> {
    const dropped = new Set<string>()
    for (let order = first; ; ) {
      const scope = await managed.find()
      const next = scope && (await decide(managed, scope, signal))
      if (!scope || next !== 'now') return void (next instanceof Date && (await runAgain(managed, next)))
      const holders = holdersOf(scope, dropped)
      const [own] = scope.holders
      const extra = scope.extraNames.filter((name) => !dropped.has(name))
      const names = [...holders.flatMap((holder) => holder.names), ...extra]
      // Shortest first: the host before its www.
      names.sort((one, other) => one.length - other.length)
      const due = holders.filter((holder) => needs(holder, new Date()))
      await managed.begin(due)
      try {
        return await inSpan('issue', { attributes: { 'berth.certificate.names': names } }, () =>
          attempt({ managed, scope, order, lease, names, signal }),
        )
      } catch (error) {
        if (!(error instanceof IssueFailure)) throw error
        const { message, kind, hostname } = error
        metrics.attempted(kind)
        log.warn({ names, kind, failedName: hostname, reason: message }, 'a certificate was not issued')
        const isOfName = hostname !== null && names.includes(hostname) && (kind === 'failed' || kind === 'refused')
        const failed = isOfName ? holders.filter((holder) => holder.names.includes(hostname)) : due
        const isLast = !isOfName || failed.includes(own)
        const failure = {
          message,
          nextAttemptAt: (failures: number) => nextAttemptAt(retry, error, failures),
          // If the authority is unreachable, the order still exists.
          keepsOrder: !isLast || kind === 'unreachable',
        }
        if (!(await managed.fail(failed, lease, failure))) throw new LostLease()
        if (isLast) return
        dropped.add(hostname)
        order = { ...order, url: '' }
      }
    }
  }

  async function run(managed: ManagedCertificate, signal: AbortSignal): Promise<void> {
    const scope = await managed.find()
    const next = scope && (await decide(managed, scope, signal))
    if (!scope || next !== 'now') return void (next instanceof Date && (await runAgain(managed, next)))
    const lease = { subject: scope.subject, worker: randomLabel(16) }
    const order = await leaseOrder(db, lease, authority.directory)
    if (!order) return runAgain(managed, new Date(Date.now() + busyDelayMs))
    const { lost, stop } = renewLease(() => extendLease(db, lease))
    try {
      await issueWithLease(managed, order, lease, AbortSignal.any([signal, lost]))
    } catch (error) {
      if (!lost.aborted && !(error instanceof LostLease)) throw error
      await runAgain(managed, new Date(Date.now() + busyDelayMs))
    } finally {
      stop()
      await releaseOrder(db, lease)
    }
  }

  const managedOf = (payload: Parameters<Handler<'issue'>['run']>[0]): ManagedCertificate =>
    'platform' in payload
      ? platformCertificate(db, config, payload.platform)
      : domainCertificate(db, config, payload.domainId)

  return {
    concurrency,
    retryDelaysMs,
    run: (payload, { signal }) => run(managedOf(payload), signal),
    async giveUp(payload, error, requireHeld) {
      await requireHeld(db)
      const managed = managedOf(payload)
      const scope = await managed.find()
      if (!scope) return
      log.error({ err: error, subject: scope.subject }, 'the issue job was given up')
      const failure = new IssueFailure('failed', 'Something broke on our side. We will retry automatically.')
      await managed.fail([scope.holders[0]], null, {
        message: failure.message,
        nextAttemptAt: (failures) => nextAttemptAt(retry, failure, failures),
        keepsOrder: true,
      })
    },
  }
}

function earliest(one: Date, other: Date | null): Date {
  return other !== null && other < one ? other : one
}
