// The issue job: check, lock, check again, then get one certificate, and record how it ended.
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import type { Database } from '../../db.ts'
import { randomLabel } from '../../ids.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Handler } from '../../jobs/worker.ts'
import type { Vault } from '../../secrets.ts'
import {
  type AcmeOrder,
  beginOrder,
  extendLease,
  type Lease,
  leaseOrder,
  leaseSeconds,
  publishChallenges,
  releaseOrder,
  setOrderUrl,
} from '../../services/acme.ts'
import { setRenewAt } from '../../services/certificate-jobs.ts'
import type { Ledger, Party, Wanted } from '../../services/certificate-ledger.ts'
import { domainLedger } from '../../services/certificates.ts'
import { platformLedger } from '../../services/platform-certificates.ts'
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
  ledger: Ledger
  wanted: Wanted
  order: AcmeOrder
  lease: Lease
  names: string[]
  signal: AbortSignal
}

// Orders wait for the authority most of the time.
const concurrency = 8
// For faults of our own, such as a database that is away; what the authority refuses has a table of its own.
const retryDelaysMs = [5_000, 30_000, 120_000, 600_000] as const
// Another worker is at it; it will have ended or died by then.
const busyMs = leaseSeconds * 1000 + 1_000

const isWaiting = (party: Party, now: Date) =>
  party.failures > 0 && party.nextAttemptAt !== null && party.nextAttemptAt > now

export function createIssueHandler(options: IssueOptions): Handler<'issue'> {
  const { config, db, vault, log, authority, retry, metrics } = options

  /** A certificate that was good for development only gives way as soon as there is something better. */
  function isOutdated({ certificate }: Party): boolean {
    return certificate !== null && certificate.directory === '' && certificate.issuer !== authority.issuer
  }

  const needs = (party: Party, now: Date) => isDue(party.certificate, party.names, now) || isOutdated(party)

  const runAgain = ({ job }: Ledger, at: Date) => enqueue(db, 'issue', job.key, job.payload, at)

  /** What there is to do: `now`, or nothing before a time, or nothing at all. */
  async function decide(ledger: Ledger, wanted: Wanted, signal: AbortSignal): Promise<'now' | Date | null> {
    const [own] = wanted.parties
    const now = new Date()
    const endAt = own.certificate?.notAfter ?? null
    const isOver = endAt !== null && endAt <= now
    if (isOver && own.ssl === 'ACTIVE') await ledger.expire()
    const noticeAt = own.ssl === 'ACTIVE' && !isOver ? endAt : null
    if (!own.entitled) return noticeAt
    if (isWaiting(own, now)) return earliest(own.nextAttemptAt!, noticeAt)
    if (needs(own, now)) return 'now'
    const certificate = own.certificate!
    const window = await authority.renewalWindow(certificate, signal)
    if (!window) return certificate.renewAt
    const renewAt = earliest(certificate.renewAt, window.at)
    if (renewAt < certificate.renewAt) await setRenewAt(db, certificate.id, renewAt)
    return renewAt <= now ? 'now' : earliest(renewAt, window.askAgainAt)
  }

  /** Who is in one order: the one whose job it is, and its companion unless that has to wait for a failure of its own. */
  function partiesOf({ parties: [own, ...others] }: Wanted, dropped: Set<string>): Party[] {
    const now = new Date()
    const isFree = (party: Party) => !isWaiting(party, now) && !party.names.some((name) => dropped.has(name))
    return [own, ...others.filter((party) => party.entitled && isFree(party))]
  }

  async function attempt({ ledger, wanted, order, lease, names, signal }: Attempt): Promise<void> {
    const platformZone = wanted.accountId === null ? wanted.parties[0].zone : null
    const zones = new Map(wanted.parties.flatMap((party) => party.names.map((name) => [name, party.zone] as const)))
    // Extra names live in the zone of the domain above them.
    const extraZone = wanted.parties.find(({ zone }) => zone !== null)?.zone ?? null
    const { chain, key } = await authority.obtain({
      names,
      zoneOf: (name) => (zones.has(name) ? zones.get(name)! : extraZone),
      replaces: wanted.parties[0].certificate,
      order,
      begin: (key) => beginOrder(db, lease, { names, directory: authority.directory, key: vault.seal(key) }),
      setUrl: (url) => setOrderUrl(db, lease, url),
      publish: (challenges) => publishChallenges(db, lease, challenges, platformZone),
      signal,
    })
    const facts = readChain(chain, key, names)
    const renewAt = plannedRenewal(facts.notBefore, facts.notAfter)
    const lookAgainAt = earliest(renewAt, new Date(Date.now() + authority.askAgainMs))
    const issued = { ...facts, chain, renewAt, lookAgainAt, directory: authority.directory, sealedKey: vault.seal(key) }
    if (!(await ledger.install(wanted, lease, issued))) throw new LostLease()
    metrics.attempted('issued')
    log.info({ names, issuer: facts.issuer, notAfter: facts.notAfter }, 'a certificate was issued')
  }

  /** With the lease in hand. A name that fails costs the others one more order, not their certificate. */
  async function issueUnder(ledger: Ledger, first: AcmeOrder, lease: Lease, signal: AbortSignal): Promise<void> {
    const dropped = new Set<string>()
    for (let order = first; ; ) {
      const wanted = await ledger.find()
      const next = wanted && (await decide(ledger, wanted, signal))
      if (!wanted || next !== 'now') return void (next instanceof Date && (await runAgain(ledger, next)))
      const parties = partiesOf(wanted, dropped)
      const [own] = wanted.parties
      const extra = wanted.extraNames.filter((name) => !dropped.has(name))
      const names = [...parties.flatMap((party) => party.names), ...extra]
      // Shortest first: the host itself before its www.
      names.sort((one, other) => one.length - other.length)
      const needy = parties.filter((party) => needs(party, new Date()))
      await ledger.begin(needy)
      try {
        return await attempt({ ledger, wanted, order, lease, names, signal })
      } catch (error) {
        if (!(error instanceof IssueFailure)) throw error
        const { message, kind, hostname } = error
        metrics.attempted(kind)
        log.warn({ names, kind, failedName: hostname, reason: message }, 'a certificate was not issued')
        const failure = { message, nextAttemptAt: (failures: number) => nextAttemptAt(retry, error, failures) }
        // An order at an authority that is away is still there when it comes back.
        const ended = kind === 'unreachable' ? null : lease
        const isOfName = hostname !== null && names.includes(hostname) && (kind === 'failed' || kind === 'refused')
        const blamed = isOfName ? parties.filter((party) => party.names.includes(hostname)) : needy
        if (!isOfName || blamed.includes(own)) return await ledger.fail(blamed, ended, failure)
        await ledger.fail(blamed, null, failure)
        dropped.add(hostname)
        order = { ...order, url: '' }
      }
    }
  }

  async function run(ledger: Ledger, signal: AbortSignal): Promise<void> {
    const wanted = await ledger.find()
    const next = wanted && (await decide(ledger, wanted, signal))
    if (!wanted || next !== 'now') return void (next instanceof Date && (await runAgain(ledger, next)))
    const lease = { subject: wanted.subject, holder: randomLabel(16) }
    const order = await leaseOrder(db, lease, authority.directory)
    if (!order) return runAgain(ledger, new Date(Date.now() + busyMs))
    const lost = new AbortController()
    const heartbeat = setInterval(
      () =>
        extendLease(db, lease).then(
          (held) => held || lost.abort(new LostLease()),
          () => {},
        ),
      (leaseSeconds * 1000) / 3,
    )
    try {
      await issueUnder(ledger, order, lease, AbortSignal.any([signal, lost.signal]))
    } catch (error) {
      if (!lost.signal.aborted && !(error instanceof LostLease)) throw error
      await runAgain(ledger, new Date(Date.now() + busyMs))
    } finally {
      clearInterval(heartbeat)
      await releaseOrder(db, lease)
    }
  }

  const ledgerOf = (payload: Parameters<Handler<'issue'>['run']>[0]): Ledger =>
    'platform' in payload ? platformLedger(db, config, payload.platform) : domainLedger(db, config, payload.domainId)

  return {
    concurrency,
    retryDelaysMs,
    run: (payload, { signal }) => run(ledgerOf(payload), signal),
    async giveUp(payload, error) {
      const ledger = ledgerOf(payload)
      const wanted = await ledger.find()
      if (!wanted) return
      log.error({ err: error, subject: wanted.subject }, 'the issue job was given up')
      const failure = new IssueFailure('failed', 'Something broke on our side; it will be tried again.')
      await ledger.fail([wanted.parties[0]], null, {
        message: failure.message,
        nextAttemptAt: (failures) => nextAttemptAt(retry, failure, failures),
      })
    },
  }
}

/** Another worker took the order over, because this one was away for too long. */
class LostLease extends Error {
  constructor() {
    super('the lease of the order was lost')
  }
}

function earliest(one: Date, other: Date | null): Date {
  return other !== null && other < one ? other : one
}
