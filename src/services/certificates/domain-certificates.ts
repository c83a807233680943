// Certificates of domains: which domains share an order, which certificate is in service, and the outcome of attempts.
import type { Account, Certificate, Domain } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { generatedRecords } from '../dns/index.ts'
import { type CertificateView, changeSsl, type DomainView, recordCertificate } from '../domains/index.ts'
import { hostOf, isWildcard, parentsOf } from '../names/index.ts'
import { isWarningDue } from './expiry-warnings.ts'
import {
  addCertificate,
  deleteSuperseded,
  type Failure,
  type Holder,
  type Issued,
  type ManagedCertificate,
  type OrderScope,
  withInService,
} from './managed-certificate.ts'
import { endAttempt, endOrder, type Lease } from './orders.ts'

/** The configuration for views of domains and for generated DNS records. */
export type DomainCertificateConfig = Parameters<typeof changeSsl>[1] & Parameters<typeof generatedRecords>[0]

type DomainRow = Domain & { inService: Omit<Certificate, 'key'> | null; account: Pick<Account, 'suspendedAt'> }

const withAccount = { ...withInService, account: { select: { suspendedAt: true } } } as const

const summaryOf = (row: Domain) => row.certificate as CertificateView | null

function holderOf(row: DomainRow, hosted: boolean): Holder {
  const { nextAttemptAt } = summaryOf(row) ?? {}
  return {
    key: row.id,
    names: [row.name],
    // Every domain has its own zone, which takes precedence over the zone of a parent domain.
    zone: hosted ? hostOf(row.name) : null,
    entitled: row.verified && row.account.suspendedAt === null,
    ssl: row.ssl as DomainView['ssl'],
    failures: row.certificateFailures,
    nextAttemptAt: nextAttemptAt ? new Date(nextAttemptAt) : null,
    certificate: row.inService,
  }
}

/** The name and its parents that can have a zone. */
const zoneNamesOf = (name: string) => [name, ...parentsOf(name)].filter((zone) => !isWildcard(zone))

/** Returns a predicate for names of an account that are in a zone on our nameservers. */
async function readHosted(db: Db, accountId: string, names: string[]): Promise<(name: string) => boolean> {
  const zones = await db.domain.findMany({
    where: { accountId, verified: true, method: 'nameservers', name: { in: names.flatMap(zoneNamesOf) } },
    select: { name: true },
  })
  return (name) => zoneNamesOf(name).some((above) => zones.some((zone) => zone.name === above))
}

/** Removes `www.`, so a host and its www share a certificate. `www.www.` is not removed. */
function baseOf(name: string): string {
  return /^www\.(?!www\.)/.test(name) ? name.slice(4) : name
}

/**
 * Whether our nameservers generate a www record: the hosted zone has no records for www, and neither the account nor a
 * verified owner has attached it. Unverified claims of other accounts don't count, because anybody can make them.
 */
async function hasGeneratedWww(db: Db, config: DomainCertificateConfig, apex: Domain): Promise<boolean> {
  if (isWildcard(apex.name) || apex.name.startsWith('www.')) return false
  const attached = { name: `www.${apex.name}`, OR: [{ verified: true }, { accountId: apex.accountId }] }
  if ((await db.domain.count({ where: attached })) > 0) return false
  const records = await db.dnsRecord.findMany({
    where: { domainId: apex.id, name: 'www' },
    select: { name: true, type: true },
  })
  // A delegated name is not ours to answer.
  if (records.some(({ type }) => type === 'NS')) return false
  return generatedRecords(config, records).some(({ name }) => name === 'www')
}

export function domainCertificate(db: Db, config: DomainCertificateConfig, domainId: string): ManagedCertificate {
  async function find(): Promise<OrderScope | null> {
    const own = await db.domain.findUnique({ where: { id: domainId }, include: withAccount })
    if (!own) return null
    const { accountId } = own
    const base = baseOf(own.name)
    const both = [base, `www.${base}`].filter((name) => name !== own.name)
    const others = await db.domain.findMany({
      where: { accountId, name: { in: both }, verified: true },
      include: withAccount,
    })
    const isHosted = await readHosted(db, accountId, [own.name, ...both])
    const apex = [own, ...others].find(({ name }) => name === base)
    const withWww = apex !== undefined && isHosted(base) && (await hasGeneratedWww(db, config, apex))
    return {
      subject: `${accountId} ${base}`,
      accountId,
      holders: [holderOf(own, isHosted(own.name)), ...others.map((row) => holderOf(row, isHosted(row.name)))],
      extraNames: withWww ? [`www.${base}`] : [],
    }
  }

  async function install({ accountId, holders }: OrderScope, lease: Lease, issued: Issued): Promise<boolean> {
    return inTransaction(db, async (db) => {
      if (!(await endOrder(db, lease))) return false
      // Skip domains that were deleted or unverified in the meantime.
      const ids = holders.map(({ key }) => key)
      const served = await db.domain.findMany({
        where: { id: { in: ids }, verified: true, name: { in: issued.names } },
      })
      if (served.length === 0) return true
      const certificateId = await addCertificate(db, accountId, issued)
      const summary = issuedSummary(issued)
      for (const { id, ssl } of served) {
        await db.domain.updateMany({ where: { id }, data: { certificateId, certificateFailures: 0 } })
        if (ssl !== 'ACTIVE') await changeSsl(db, config, id, { to: 'ISSUING' })
        await changeSsl(db, config, id, { to: 'ACTIVE', certificate: summary })
        await enqueue(db, { kind: 'issue', key: id, payload: { domainId: id }, runAt: issued.checkRenewalAt })
      }
      const superseded = served.flatMap(({ certificateId }) => certificateId ?? [])
      await deleteSuperseded(db, superseded)
      return true
    })
  }

  async function fail(holders: Holder[], lease: Lease | null, failure: Failure): Promise<boolean> {
    return inTransaction(db, async (db) => {
      if (lease && !(await endAttempt(db, lease, failure))) return false
      for (const { key: id } of holders) {
        await db.domain.updateMany({ where: { id }, data: { certificateFailures: { increment: 1 } } })
        const domain = await db.domain.findUnique({ where: { id }, include: withInService })
        if (!domain) continue
        const nextAttemptAt = failure.nextAttemptAt(domain.certificateFailures)
        const summary = {
          ...(summaryOf(domain) ?? emptySummary),
          lastError: failure.message,
          nextAttemptAt: nextAttemptAt.toISOString(),
        }
        const moved = await changeSsl(db, config, id, { to: 'ERROR', certificate: summary })
        const inService = domain.ssl === 'ACTIVE' ? domain.inService : null
        if (!moved) {
          const warns = inService !== null && (await isWarningDue(db, domain, inService))
          await recordCertificate(db, config, id, { certificate: summary, warns })
        }
        // Run the job when the certificate in service expires, if that is before the next attempt.
        const expiresAt = inService?.notAfter
        const isSooner = expiresAt !== undefined && expiresAt < nextAttemptAt
        await enqueue(db, {
          kind: 'issue',
          key: id,
          payload: { domainId: id },
          runAt: isSooner ? expiresAt : nextAttemptAt,
        })
      }
      return true
    })
  }

  return {
    job: { key: domainId, payload: { domainId } },
    find,
    async begin(holders) {
      for (const { key } of holders) await changeSsl(db, config, key, { to: 'ISSUING' })
    },
    install,
    fail,
    async expire() {
      const guard = { inService: { notAfter: { lte: new Date() } } }
      await changeSsl(db, config, domainId, { to: 'EXPIRED', guard })
    },
  }
}

const emptySummary: CertificateView = {
  issuer: null,
  serial: null,
  notBefore: null,
  notAfter: null,
  sans: [],
  lastError: null,
  nextAttemptAt: null,
}

function issuedSummary(issued: Issued): CertificateView {
  return {
    issuer: issued.issuer,
    serial: issued.serial,
    notBefore: issued.notBefore.toISOString(),
    notAfter: issued.notAfter.toISOString(),
    sans: issued.names,
    lastError: null,
    nextAttemptAt: issued.renewAt.toISOString(),
  }
}
