// Sees to it that whoever should have a certificate has a job that gets or renews it, and that nothing outlives its use.
import type { Config } from '../config.ts'
import { type Db, rows, sql } from '../db.ts'
import { enqueue } from '../jobs/queue.ts'
import { platformJob } from './platform-certificates.ts'

/** Jobs commit with what needs them, so this finds something only after a job was given up or rows were restored. */
export async function queueMissingJobs(db: Db): Promise<number> {
  const queued = await rows(
    db,
    sql`INSERT INTO job (kind, key, payload, run_at)
        SELECT 'issue', d.id, jsonb_build_object('domainId', d.id), COALESCE(c.renew_at, now())
        FROM domain d LEFT JOIN certificate c ON c.id = d.certificate_id
        WHERE d.verified
          AND NOT EXISTS (SELECT 1 FROM job j WHERE j.kind = 'issue' AND j.key = d.id AND j.failed_at IS NULL)
        ON CONFLICT (kind, key) WHERE failed_at IS NULL DO NOTHING RETURNING key`,
  )
  return queued.length
}

/**
 * What a development CA signed is replaced now and not in 60 days, once there is a real authority or another such CA.
 * `issuer` is the name of the development CA in use, if one is.
 */
export async function queueOutdated(db: Db, issuer: string | null): Promise<void> {
  await rows(
    db,
    sql`UPDATE job SET run_at = now() FROM domain d JOIN certificate c ON c.id = d.certificate_id
        WHERE job.kind = 'issue' AND job.key = d.id AND job.failed_at IS NULL AND job.locked_by IS NULL
          AND job.run_at > now() AND d.verified AND d.certificate_failures = 0
          AND c.directory = '' AND c.issuer IS DISTINCT FROM ${issuer}::text RETURNING job.kind`,
  )
}

export async function queuePlatformJobs(db: Db, config: Config): Promise<void> {
  for (const purpose of ['deployments', 'api'] as const) {
    if (purpose === 'api' && !config.managedTlsHost) continue
    const { key, payload } = platformJob(purpose)
    await enqueue(db, 'issue', key, payload)
  }
}

/** Certificates whose domains were deleted. */
export async function dropUnusedCertificates(db: Db): Promise<void> {
  await rows(
    db,
    sql`DELETE FROM certificate c WHERE c.created_at < now() - interval '1 hour'
          AND NOT EXISTS (SELECT 1 FROM domain d WHERE d.certificate_id = c.id)
          AND NOT EXISTS (SELECT 1 FROM platform_certificate p WHERE p.certificate_id = c.id) RETURNING c.id`,
  )
}

/** The authority wants a certificate renewed earlier than planned. */
export async function setRenewAt(db: Db, certificateId: string, renewAt: Date): Promise<void> {
  await rows(
    db,
    sql`UPDATE certificate SET renew_at = ${renewAt}::timestamptz WHERE id = ${certificateId} RETURNING id`,
  )
}
