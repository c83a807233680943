// The platform's own certificates: that of its deployments, and that of the API where it is under a name of ours.
import type { Config } from '../../config.ts'
import { enqueue } from '../../jobs/queue.ts'
import { type Db, inTransaction } from '../../platform/database/database.ts'
import {
  addCertificate,
  dropSuperseded,
  type Holder,
  type ManagedCertificate,
  type OrderScope,
  withInService,
} from './managed-certificate.ts'
import { endOrder, leaveOrder } from './orders.ts'

export type Purpose = 'deployments' | 'api'

/** Deployments named on one certificate, with their branches, newest first: a development machine that has more does not open them all. */
const maxLabels = 200

export function platformJob(purpose: Purpose): ManagedCertificate['job'] {
  return { key: `platform ${purpose}`, payload: { platform: purpose } }
}

/** Whether verifiers refuse a wildcard directly below the name, as OpenSSL, Node and browsers do with one label. */
export function refusesWildcard(domain: string): boolean {
  return !domain.includes('.')
}

/** Whether a name on a certificate stands for a host. */
function covers(name: string, host: string): boolean {
  if (!name.startsWith('*.')) return name === host
  return host.slice(host.indexOf('.')) === name.slice(1)
}

/** What the names of the platform's certificates follow from. */
export type PlatformCertificateConfig = Pick<Config, 'acme' | 'managedTlsHost'> & { edge: { domain: string } }

/** Hosts below a name of one label are named one by one, because its wildcard would not be believed. */
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
    // No authority but our own issues for a name of one label, so only there does naming each help.
    if (acme || !refusesWildcard(domain)) return { names: wildcard, zone: domain }
    const own = host ? [host] : []
    return { names: [...new Set([...wildcard, ...own, ...(await labelledHosts(db, domain))])], zone: domain }
  }
  // One label below the deployments' domain, or that domain itself, is on their certificate already.
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
        if (before?.certificateId) await dropSuperseded(db, [before.certificateId])
        await enqueue(db, { kind: 'issue', key: job.key, payload: job.payload, runAt: issued.lookAgainAt })
        return true
      })
    },
    async fail(_holders, lease, failure) {
      return inTransaction(db, async (db) => {
        if (lease && !(await leaveOrder(db, lease, failure))) return false
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
