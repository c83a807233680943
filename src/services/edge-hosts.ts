// Which host stands for which deployment: the queries behind the edge's snapshot.
import { type Db, rows, sql } from '../db.ts'

/**
 * One host of the platform's own domain or one attached domain.
 * `deployment`: `name` is the label of a READY deployment. `project`: `name` is its production label and
 * `deploymentId` what serves production, if anything does. `domain`: `name` is a verified domain of the project.
 */
export type EdgeHostRow = {
  kind: 'deployment' | 'project' | 'domain'
  name: string
  projectId: string
  deploymentId: string | null
  /** A project whose deployments are processes. */
  server: boolean
  /** Browsers are to stay with HTTPS at the project's domains. */
  hsts: boolean
}

// One statement each, so that hosts, domains and production come from the same moment.

export function readEdgeHosts(db: Db): Promise<EdgeHostRow[]> {
  return rows<EdgeHostRow>(
    db,
    sql`SELECT 'project'::text AS kind, p.label AS name, p.id AS "projectId", p.current_deployment_id AS "deploymentId",
          p.framework = 'node' AS server, p.hsts FROM project p
        UNION ALL SELECT 'domain', d.name, d.project_id, NULL, false, false FROM domain d WHERE d.verified
        UNION ALL SELECT 'deployment', d.label, d.project_id, d.id, false, false FROM deployment d WHERE d.state = 'READY'`,
  )
}

/**
 * The projects that the subjects of events (ids of projects and deployments, names of domains) belong to, each with
 * its domains, and those of the deployments that are READY. What was asked for and does not come back is gone.
 */
export function readTouchedEdgeHosts(db: Db, subjects: string[]): Promise<EdgeHostRow[]> {
  return rows<EdgeHostRow>(
    db,
    sql`WITH subject AS (SELECT unnest(${subjects}::text[]) AS key),
        touched AS (
          SELECT key AS id FROM subject
          UNION SELECT d.project_id FROM deployment d JOIN subject s ON s.key = d.id
          UNION SELECT d.project_id FROM domain d JOIN subject s ON s.key = d.name)
        SELECT 'project'::text AS kind, p.label AS name, p.id AS "projectId", p.current_deployment_id AS "deploymentId",
          p.framework = 'node' AS server, p.hsts FROM project p JOIN touched t ON t.id = p.id
        UNION ALL SELECT 'domain', d.name, d.project_id, NULL, false, false FROM domain d JOIN touched t ON t.id = d.project_id
          WHERE d.verified
        UNION ALL SELECT 'deployment', d.label, d.project_id, d.id, false, false FROM deployment d JOIN subject s ON s.key = d.id
          WHERE d.state = 'READY'`,
  )
}
