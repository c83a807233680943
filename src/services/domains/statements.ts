// Domains in SQL.
import { insertJob, jobIn, queueJobs } from '../../jobs/statements.ts'
import { columnsOf, inserted, pick, selected } from '../../platform/database/columns.ts'
import { boolean, int4, int8, optional, statement, text, textArray } from '../../platform/database/statement.ts'
import { eventIn, insertEvent } from '../events/index.ts'

/**
 * A list whose length PostgreSQL does not look at. By the length it would find a plan for these very values cheaper, and
 * plan at every call, which takes longer than the read.
 */
const listed = (names: string) => `ARRAY(SELECT unnest(${names}))`

/** The project by name or id, whether a name can be attached to it, and what decides which nameservers it gets. */
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
  out: {
    projectId: text(),
    projectName: text(),
    exists: boolean(),
    taken: boolean(),
    /** The name, or one above it, is attached to a project that the token does not see. */
    outside: boolean(),
    /** Of the host of a wildcard; null if it is not attached. */
    hostPair: optional(textArray()),
    usual: textArray(),
    own: textArray(),
    /** The account has proved a name above. */
    ownedAbove: boolean(),
    here: textArray(),
    below: textArray(),
    rivals: int4(),
  },
  sql: (p) => `
    SELECT p.id AS "projectId", p.name AS "projectName",
      EXISTS (SELECT 1 FROM domain d WHERE d.account_id = ${p.accountId} AND d.name = ${p.name}) AS exists,
      EXISTS (SELECT 1 FROM domain d
        WHERE d.verified AND d.name = ANY(${listed(p.names)}) AND d.account_id <> ${p.accountId})
      OR EXISTS (SELECT 1 FROM domain_hold h
        WHERE h.name = ANY(${listed(p.names)}) AND h.account_id <> ${p.accountId} AND h.until > now()) AS taken,
      EXISTS (SELECT 1 FROM domain d WHERE d.account_id = ${p.accountId} AND d.name = ANY(${listed(p.names)})
        AND d.project_id <> ALL(${p.projectIds})) AS outside,
      (SELECT COALESCE(d.nameservers, '{}') FROM domain d
        WHERE d.account_id = ${p.accountId} AND d.name = ${p.host}) AS "hostPair",
      COALESCE(a.nameservers, '{}') AS usual,
      ARRAY(SELECT c.pair FROM domain_claim c WHERE c.name = ${p.host} AND c.account_id = ${p.accountId}) AS own,
      EXISTS (SELECT 1 FROM domain d
        WHERE d.verified AND d.name = ANY(${listed(p.names)}) AND d.account_id = ${p.accountId}) AS "ownedAbove",
      claims.here, claims.below, claims.rivals
    FROM project p JOIN account a ON a.id = p.account_id, (
      SELECT COALESCE(array_agg(DISTINCT c.pair) FILTER (WHERE c.here), '{}') AS here,
        COALESCE(array_agg(DISTINCT c.pair) FILTER (WHERE NOT c.here), '{}') AS below, count(*)::int AS rivals
      FROM (
        SELECT c.pair, true AS here FROM domain_claim c
        WHERE c.name = ANY(${listed(p.names)}) AND c.account_id <> ${p.accountId}
        UNION ALL SELECT c.pair, false FROM domain_claim_above c
        WHERE c.above = ${p.host} AND c.account_id <> ${p.accountId}) c) claims
    WHERE p.account_id = ${p.accountId} AND (${p.projectIds} IS NULL OR p.id = ANY(${p.projectIds}))
      AND p.id = COALESCE((SELECT n.id FROM project n WHERE n.account_id = ${p.accountId} AND n.name = ${p.projectKey}),
        ${p.projectKey})`,
})

const created = pick(
  columnsOf('Domain'),
  ['id', 'accountId', 'projectId', 'name', 'txtValue', 'nameservers', 'reason'],
  ['nextCheckAt', 'createdAt', 'updatedAt'],
)
const createIn = { ...created, ...eventIn, ...jobIn }

/**
 * `source` reads the rows that the domain depends on, and they are locked against deletion. Nothing raises when the
 * same name is created twice at once, so that the transaction around it can go on.
 */
function createFrom(source: string, p: { [K in keyof typeof createIn]: string }, guard = 'true'): string {
  return `
    WITH source AS (${source} FOR KEY SHARE),
    made AS (
      INSERT INTO domain ${inserted(created, p)}
      FROM source WHERE ${guard} ON CONFLICT DO NOTHING RETURNING id),
    logged AS (${insertEvent(p, 'made')}),
    queued AS (${insertJob(p, 'made')})
    SELECT id FROM made`
}

/** Makes nothing if others have claimed the name, or one above or below it, since their claims were counted. */
export const createDomainRows = statement('domains.create', {
  reason: 'change with its event and job',
  in: { ...createIn, rivals: int4() },
  out: { id: text() },
  sql: (p) =>
    createFrom(
      `SELECT p.id FROM project p WHERE p.id = ${p.projectId}`,
      p,
      `lock_claims_if_known(${p.name}, ${p.accountId}, ${p.rivals})`,
    ),
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
  reason: 'row lock',
  in: { accountId: text(), name: text() },
  out: { id: text() },
  sql: (p) => `SELECT id FROM domain WHERE account_id = ${p.accountId} AND name = ${p.name} FOR UPDATE`,
})

export const checkedDomain = pick(columnsOf('Domain'), [
  'verified',
  'method',
  'nextCheckAt',
  'checkingSince',
  'unprovedSince',
])

/** Locks a domain as `lockDomain` does, and reads what its check depends on in the same statement. */
export const lockCheckedDomain = statement('domains.lock-checked', {
  reason: 'row lock',
  in: { id: text() },
  out: checkedDomain,
  sql: (p) => `
    SELECT ${selected(checkedDomain, 'domain')} FROM domain WHERE id = ${p.id} FOR UPDATE`,
})

/** One transaction at a time for a host, whoever has attached it, and none meanwhile for the names above it. */
export const lockHost = statement('domains.lock-host', {
  reason: 'function of the database',
  in: { host: text() },
  out: { locked: boolean() },
  sql: (p) => `SELECT lock_claims(${p.host}) AS locked`,
})

/** One transaction at a time that gives an account its usual pair of nameservers. */
export const lockPairs = statement('domains.lock-pairs', {
  reason: 'advisory lock',
  in: {},
  out: { locked: boolean() },
  sql: () => `SELECT true AS locked FROM pg_advisory_xact_lock(hashtextextended('nameservers', 0))`,
})

/** Fills in the pair of some claims that were made before there were pairs. */
export const adoptPairs = statement('domains.adopt-pairs', {
  reason: 'several writes in one statement',
  in: { pair: text(), limit: int4() },
  out: { name: text() },
  sql: (p) => `
    WITH chosen AS (
      SELECT c.name, c.account_id FROM domain_claim c WHERE c.pair = '' AND NOT EXISTS (
        SELECT 1 FROM domain_claim o WHERE o.name = c.name AND o.account_id = c.account_id AND o.pair = ${p.pair})
      LIMIT ${p.limit}),
    above AS (
      UPDATE domain_claim_above SET pair = ${p.pair}
      WHERE (name, account_id) IN (SELECT name, account_id FROM chosen) AND pair = '')
    UPDATE domain_claim SET pair = ${p.pair} WHERE (name, account_id) IN (SELECT name, account_id FROM chosen) AND pair = ''
    RETURNING name`,
})

/** Some domains with a nameserver that is not in the pool any more, unless that is what proves them. */
export const readStrays = statement('domains.strays', {
  reason: 'expression of columns',
  in: { pool: textArray(), after: text(), limit: int4() },
  out: { id: text(), accountId: text(), name: text() },
  sql: (p) => `
    SELECT d.id, d.account_id AS "accountId", d.name FROM domain d
    WHERE d.id > ${p.after} AND NOT d.nameservers <@ ${p.pool} AND NOT (d.verified AND d.method = 'nameservers')
    ORDER BY d.id LIMIT ${p.limit}`,
})

/**
 * Has unverified domains checked now, unless their 30 days are over. Those that another transaction has locked are left out, because they are being
 * checked at this moment, and two transactions that wait for each other would deadlock.
 */
function checkNow(which: string): string {
  return `
    WITH due AS (
      UPDATE domain SET next_check_at = now(), checking_since = now()
      WHERE id IN (
        SELECT id FROM domain WHERE NOT verified AND unproved_since > now() - interval '30 days' AND ${which}
        FOR UPDATE SKIP LOCKED)
      RETURNING id)
    ${queueJobs(`SELECT 'verify', id, jsonb_build_object('domainId', id), now() FROM due`)} RETURNING id`
}

/** The domains of an account whose names end in `ending`, unless their checks have ended. */
export const checkNamesBelow = statement('domains.check-below', {
  reason: 'SKIP LOCKED',
  in: { accountId: text(), ending: text() },
  out: { id: int8() },
  sql: (p) =>
    checkNow(`next_check_at IS NOT NULL AND account_id = ${p.accountId}
      AND right(name, length(${p.ending})) = ${p.ending}`),
})

/** The domains of this name, of any account, that have the reason. */
export const checkNamesWithReason = statement('domains.check-reason', {
  reason: 'SKIP LOCKED',
  in: { name: text(), reason: text() },
  out: { id: int8() },
  sql: (p) => checkNow(`name = ${p.name} AND reason = ${p.reason}`),
})

/** Queues a check for each domain whose check is overdue and that has no job. */
export const queueForgottenChecks = statement('domains.check-forgotten', {
  reason: 'INSERT … SELECT',
  in: {},
  out: { id: int8() },
  sql: () =>
    `${queueJobs(`
    SELECT 'verify', d.id, jsonb_build_object('domainId', d.id), now() FROM domain d
    WHERE d.next_check_at < now() - interval '1 minute' AND NOT EXISTS (
      SELECT 1 FROM job j WHERE j.kind = 'verify' AND j.key = d.id AND j.failed_at IS NULL)`)} RETURNING id`,
})
