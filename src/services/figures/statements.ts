// SQL statements of platform figures: the queue and the certificates.
import { isFree } from '../../platform/database/lease.ts'
import { int4, optional, statement, text } from '../../platform/database/statement.ts'

const due = `failed_at IS NULL AND run_at <= now() AND ${isFree('locked_until')}`

export const selectQueue = statement('figures.queue', {
  reason: 'aggregate with a condition',
  in: {},
  out: { kind: text(), waiting: int4(), running: int4(), failed: int4(), oldestSeconds: int4() },
  sql: () => `
    SELECT kind, count(*) FILTER (WHERE ${due})::integer AS waiting,
      count(*) FILTER (WHERE failed_at IS NULL AND locked_until > now())::integer AS running,
      count(*) FILTER (WHERE failed_at IS NOT NULL)::integer AS failed,
      COALESCE(EXTRACT(epoch FROM now() - min(run_at) FILTER (WHERE ${due})), 0)::integer AS "oldestSeconds"
    FROM job
    -- Excludes jobs scheduled for later, which are most of the table.
    WHERE failed_at IS NOT NULL OR run_at <= now() OR locked_until > now() GROUP BY kind`,
})

/** Certificates in service, except those of suspended accounts, which are neither renewed nor served. */
export const selectCertificates = statement('figures.certificates', {
  reason: 'aggregate with a condition',
  in: {},
  out: { earliestSeconds: optional(int4()), failing: int4() },
  sql: () => `
    WITH held AS (
      SELECT d.certificate_id, d.certificate_failures AS failures FROM domain d JOIN account a ON a.id = d.account_id
      WHERE d.verified AND a.suspended_at IS NULL
      UNION ALL SELECT certificate_id, failures FROM platform_certificate)
    SELECT
      (SELECT EXTRACT(epoch FROM min(LEAST(c.not_after, now() + interval '50 years')) - now())::integer
       FROM held JOIN certificate c ON c.id = held.certificate_id) AS "earliestSeconds",
      (SELECT count(*)::integer FROM held WHERE failures > 0) AS failing`,
})
