// Deployments in SQL.
import { queueBuilds, queueJobs } from '../../jobs/statements.ts'
import { columnsOf, inserted, omit, pick, selected } from '../../platform/database/columns.ts'
import { boolean, int4, jsonb, optional, statement, text, textArray } from '../../platform/database/statement.ts'
import { eventIn, insertEvent } from '../events/index.ts'
import { isOwned, ownerIn } from '../projects/index.ts'

const toDeploy = pick(columnsOf('Project'), [
  'id',
  'name',
  'repo',
  'productionBranch',
  'followsDefaultBranch',
  'defaultBranch',
  'pinnedDeploymentId',
])

const deployment = columnsOf('Deployment')
const read = omit(deployment, ['productionUntil', 'startCommand'])
const created = pick(
  deployment,
  ['id', 'accountId', 'projectId', 'state', 'ref', 'commit', 'production', 'label', 'branchLabel'],
  ['region', 'source', 'createdAt', 'warnings', 'untrusted'],
)

const projectToDeploy = (by: 'id' | 'name') =>
  statement(`deployments.projectToDeploy.${by}`, {
    reason: 'hot read',
    in: { ...ownerIn, key: text() },
    out: { ...toDeploy, hasAccess: boolean() },
    sql: (p) => `
      SELECT ${selected(toDeploy, 'project')},
        EXISTS (SELECT FROM repository_access a WHERE a.project_id = project.id) AS "hasAccess"
      FROM project
      WHERE ${by} = ${p.key} AND ${isOwned(p, 'account_id', 'id')}`,
  })

/** What POST /deployments needs of the project. */
export const readProjectToDeploy = { byId: projectToDeploy('id'), byName: projectToDeploy('name') }

/**
 * The project cannot be deleted between the read and the insert; no row comes back if the project is gone already, or
 * its account suspended. The second job is written if the project posts commit statuses. A branch that is
 * deployed isn't deleted.
 */
export const createDeploymentRow = statement('deployments.create', {
  reason: 'change with its event and job',
  in: { ...created, queued: boolean(), ...eventIn },
  out: { id: text() },
  sql: (p) => `
    WITH made AS (
      INSERT INTO deployment ${inserted(created, p)}
      FROM project p JOIN account a ON a.id = p.account_id
      WHERE p.id = ${p.projectId} AND a.suspended_at IS NULL FOR KEY SHARE OF p
      RETURNING id, account_id, project_id, production),
    logged AS (${insertEvent(p, 'made')}),
    reopened AS (UPDATE branch SET closed_at = NULL FROM made
      WHERE branch.project_id = made.project_id AND branch.ref = ${p.ref} AND closed_at IS NOT NULL),
    queued AS (${queueBuilds('made', p.eventTrace)} WHERE ${p.queued}),
    told AS (${queueJobs(
      `SELECT 'status', made.id, jsonb_build_object('deploymentId', made.id), now()
      FROM made JOIN push_hook h ON h.project_id = made.project_id WHERE h.status_token IS NOT NULL`,
      p.eventTrace,
    )})
    SELECT id FROM made`,
})

export const readDeployment = statement('deployments.find', {
  reason: 'hot read',
  in: { ...ownerIn, id: text() },
  out: { ...read, project: text(), current: boolean(), pinned: optional(text()) },
  sql: (p) => `
    SELECT ${selected(read, 'd')}, p.name AS project,
      p.current_deployment_id IS NOT DISTINCT FROM d.id AS current, p.pinned_deployment_id AS pinned
    FROM deployment d JOIN project p ON p.id = d.project_id
    WHERE d.id = ${p.id} AND ${isOwned(p, 'd.account_id', 'd.project_id')}`,
})

/** Locks the deployment and its project until the transaction ends; the project first, as its deletion does it. */
export const lockDeployment = statement('deployments.lock', {
  reason: 'row lock',
  in: { ...ownerIn, id: text() },
  out: { id: text() },
  sql: (p) => `
    WITH locked AS (
      SELECT id FROM project WHERE id = (
        SELECT d.project_id FROM deployment d
        WHERE d.id = ${p.id} AND ${isOwned(p, 'd.account_id', 'd.project_id')}) FOR UPDATE)
    SELECT d.id FROM locked JOIN deployment d ON d.project_id = locked.id WHERE d.id = ${p.id} FOR UPDATE OF d`,
})

/** Keeps the project of a deployment from being deleted until the transaction ends. */
export const shareProjectOf = statement('deployments.shareProject', {
  reason: 'row lock',
  in: { id: text() },
  out: { id: text() },
  sql: (p) => `
    SELECT id FROM project WHERE id = (SELECT project_id FROM deployment WHERE id = ${p.id}) FOR KEY SHARE`,
})

/**
 * Locks the deployments of a branch that these sources made and that still build; those that are locked are left out.
 * `before`: only those that are older than this one; null for all.
 */
export const lockSuperseded = statement('deployments.lockSuperseded', {
  reason: 'SKIP LOCKED',
  in: { projectId: text(), ref: text(), before: optional(text()), sources: textArray() },
  out: { id: text() },
  sql: (p) => `
    SELECT id FROM deployment
    WHERE project_id = ${p.projectId} AND ref = ${p.ref} AND source = ANY(${p.sources}) AND state = 'BUILDING'
      AND (${p.before} IS NULL OR id < ${p.before})
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`,
})

/**
 * Locks the deployments of an account that still build, those that end at this moment after their end. Projects come
 * before their deployments, as everywhere.
 */
export const lockBuilding = statement('deployments.lockBuilding', {
  reason: 'row lock',
  in: { accountId: text() },
  out: { id: text() },
  sql: (p) => `
    WITH shared AS MATERIALIZED (
      SELECT id FROM project WHERE id IN (
        SELECT project_id FROM deployment WHERE account_id = ${p.accountId} AND state = 'BUILDING')
      ORDER BY id FOR KEY SHARE)
    SELECT id FROM deployment WHERE project_id = ANY(ARRAY(SELECT id FROM shared)) AND state = 'BUILDING'
    ORDER BY id FOR NO KEY UPDATE`,
})

export type LineToWrite = { index: number; at: Date; stream: string; step: string; text: string; instance?: string }

/**
 * Numbers the lines behind those that are there. `createMany` has another text for every number of lines, and each
 * text would stay prepared on every connection.
 */
export const appendLogLines = statement('deployments.appendLines', {
  reason: 'INSERT … SELECT',
  in: { deploymentId: text(), lines: jsonb<LineToWrite[]>() },
  out: { seq: int4() },
  sql: (p) => `
    WITH last AS (SELECT coalesce(max(seq), 0) AS seq FROM log_line WHERE deployment_id = ${p.deploymentId})
    INSERT INTO log_line (deployment_id, seq, at, stream, step, text, instance)
    SELECT ${p.deploymentId}, last.seq + l.index, l.at, l.stream, l.step, l.text, l.instance
    FROM last, jsonb_to_recordset(${p.lines})
      AS l(index int, at timestamptz, stream text, step text, text text, instance text)
    RETURNING seq`,
})

/** Keeps the newest lines of a server, by a running sum of their lengths. */
export const trimServerLines = statement('deployments.trimLines', {
  reason: 'window function',
  in: { deploymentId: text(), keepBytes: int4() },
  out: { seq: int4() },
  sql: (p) => `
    DELETE FROM log_line WHERE deployment_id = ${p.deploymentId} AND step = 'run' AND seq <= (
      SELECT max(seq) FROM (
        SELECT seq, sum(length(text)) OVER (ORDER BY seq DESC) AS held FROM log_line
        WHERE deployment_id = ${p.deploymentId} AND step = 'run') line
      WHERE held > ${p.keepBytes})
    RETURNING seq`,
})

export const edgeHost = {
  kind: text<'deployment' | 'project' | 'domain'>(),
  name: text(),
  projectId: text(),
  deploymentId: optional(text()),
  /** What serves production is a process. */
  server: boolean(),
  /** Browsers are to stay with HTTPS at the project's domains. */
  hsts: boolean(),
  /** A project that is taken down, or whose account is suspended. */
  barred: boolean(),
  /** The host that visitors of a domain are sent to, and the status. */
  redirectTo: optional(text()),
  redirectStatus: optional(int4()),
  /** Of a project: who sees its deployments at their own hosts, and with what password. */
  protection: text(),
  passwordHash: optional(text()),
  previewVersion: int4(),
  /** Of a project: what a page loads comes from the deployment of the page. */
  skew: boolean(),
  /** A deployment that serves production or has served it. */
  served: boolean(),
  /** Of a project: whether unknown paths get index.html; null where that is as each deployment was detected. */
  spaFallback: optional(boolean()),
  /** Of a project: whether pages are at addresses without .html. */
  cleanUrls: optional(boolean()),
  /** How many instances of its server a project runs. */
  instances: int4(),
  /** Of a project: some edge still sends visitors to what served production before. */
  switching: boolean(),
  /** Of a deployment: the label of its branch. */
  branch: optional(text()),
}

const edgeProject = `'project'::text AS kind, p.label AS name, p.id AS "projectId",
  p.current_deployment_id AS "deploymentId", p.server, p.hsts,
  a.suspended_at IS NOT NULL OR t.id IS NOT NULL AS barred,
  NULL::text AS "redirectTo", NULL::int AS "redirectStatus", p.preview_protection AS protection,
  p.preview_password_hash AS "passwordHash", p.preview_version AS "previewVersion", p.skew_protection AS skew,
  false AS served, CASE WHEN p.spa_fallback THEN true WHEN p.spa_never THEN false END AS "spaFallback",
  p.clean_urls AS "cleanUrls", p.instances,
  EXISTS (SELECT FROM production n WHERE n.project_id = p.id AND n.until IS NULL AND n.served_at IS NULL) AS switching,
  NULL::text AS branch`
const unprotected = `'none', NULL, 0, false`
const edgeProjects = `project p JOIN account a ON a.id = p.account_id
  LEFT JOIN takedown t ON t.project_id = p.id AND t.host IS NULL AND t.ended_at IS NULL`
// Nobody is sent to a name that the account has not proved, or has lost: the domain shows its project then.
const edgeDomain = `'domain', d.name, d.project_id, NULL, false, false, false, r.name,
  CASE WHEN r.id IS NOT NULL THEN d.redirect_status END, ${unprotected}, false, NULL, NULL, 0, false, NULL`
const edgeDomains = 'domain d LEFT JOIN domain r ON r.id = d.redirect_id AND r.verified'
const edgeDeployment = `'deployment', d.label, d.project_id, d.id, false, false, false, NULL, NULL, ${unprotected},
  d.production_until IS NOT NULL, NULL, NULL, 0, false, d.branch_label`

/** One statement, so that projects, domains and deployments are of the same moment. */
export const edgeHosts = statement('deployments.edgeHosts', {
  reason: 'snapshot for an engine',
  in: {},
  out: edgeHost,
  sql: () => `
    SELECT ${edgeProject} FROM ${edgeProjects}
    UNION ALL SELECT ${edgeDomain} FROM ${edgeDomains} WHERE d.verified
    UNION ALL SELECT ${edgeDeployment} FROM deployment d WHERE d.state = 'READY'`,
})

export const touchedEdgeHosts = statement('deployments.touchedEdgeHosts', {
  reason: 'snapshot for an engine',
  in: { subjects: textArray() },
  out: edgeHost,
  sql: (p) => `
    WITH subject AS (SELECT unnest(${p.subjects}) AS key),
    touched AS (
      SELECT key AS id FROM subject
      UNION SELECT d.project_id FROM deployment d JOIN subject s ON s.key = d.id
      UNION SELECT d.project_id FROM domain d JOIN subject s ON s.key = d.name
      UNION SELECT d.project_id FROM domain r JOIN subject s ON s.key = r.name JOIN domain d ON d.redirect_id = r.id
      UNION SELECT p.id FROM project p JOIN subject s ON s.key = p.account_id
      UNION SELECT t.project_id FROM takedown t JOIN subject s ON s.key = t.id)
    SELECT ${edgeProject} FROM ${edgeProjects} JOIN touched ON touched.id = p.id
    UNION ALL SELECT ${edgeDomain} FROM ${edgeDomains} JOIN touched t ON t.id = d.project_id WHERE d.verified
    UNION ALL SELECT ${edgeDeployment} FROM deployment d JOIN subject s ON s.key = d.id WHERE d.state = 'READY'`,
})
