// The signing of zones in SQL.
import { queueJobs } from '../../jobs/statements.ts'
import { int8, statement } from '../../platform/statement.ts'

/** Queues a check for each zone whose check is overdue and that has no job. */
export const queueForgottenDnssec = statement('dns.dnssec-forgotten', {
  reason: 'not in Prisma',
  in: {},
  out: { id: int8() },
  sql: () =>
    `${queueJobs(`
    SELECT 'dnssec', s.domain_id, jsonb_build_object('domainId', s.domain_id), now() FROM zone_signing s
    WHERE s.next_check_at < now() - interval '1 minute' AND NOT EXISTS (
      SELECT 1 FROM job j WHERE j.kind = 'dnssec' AND j.key = s.domain_id AND j.failed_at IS NULL)`)} RETURNING id`,
})
