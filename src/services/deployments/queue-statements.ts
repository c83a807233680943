// The queue of builds in SQL. Its order is that of the functions take_build and build_places.
import { int4, int8, jsonb, optional, statement, text, textArray } from '../../platform/database/statement.ts'

/** The places of those that wait. */
export const queuePlaces = statement('deployments.queuePlaces', {
  reason: 'hot read',
  in: { deploymentIds: textArray() },
  out: { id: text(), position: int8(), place: int8(), running: int8(), allowed: optional(int8()) },
  sql: (p) => `
    SELECT deployment_id AS id, position, place, running, allowed FROM build_places(${p.deploymentIds})`,
})

/** Builds whose log says nothing yet, although they have waited for a while. */
export const unannouncedBuilds = statement('deployments.unannounced', {
  reason: 'subquery',
  in: { noticeableMs: int4(), sinceMs: optional(int4()) },
  out: { id: text() },
  sql: (p) => `
    SELECT j.key AS id FROM job j
    WHERE j.kind = 'build' AND j.failed_at IS NULL AND j.taken_run_at IS NULL
      AND j.created_at <= now() - ${p.noticeableMs} * interval '1 millisecond'
      AND (${p.sinceMs} IS NULL OR j.created_at > now() - ${p.sinceMs} * interval '1 millisecond')
      AND NOT EXISTS (SELECT 1 FROM log_line l WHERE l.deployment_id = j.key)
    ORDER BY j.id LIMIT 1000`,
})

/** Several workers may write the same line, and the build may begin meanwhile: whoever is first stays. */
export const writeFirstLines = statement('deployments.writeFirstLines', {
  reason: 'INSERT … SELECT',
  in: { lines: jsonb<{ deploymentId: string; text: string }[]>() },
  out: { deploymentId: text() },
  sql: (p) => `
    INSERT INTO log_line (deployment_id, seq, at, stream, step, text)
    SELECT d.id, 1, now(), 'system', 'queue', l.text
    FROM jsonb_to_recordset(${p.lines}) AS l("deploymentId" text, text text)
      JOIN deployment d ON d.id = l."deploymentId" AND d.state = 'BUILDING' AND d.started_at IS NULL
    FOR KEY SHARE OF d
    ON CONFLICT DO NOTHING RETURNING deployment_id AS "deploymentId"`,
})

export const buildMinutesUsed = statement('deployments.buildMinutes', {
  reason: 'function of the database',
  in: { accountId: text() },
  out: { used: int8(), max: optional(int8()) },
  sql: (p) => `
    SELECT build_minutes(${p.accountId}) AS used, account_limit(${p.accountId}, 'buildMinutesPerMonth') AS max`,
})
