// Queues the missing jobs of those who should have a certificate, and deletes certificates that are not used any more.
import type { Config } from '../../config.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Db } from '../../platform/database/database.ts'
import { unused } from './managed-certificate.ts'
import { platformJob } from './platform-certificates.ts'
import { queueIssuesOfAccount, queueMissingIssues } from './statements.ts'

const hourMs = 3_600_000
const domainsAtOnce = 1_000

/** Jobs commit with what needs them, so this finds something only after a job was given up or rows were restored. */
export async function queueMissingJobs(db: Db): Promise<number> {
  return (await queueMissingIssues(db, {})).length
}

/** Has the certificates of an account looked at now: while it was suspended, none was issued or renewed. */
export async function queueIssuesOf(db: Db, accountId: string): Promise<void> {
  await queueIssuesOfAccount(db, { accountId })
}

/**
 * What a development CA signed is replaced now and not in 60 days, once there is a real authority or another such CA.
 * `issuer` is the name of the development CA in use, if one is.
 */
export async function queueOutdated(db: Db, issuer: string | null): Promise<void> {
  const outdated = { directory: '', ...(issuer !== null && { issuer: { not: issuer } }) }
  for (let after = ''; ; ) {
    const domains = await db.domain.findMany({
      where: { id: { gt: after }, verified: true, certificateFailures: 0, inService: outdated },
      select: { id: true },
      orderBy: { id: 'asc' },
      take: domainsAtOnce,
    })
    const ids = domains.map(({ id }) => id)
    const now = new Date()
    await db.job.updateMany({
      where: { kind: 'issue', key: { in: ids }, failedAt: null, lockedBy: null, runAt: { gt: now } },
      data: { runAt: now },
    })
    if (ids.length < domainsAtOnce) return
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

/** Deletes certificates whose domains were deleted. */
export async function dropUnusedCertificates(db: Db): Promise<void> {
  const createdAt = { lt: new Date(Date.now() - hourMs) }
  await db.certificate.deleteMany({ where: { createdAt, ...unused } })
}

/** The authority wants a certificate renewed earlier than planned. */
export async function setRenewAt(db: Db, id: string, renewAt: Date): Promise<void> {
  await db.certificate.updateMany({ where: { id }, data: { renewAt } })
}
