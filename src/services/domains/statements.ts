// Domains in SQL.
import { insertJob, jobIn, queueJobs } from '../../jobs/statements.ts'
import { boolean, int8, optional, statement, text, textArray, timestamptz } from '../../platform/statement.ts'
import { eventIn, insertEvent } from '../events/statements.ts'

/** The project by name or id, and whether a name can be attached to it. */
export const readAvailability = statement('domains.availability', {
  reason: 'hot read',
  in: {
    accountId: text(),
    projectIds: optional(textArray()),
    projectKey: text(),
    name: text(),
    host: text(),
    names: textArray(),
  },
  out: { projectId: text(), projectName: text(), exists: boolean(), taken: boolean(), hostAttached: boolean() },
  sql: (p) => `
    SELECT p.id AS "projectId", p.name AS "projectName",
      EXISTS (SELECT 1 FROM domain d WHERE d.account_id = ${p.accountId} AND d.name = ${p.name}) AS exists,
      EXISTS (SELECT 1 FROM domain d
        WHERE d.verified AND d.name = ANY(${p.names}) AND d.account_id <> ${p.accountId})
      OR EXISTS (SELECT 1 FROM domain_hold h
        WHERE h.name = ANY(${p.names}) AND h.account_id <> ${p.accountId} AND h.until > now()) AS taken,
      EXISTS (SELECT 1 FROM domain d WHERE d.account_id = ${p.accountId} AND d.name = ${p.host}) AS "hostAttached"
    FROM project p
    WHERE p.account_id = ${p.accountId} AND (${p.projectIds} IS NULL OR p.id = ANY(${p.projectIds}))
      AND p.id = COALESCE((SELECT n.id FROM project n WHERE n.account_id = ${p.accountId} AND n.name = ${p.projectKey}),
        ${p.projectKey})`,
})

const createIn = {
  id: text(),
  accountId: text(),
  projectId: text(),
  name: text(),
  txtValue: text(),
  now: timestamptz(),
  ...eventIn,
  ...jobIn,
}

/**
 * `source` reads the rows that the domain depends on, and they are locked against deletion. Nothing raises when the
 * same name is created twice at once, so that the transaction around it can go on.
 */
function createFrom(source: string, p: { [K in keyof typeof createIn]: string }): string {
  return `
    WITH source AS (${source} FOR KEY SHARE),
    made AS (
      INSERT INTO domain (id, account_id, project_id, name, txt_value, next_check_at, created_at, updated_at)
      SELECT ${p.id}, ${p.accountId}, source.id, ${p.name}, ${p.txtValue}, ${p.now}, ${p.now}, ${p.now}
      FROM source ON CONFLICT DO NOTHING RETURNING id),
    logged AS (${insertEvent(p, 'made')}),
    queued AS (${insertJob(p, 'made')})
    SELECT id FROM made`
}

export const createDomainRows = statement('domains.create', {
  reason: 'change with its event and job',
  in: createIn,
  out: { id: text() },
  sql: (p) => createFrom(`SELECT p.id FROM project p WHERE p.id = ${p.projectId}`, p),
})

/** A wildcard needs its host to be attached to the same account. */
export const createWildcardRows = statement('domains.create-wildcard', {
  reason: 'change with its event and job',
  in: { ...createIn, host: text() },
  out: { id: text() },
  sql: (p) =>
    createFrom(
      `SELECT p.id FROM project p JOIN domain z ON z.account_id = p.account_id AND z.name = ${p.host}
       WHERE p.id = ${p.projectId}`,
      p,
    ),
})

/** Locks the domain, also against rows that refer to it, until the transaction ends. */
export const lockDomain = statement('domains.lock', {
  reason: 'not in Prisma',
  in: { accountId: text(), name: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM domain WHERE account_id = ${p.accountId} AND name = ${p.name} FOR UPDATE`,
})

/** One transaction at a time for a name, whoever has attached it. */
export const lockName = statement('domains.lock-name', {
  reason: 'not in Prisma',
  in: { name: text() },
  out: { locked: boolean() },
  sql: (p) => `
    SELECT true AS locked FROM pg_advisory_xact_lock(hashtextextended('domain ' || ${p.name}, 0))`,
})

/**
 * Has unverified domains checked now. Those that another transaction has locked are left out, because they are being
 * checked at this moment, and two transactions that wait for each other would deadlock.
 */
function checkNow(which: string): string {
  return `
    WITH due AS (
      UPDATE domain SET next_check_at = now(), checking_since = now()
      WHERE id IN (SELECT id FROM domain WHERE NOT verified AND ${which} FOR UPDATE SKIP LOCKED) RETURNING id)
    ${queueJobs(`SELECT 'verify', id, jsonb_build_object('domainId', id), now() FROM due`)} RETURNING id`
}

/** The domains of an account whose names end in `ending`, unless their checks have ended. */
export const checkNamesBelow = statement('domains.check-below', {
  reason: 'not in Prisma',
  in: { accountId: text(), ending: text() },
  out: { id: int8() },
  sql: (p) =>
    checkNow(`next_check_at IS NOT NULL AND account_id = ${p.accountId}
      AND right(name, length(${p.ending})) = ${p.ending}`),
})

/** The domains of this name, of any account, that have the reason. */
export const checkNamesWithReason = statement('domains.check-reason', {
  reason: 'not in Prisma',
  in: { name: text(), reason: text() },
  out: { id: int8() },
  sql: (p) => checkNow(`name = ${p.name} AND reason = ${p.reason}`),
})

/** Queues a check for each domain whose check is overdue and that has no job. */
export const queueForgottenChecks = statement('domains.check-forgotten', {
  reason: 'not in Prisma',
  in: {},
  out: { id: int8() },
  sql: () =>
    `${queueJobs(`
    SELECT 'verify', d.id, jsonb_build_object('domainId', d.id), now() FROM domain d
    WHERE d.next_check_at < now() - interval '1 minute' AND NOT EXISTS (
      SELECT 1 FROM job j WHERE j.kind = 'verify' AND j.key = d.id AND j.failed_at IS NULL)`)} RETURNING id`,
})
