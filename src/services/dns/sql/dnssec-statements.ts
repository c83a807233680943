// The signing of zones in SQL.
import { queueJobs } from '../../../jobs/statements.ts'
import { boolean, int8, optional, statement, text, timestamptz } from '../../../platform/database/statement.ts'

/** Queues a check for each zone whose check is overdue and that has no job. */
export const queueForgottenDnssec = statement('dns.dnssec-forgotten', {
  reason: 'INSERT … SELECT',
  in: {},
  out: { id: int8() },
  sql: () =>
    `${queueJobs(`
    SELECT 'dnssec', s.domain_id, jsonb_build_object('domainId', s.domain_id), now() FROM zone_signing s
    WHERE s.next_check_at < now() - interval '1 minute' AND NOT EXISTS (
      SELECT 1 FROM job j WHERE j.kind = 'dnssec' AND j.key = s.domain_id AND j.failed_at IS NULL)`)} RETURNING id`,
})

/** What decides whether a zone is to be signed, and when its parent is asked next. */
export const selectSigningWish = statement('dns.signing-wish', {
  reason: 'join in one statement',
  in: { domainId: text() },
  out: {
    name: text(),
    verified: boolean(),
    method: optional(text()),
    dnssec: optional(boolean()),
    dnssecState: text(),
    nextCheckAt: optional(timestamptz()),
  },
  sql: (p) => `
    SELECT d.name, d.verified, d.method, d.dnssec, d.dnssec_state AS "dnssecState", s.next_check_at AS "nextCheckAt"
    FROM domain d LEFT JOIN zone_signing s ON s.domain_id = d.id WHERE d.id = ${p.domainId}`,
})

/** Changes whenever anything does that decides about the signing of a zone, but its records. */
export const selectSigningVersion = statement('dns.signing-version', {
  reason: 'subquery',
  in: { domainId: text() },
  out: { version: text() },
  sql: (p) => `
    SELECT concat_ws(' ', d.dnssec, d.dnssec_state, d.dnssec_denial, d.foreign_keys, d.verified, d.method, d.project_id, '/', s.xmin,
      (SELECT string_agg(concat(k.id, k.xmin), ' ' ORDER BY k.id) FROM zone_key k WHERE k.domain_id = d.id)) AS version
    FROM domain d LEFT JOIN zone_signing s ON s.domain_id = d.id WHERE d.id = ${p.domainId}`,
})
