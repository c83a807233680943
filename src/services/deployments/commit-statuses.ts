// Commit statuses: which deployments to report to the repository host, and the results.
import type { Deployment, Project } from '../../generated/client.ts'
import { enqueue } from '../../jobs/queue.ts'
import type { Db } from '../../platform/database/database.ts'
import { repositoryName } from '../../platform/git/repository-address.ts'
import type { deploymentStates } from '../../schemas/deployments.ts'
import type { statusProviders } from '../../schemas/push-hooks.ts'

/** Queues the status job of a deployment that changed, if its project posts commit statuses. */
export async function queueStatus(db: Db, { id, projectId }: { id: string; projectId: string }): Promise<void> {
  const due = await db.pushHook.count({ where: { projectId, statusToken: { not: null } } })
  if (due > 0) await enqueue(db, { kind: 'status', key: id, payload: { deploymentId: id } })
}

/** Queues the status of a starting build, which only GitLab shows. */
export async function queueRunning(db: Db, { id, projectId }: { id: string; projectId: string }): Promise<void> {
  const due = await db.pushHook.count({ where: { projectId, statusProvider: 'gitlab', statusToken: { not: null } } })
  if (due > 0) await enqueue(db, { kind: 'status', key: id, payload: { deploymentId: id } })
}

export type DueStatus = Pick<Project, 'repo'> &
  Pick<
    Deployment,
    | 'projectId'
    | 'ref'
    | 'commit'
    | 'source'
    | 'production'
    | 'label'
    | 'errorCode'
    | 'errorMessage'
    | 'createdAt'
    | 'startedAt'
    | 'finishedAt'
  > & {
    /** The name of the project. */
    project: string
    state: (typeof deploymentStates)[number]
    provider: (typeof statusProviders)[number]
    apiUrl: string
    /** Sealed. */
    token: Uint8Array<ArrayBuffer>
    /** Whether a newer deployment of the same commit replaces its status. */
    outdated: boolean
  }

/** The current status of a deployment and where to post it; null if it is not posted. */
export async function findDueStatus(db: Db, deploymentId: string): Promise<DueStatus | null> {
  const found = await db.deployment.findUnique({
    where: { id: deploymentId },
    include: { project: { include: { pushHook: true } } },
  })
  // The project was deleted between the two statements.
  const hook = found?.project?.pushHook
  if (!found || !hook?.statusToken) return null
  const { projectId, ref, commit, source, production, label, errorCode, errorMessage, project } = found
  const { createdAt, startedAt, finishedAt } = found
  const newer = await db.deployment.count({ where: { projectId, commit, production, id: { gt: deploymentId } } })
  return {
    projectId,
    project: project.name,
    repo: repositoryName(project.repo),
    state: found.state as DueStatus['state'],
    ref,
    commit,
    source,
    production,
    label,
    errorCode,
    errorMessage,
    createdAt,
    startedAt,
    finishedAt,
    provider: hook.statusProvider as DueStatus['provider'],
    apiUrl: hook.statusApiUrl ?? '',
    token: hook.statusToken,
    outdated: newer > 0,
  }
}

/** Records the result of posting a status, unless the token was replaced in the meantime. */
export async function recordStatus(db: Db, due: DueStatus, error: string | null): Promise<void> {
  await db.pushHook.updateMany({
    where: { projectId: due.projectId, statusToken: due.token },
    data: { statusError: error, ...(error === null && { statusPostedAt: new Date() }) },
  })
}
