// Uploads in SQL.
import { queueBuilds } from '../../jobs/statements.ts'
import { columnsOf, insertedFrom, omit, pick, selected } from '../../platform/database/columns.ts'
import { boolean, int4, int8, jsonb, optional, statement, text, textArray } from '../../platform/database/statement.ts'

/** Changes of the uploads of an account take turns: what one of them finds missing, the next one does not bring unseen. */
export const lockUploads = statement('uploads.lock', {
  reason: 'lease',
  in: { accountId: text() },
  out: { locked: text() },
  sql: (p) => `SELECT pg_advisory_xact_lock(hashtextextended('uploads ' || ${p.accountId}, 0))::text AS locked`,
})

/** Bytes of the account that wait, but for these contents, or that deployments were built from. */
export const sumBytes = statement('uploads.sumBytes', {
  reason: 'subquery',
  in: { accountId: text(), except: textArray() },
  out: { bytes: int8() },
  sql: (p) => `
    SELECT (COALESCE((SELECT sum(size) FROM upload
        WHERE account_id = ${p.accountId} AND sha256 <> ALL(${p.except}) AND expires_at > now()), 0)
      + COALESCE((SELECT sum(new_bytes) FROM deployment_source WHERE account_id = ${p.accountId}), 0))::bigint AS bytes`,
})

/** Bytes of the contents that no deployment has room for: one that lists them with another size has not. */
export const sumUnreserved = statement('uploads.sumUnreserved', {
  reason: 'list as one parameter',
  in: { accountId: text(), contents: jsonb<readonly { sha256: string; size: number }[]>() },
  out: { bytes: int8() },
  sql: (p) => `
    SELECT COALESCE(sum(c.size), 0)::bigint AS bytes FROM jsonb_to_recordset(${p.contents}) AS c(sha256 text, size bigint)
    WHERE NOT EXISTS (SELECT FROM source_file f
      WHERE f.account_id = ${p.accountId} AND f.sha256 = c.sha256 AND f.size = c.size AND NOT f.present)`,
})

/** A deployment that waits for one of the contents and has another size for it; of these projects, unless null. */
export const findSizeConflict = statement('uploads.findSizeConflict', {
  reason: 'list as one parameter',
  in: {
    accountId: text(),
    projectIds: optional(textArray()),
    contents: jsonb<readonly { sha256: string; size: number }[]>(),
  },
  out: { deploymentId: text(), sha256: text(), size: int8() },
  sql: (p) => `
    SELECT f.deployment_id AS "deploymentId", f.sha256, f.size
    FROM jsonb_to_recordset(${p.contents}) AS c(sha256 text, size bigint)
      JOIN source_file f ON f.account_id = ${p.accountId} AND f.sha256 = c.sha256 AND NOT f.present AND f.size <> c.size
      JOIN deployment d ON d.id = f.deployment_id AND d.state = 'BUILDING'
    WHERE ${p.projectIds} IS NULL OR f.project_id = ANY(${p.projectIds})
    LIMIT 1`,
})

/**
 * Those of the contents that need not be sent again, with their sizes: what an earlier deployment of the project was
 * built from, and what was uploaded for none yet; by this token, unless null.
 */
export const knownContents = statement('uploads.known', {
  reason: 'lateral join',
  in: { accountId: text(), projectId: text(), hashes: textArray(), tokenId: optional(text()) },
  out: { sha256: text(), size: int8(), isNew: boolean() },
  sql: (p) => `
    SELECT h.sha256, COALESCE(f.size, u.size) AS size, f.size IS NULL AS "isNew" FROM unnest(${p.hashes}) AS h(sha256)
      LEFT JOIN LATERAL (SELECT size FROM source_file
        WHERE project_id = ${p.projectId} AND sha256 = h.sha256 AND present LIMIT 1) f ON true
      LEFT JOIN upload u ON u.account_id = ${p.accountId} AND u.sha256 = h.sha256 AND u.complete AND u.expires_at > now()
        AND (${p.tokenId} IS NULL OR u.token_id = ${p.tokenId})
    WHERE COALESCE(f.size, u.size) IS NOT NULL`,
})

/** Keeps the sources of a project from being deleted until the transaction ends, and so their content in the store. */
export const shareSources = statement('uploads.shareSources', {
  reason: 'row lock',
  in: { projectId: text() },
  out: { deploymentId: text() },
  sql: (p) => `
    SELECT deployment_id AS "deploymentId" FROM deployment_source WHERE project_id = ${p.projectId}
    ORDER BY deployment_id FOR KEY SHARE`,
})

const file = columnsOf('SourceFile')
const owner = pick(file, ['deploymentId', 'accountId', 'projectId'])
const content = omit(file, ['deploymentId', 'accountId', 'projectId'])

export type FileToStore = { path: string; sha256: string; size: number; mode: number; present: boolean }

export const createSource = statement('uploads.createSource', {
  reason: 'clock of the database',
  in: {
    deploymentId: text(),
    accountId: text(),
    projectId: text(),
    prebuilt: boolean(),
    missing: int4(),
    newBytes: int8(),
    waitMs: int4(),
  },
  out: { expiresAt: optional(text()) },
  sql: (p) => `
    INSERT INTO deployment_source (deployment_id, account_id, project_id, prebuilt, missing, new_bytes, expires_at)
    VALUES (${p.deploymentId}, ${p.accountId}, ${p.projectId}, ${p.prebuilt}, ${p.missing}, ${p.newBytes},
      CASE WHEN ${p.missing} > 0 THEN now() + ${p.waitMs} * interval '1 millisecond' END)
    RETURNING expires_at::text AS "expiresAt"`,
})

export const addFiles = statement('uploads.addFiles', {
  reason: 'list as one parameter',
  in: { ...owner, files: jsonb<FileToStore[]>() },
  out: { count: int4() },
  sql: ({ files, ...same }) => `
    WITH listed AS (
      INSERT INTO source_file ${insertedFrom(file, `jsonb_to_recordset(${files})`, same)}
      RETURNING 1)
    SELECT count(*)::int AS count FROM listed`,
})

/** Some contents that a deployment waits for. Prisma would read all rows to tell them apart. */
export const readMissing = statement('uploads.missing', {
  reason: 'subquery',
  in: { accountId: text(), deploymentId: text(), limit: int4() },
  out: { sha256: text() },
  sql: (p) => `
    SELECT DISTINCT sha256 FROM source_file
    WHERE account_id = ${p.accountId} AND deployment_id = ${p.deploymentId} AND NOT present
    ORDER BY sha256 LIMIT ${p.limit}`,
})

/** Files of a deployment behind the given path. Read by Prisma, 20,000 of them hold others up for a quarter of a second. */
export const readFiles = statement('uploads.files', {
  reason: 'hot read',
  in: { deploymentId: text(), after: text(), limit: int4() },
  out: content,
  sql: (p) => `
    SELECT ${selected(content, 'source_file')} FROM source_file
    WHERE deployment_id = ${p.deploymentId} AND path > ${p.after} ORDER BY path LIMIT ${p.limit}`,
})

/** The contents have come: deployments that waited for nothing else are queued. Returns those that were waited for. */
export const markPresent = statement('uploads.arrive', {
  reason: 'change with its event and job',
  in: {
    accountId: text(),
    contents: jsonb<readonly { sha256: string; size: number }[]>(),
    waitMs: int4(),
    maxMs: int4(),
    trace: optional(text()),
  },
  out: { sha256: text() },
  sql: (p) => `
    WITH came AS (
      UPDATE source_file f SET present = true
      FROM jsonb_to_recordset(${p.contents}) AS c(sha256 text, size bigint)
      WHERE f.account_id = ${p.accountId} AND f.sha256 = c.sha256 AND f.size = c.size AND NOT f.present
      RETURNING f.deployment_id, f.sha256),
    counted AS (SELECT deployment_id, count(*)::integer AS files FROM came GROUP BY deployment_id),
    moved AS (
      UPDATE deployment_source s SET missing = s.missing - c.files,
        expires_at = CASE WHEN s.missing > c.files THEN LEAST(now() + ${p.waitMs} * interval '1 millisecond',
          d.created_at + ${p.maxMs} * interval '1 millisecond') END
      FROM counted c JOIN deployment d ON d.id = c.deployment_id WHERE s.deployment_id = c.deployment_id
      RETURNING s.deployment_id, s.missing, d.account_id, d.production, d.state),
    queued AS (${queueBuilds(
      `(SELECT deployment_id AS id, account_id, production FROM moved m WHERE missing = 0 AND state = 'BUILDING'
        AND NOT EXISTS (SELECT 1 FROM job j WHERE j.kind = 'build' AND j.key = m.deployment_id)) ready`,
      p.trace,
    )})
    SELECT DISTINCT sha256 FROM came`,
})

/** The store has lost the contents, whoever uploaded them: they are asked for when they are deployed again. */
export const markContentsLost = statement('uploads.markContentsLost', {
  reason: 'several writes in one statement',
  in: { hashes: textArray() },
  out: { files: int4() },
  sql: (p) => `
    WITH gone AS (
      UPDATE source_file SET present = false WHERE sha256 = ANY(${p.hashes}) AND present RETURNING deployment_id),
    counted AS (SELECT deployment_id, count(*)::integer AS files FROM gone GROUP BY deployment_id),
    moved AS (
      UPDATE deployment_source s SET missing = s.missing + c.files FROM counted c
      WHERE s.deployment_id = c.deployment_id RETURNING 1),
    waiting AS (DELETE FROM upload WHERE sha256 = ANY(${p.hashes}) AND complete RETURNING 1)
    SELECT ((SELECT count(*) FROM gone) + (SELECT count(*) FROM waiting))::integer AS files`,
})

/** Hashes of all that the artifact store must keep for uploads, behind the given one. */
export const listNeeded = statement('uploads.needed', {
  reason: 'subquery',
  in: { after: text(), limit: int4() },
  out: { sha256: text() },
  sql: (p) => `
    SELECT sha256 FROM (
      (SELECT DISTINCT sha256 FROM source_file WHERE sha256 > ${p.after} ORDER BY sha256 LIMIT ${p.limit})
      UNION
      (SELECT DISTINCT sha256 FROM upload WHERE complete AND sha256 > ${p.after} ORDER BY sha256 LIMIT ${p.limit})) needed
    ORDER BY sha256 LIMIT ${p.limit}`,
})
