// SQL statements of certificates: leases of orders, and the certificates in service.
import { queueJobs } from '../../jobs/statements.ts'
import { isFree, leaseEnd } from '../../platform/database/lease.ts'
import {
  boolean,
  bytea,
  int4,
  optional,
  statement,
  text,
  textArray,
  timestamptz,
} from '../../platform/database/statement.ts'

export const leasedOrder = {
  subject: text(),
  names: textArray(),
  directory: text(),
  url: text(),
  key: optional(bytea()),
}

export const acquireOrder = statement('certificates.acquireOrder', {
  reason: 'lease',
  in: { subject: text(), worker: text(), directory: text() },
  out: leasedOrder,
  sql: (p) => `
    INSERT INTO acme_order (subject, names, directory, leased_by, leased_until)
    VALUES (${p.subject}, '{}', ${p.directory}, ${p.worker}, ${leaseEnd()})
    ON CONFLICT (subject) DO UPDATE SET leased_by = excluded.leased_by, leased_until = excluded.leased_until
    WHERE ${isFree('acme_order.leased_until')}
    RETURNING subject, names, directory, url, key`,
})

export const renewOrder = statement('certificates.renewOrder', {
  reason: 'lease',
  in: { subject: text(), worker: text() },
  out: { subject: text() },
  sql: (p) => `
    UPDATE acme_order SET leased_until = ${leaseEnd()}
    WHERE subject = ${p.subject} AND leased_by = ${p.worker} RETURNING subject`,
})

export const queueIssuesOfAccount = statement('certificates.queueOfAccount', {
  reason: 'INSERT … SELECT',
  in: { accountId: text() },
  out: { key: text() },
  sql: (p) =>
    `${queueJobs(`
    SELECT 'issue', d.id, jsonb_build_object('domainId', d.id), now() FROM domain d
    WHERE d.verified AND d.account_id = ${p.accountId}`)} RETURNING key`,
})

/**
 * One insert for all verified domains without a job, except those of suspended accounts. Prisma has no relation from
 * jobs to domains.
 */
export const queueMissingIssues = statement('certificates.queueMissing', {
  reason: 'INSERT … SELECT',
  in: {},
  out: { key: text() },
  sql: () =>
    `${queueJobs(`
    SELECT 'issue', d.id, jsonb_build_object('domainId', d.id), COALESCE(c.renew_at, now())
    FROM domain d JOIN account a ON a.id = d.account_id LEFT JOIN certificate c ON c.id = d.certificate_id
    WHERE d.verified AND a.suspended_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM job j WHERE j.kind = 'issue' AND j.key = d.id AND j.failed_at IS NULL)`)} RETURNING key`,
})

/**
 * The certificate of a verified domain, under the domain's name, or one of the platform's own, under the first of its
 * names.
 */
export const servedState = { name: text(), platform: boolean(), id: text() }

export const servedCertificate = {
  ...servedState,
  names: textArray(),
  /** PEM, the certificate itself first. */
  chain: text(),
  /** PEM, sealed. */
  key: bytea(),
  notAfter: timestamptz(),
}

// The platform keeps old certificates for a while. Of those with the same first name, the newest counts.
const platformOrder = 'c.names[1], c.created_at DESC, c.id DESC'

export const selectPlatformStates = statement('certificates.platformStates', {
  reason: 'snapshot for an engine',
  in: {},
  out: servedState,
  sql: () => `
    SELECT DISTINCT ON (c.names[1]) c.names[1] AS name, true AS platform, c.id FROM certificate c
    WHERE c.account_id IS NULL AND c.names[1] IS NOT NULL ORDER BY ${platformOrder}`,
})

export const selectDomainStates = statement('certificates.domainStates', {
  reason: 'snapshot for an engine',
  in: { after: text(), limit: int4() },
  out: servedState,
  sql: (p) => `
    SELECT d.name, false AS platform, d.certificate_id AS id FROM domain d
    WHERE d.verified AND d.certificate_id IS NOT NULL AND d.name > ${p.after} ORDER BY d.name LIMIT ${p.limit}`,
})

export const selectServed = statement('certificates.served', {
  reason: 'snapshot for an engine',
  in: { names: textArray() },
  out: servedCertificate,
  sql: (p) => `
    (SELECT DISTINCT ON (c.names[1]) c.names[1] AS name, true AS platform,
       c.id, c.names, c.chain, c.key, c.not_after AS "notAfter" FROM certificate c
     WHERE c.account_id IS NULL AND c.names[1] = ANY(${p.names}) ORDER BY ${platformOrder})
    UNION ALL SELECT d.name, false, c.id, c.names, c.chain, c.key, c.not_after
    FROM domain d JOIN certificate c ON c.id = d.certificate_id WHERE d.verified AND d.name = ANY(${p.names})`,
})
