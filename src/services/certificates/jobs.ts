// Queues jobs that issue certificates, and deletes unused certificates.
import type { Config } from '../../config.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Db } from '../../platform/database/database.ts'
import { unused } from './managed-certificate.ts'
import { platformJob } from './platform-certificates.ts'
import { queueIssuesOfAccount, queueMissingIssues } from './statements.ts'

const hourMs = 3_600_000
const pageSize = 1_000

/** Changes queue their own jobs, so this finds domains only after a failed job or a restore. */
export async function queueMissingJobs(db: Db): Promise<number> {
  return (await queueMissingIssues(db, {})).length
}

/** Queues the certificates of an account whose suspension has ended: none was issued or renewed during it. */
export async function queueIssuesOf(db: Db, accountId: string): Promise<void> {
  await queueIssuesOfAccount(db, { accountId })
}

/**
 * Replaces certificates of another development CA immediately instead of in 60 days. `issuer` is the name of the
 * development CA in use, or null for a real authority.
 */
export async function queueOutdatedIssues(db: Db, issuer: string | null): Promise<void> {
  const outdated = { directory: '', ...(issuer !== null && { issuer: { not: issuer } }) }
  for (let after = ''; ; ) {
    const domains = await db.domain.findMany({
      where: { id: { gt: after }, verified: true, certificateFailures: 0, inService: outdated },
      select: { id: true },
      orderBy: { id: 'asc' },
      take: pageSize,
    })
    const ids = domains.map(({ id }) => id)
    const now = new Date()
    await db.job.updateMany({
      where: { kind: 'issue', key: { in: ids }, failedAt: null, lockedBy: null, runAt: { gt: now } },
      data: { runAt: now },
    })
    if (ids.length < pageSize) return
    after = ids.at(-1)!
  }
}

export async function queuePlatformJobs(db: Db, { managedTlsHost }: Pick<Config, 'managedTlsHost'>): Promise<void> {
  for (const purpose of ['deployments', 'api'] as const) {
    if (purpose === 'api' && !managedTlsHost) continue
    const { key, payload } = platformJob(purpose)
    await enqueue(db, { kind: 'issue', key, payload })
  }
}

/** Deletes certificates that are not in use; new ones may not be linked yet. */
export async function deleteUnusedCertificates(db: Db): Promise<void> {
  const createdAt = { lt: new Date(Date.now() - hourMs) }
  await db.certificate.deleteMany({ where: { createdAt, ...unused } })
}

/** Moves the renewal of a certificate, as requested by the authority (ARI). */
export async function setRenewAt(db: Db, id: string, renewAt: Date): Promise<void> {
  await db.certificate.updateMany({ where: { id }, data: { renewAt } })
}
