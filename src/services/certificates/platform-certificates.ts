// The platform's own certificates: one for deployments, and one for the API if we manage its host name.
import type { Config } from '../../config.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import {
  addCertificate,
  deleteSuperseded,
  type Holder,
  type ManagedCertificate,
  type OrderScope,
  withInService,
} from './managed-certificate.ts'
import { endAttempt, endOrder } from './orders.ts'

export type Purpose = 'deployments' | 'api'

/** Maximum number of deployments, newest first, whose hosts and branch hosts a development certificate names. */
const maxLabels = 200

export function platformJob(purpose: Purpose): ManagedCertificate['job'] {
  return { key: `platform ${purpose}`, payload: { platform: purpose } }
}

/** Whether clients refuse a wildcard directly below the name; OpenSSL, Node and browsers do below a single label. */
export function refusesWildcard(domain: string): boolean {
  return !domain.includes('.')
}

/** Whether a certificate name covers a host. */
function covers(name: string, host: string): boolean {
  if (!name.startsWith('*.')) return name === host
  return host.slice(host.indexOf('.')) === name.slice(1)
}

/** The configuration that determines the names on the platform's certificates. */
export type PlatformCertificateConfig = Pick<Config, 'acme' | 'managedTlsHost'> & { edge: { domain: string } }

/** Lists hosts below a single-label domain, whose wildcard clients would refuse. */
async function labelledHosts(db: Db, domain: string): Promise<string[]> {
  const projects = await db.project.findMany({ select: { label: true } })
  const deployments = await db.deployment.findMany({
    where: { state: 'READY' },
    select: { label: true, branchLabel: true },
    orderBy: { id: 'desc' },
    take: maxLabels,
  })
  const branches = deployments.flatMap(({ branchLabel }) => branchLabel ?? [])
  const labels = [...projects, ...deployments].map(({ label }) => label)
  return [...labels, ...branches].map((label) => `${label}.${domain}`)
}

async function namesOf(
  db: Db,
  { acme, managedTlsHost: host, edge }: PlatformCertificateConfig,
  purpose: Purpose,
): Promise<{ names: string[]; zone: string } | null> {
  const domain = edge.domain.toLowerCase()
  const wildcard = [domain, `*.${domain}`]
  if (purpose === 'deployments') {
    // Only the development CA issues for a single-label domain, so only then do we list each host.
    if (acme || !refusesWildcard(domain)) return { names: wildcard, zone: domain }
    const own = host ? [host] : []
    return { names: [...new Set([...wildcard, ...own, ...(await labelledHosts(db, domain))])], zone: domain }
  }
  // The certificate of the deployments already covers their domain and hosts one label below it.
  if (!host || wildcard.some((name) => covers(name, host))) return null
  return { names: [host], zone: domain }
}

export function platformCertificate(db: Db, config: PlatformCertificateConfig, purpose: Purpose): ManagedCertificate {
  const job = platformJob(purpose)

  async function find(): Promise<OrderScope | null> {
    const own = await namesOf(db, config, purpose)
    if (!own) return null
    const row = await db.platformCertificate.findUnique({ where: { purpose }, include: withInService })
    const holder: Holder = {
      key: job.key,
      ...own,
      entitled: true,
      ssl: null,
      failures: row?.failures ?? 0,
      nextAttemptAt: row?.nextAttemptAt ?? null,
      certificate: row?.inService ?? null,
    }
    return { subject: job.key, accountId: null, holders: [holder], extraNames: [] }
  }

  return {
    job,
    find,
    begin: async () => {},
    async install(_scope, lease, issued) {
      return inTransaction(db, async (db) => {
        if (!(await endOrder(db, lease))) return false
        const before = await db.platformCertificate.findUnique({ where: { purpose } })
        const certificateId = await addCertificate(db, null, issued)
        const row = { certificateId, failures: 0, lastError: null, nextAttemptAt: issued.renewAt }
        await db.platformCertificate.upsert({ where: { purpose }, create: { purpose, ...row }, update: row })
        if (before?.certificateId) await deleteSuperseded(db, [before.certificateId])
        await enqueue(db, { kind: 'issue', key: job.key, payload: job.payload, runAt: issued.checkRenewalAt })
        return true
      })
    },
    async fail(_holders, lease, failure) {
      return inTransaction(db, async (db) => {
        if (lease && !(await endAttempt(db, lease, failure))) return false
        const failures = { increment: 1 }
        const lastError = failure.message
        const row = await db.platformCertificate.upsert({
          where: { purpose },
          create: { purpose, failures: 1, lastError },
          update: { failures, lastError },
        })
        const nextAttemptAt = failure.nextAttemptAt(row.failures)
        await db.platformCertificate.update({ where: { purpose }, data: { nextAttemptAt } })
        await enqueue(db, { kind: 'issue', key: job.key, payload: job.payload, runAt: nextAttemptAt })
        return true
      })
    },
    expire: async () => {},
  }
}
