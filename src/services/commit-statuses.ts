// Commit statuses: which deployment must be told to the repository host, and what became of the telling.
import { type Db, rows, type Sql, sql } from '../db.ts'
import { jobSql } from '../jobs/queue.ts'
import type { PushHookView } from './push-hooks.ts'

/**
 * The insert of a status job, as one more part of the statement that changes a deployment: written if `source`, the
 * part that changes it, has a row whose project_id posts statuses.
 */
export function statusJobSql(deploymentId: string, source: Sql): Sql {
  const due = sql`(SELECT 1 FROM ${source} s JOIN push_hook h ON h.project_id = s.project_id
    WHERE h.status_token IS NOT NULL) AS due`
  return jobSql('status', deploymentId, { deploymentId }, due)
}

export type DueStatus = {
  projectId: string
  project: string
  repo: string
  state: 'BUILDING' | 'READY' | 'ERROR' | 'CANCELED'
  commit: string
  production: boolean
  label: string
  errorCode: string | null
  errorMessage: string | null
  createdAt: Date
  finishedAt: Date | null
  provider: NonNullable<PushHookView['commitStatus']>['provider']
  apiUrl: string
  /** Sealed. */
  token: Uint8Array
  /** A newer deployment of the same commit speaks for it. */
  outdated: boolean
}

/** How a deployment stands now, and where to say so; null if nobody is to be told. */
export async function findDueStatus(db: Db, deploymentId: string): Promise<DueStatus | null> {
  const [due] = await rows<DueStatus>(
    db,
    sql`SELECT p.id AS "projectId", p.name AS project, p.repo, d.state, d.commit, d.production, d.label,
          d.error_code AS "errorCode", d.error_message AS "errorMessage", d.created_at AS "createdAt",
          d.finished_at AS "finishedAt", h.status_provider AS provider, h.status_api_url AS "apiUrl",
          h.status_token AS token,
          EXISTS (SELECT 1 FROM deployment n WHERE n.project_id = d.project_id AND n.id > d.id
                    AND n.commit = d.commit AND n.production = d.production) AS outdated
        FROM deployment d JOIN project p ON p.id = d.project_id JOIN push_hook h ON h.project_id = p.id
        WHERE d.id = ${deploymentId} AND h.status_token IS NOT NULL`,
  )
  return due ?? null
}

/** Notes how a posting went, unless the token was replaced meanwhile: the new one is not to blame. */
export async function recordStatus(db: Db, due: DueStatus, error: string | null): Promise<void> {
  await rows(
    db,
    sql`UPDATE push_hook SET status_error = ${error},
          status_posted_at = CASE WHEN ${error}::text IS NULL THEN now() ELSE status_posted_at END
        WHERE project_id = ${due.projectId} AND status_token = ${Buffer.from(due.token)} RETURNING project_id`,
  )
}
