// Plans a deployment before its row is written: finds the project, and resolves the ref if the host answers.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { Sound } from '../../platform/fields.ts'
import type { RepositoryAccess } from '../../platform/git/git-remote.ts'
import { hostOf, isRefName, type Repositories } from '../../platform/git/repositories.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import type { CreateDeployment } from '../../schemas/deployments.ts'
import type { Actor } from '../identity/index.ts'
import { checkProjectField, followDefaultBranch, formerlyNamed, isProjectId, openAccess } from '../projects/index.ts'
import type { DeploymentPlan, DeploymentView } from './deployments.ts'
import { describeMissingRef } from './missing-refs.ts'
import { readProjectToDeploy } from './statements.ts'

export type PlanOptions = { repositories: Repositories; vault: Vault; region: string }

/** How long a request waits for one answer of the repository host. */
export const repositoryTimeoutMs = 2_000

/** Finds the fields of the project that a deployment needs. */
export async function findProjectToDeploy(
  db: Db,
  { accountId, projectIds }: Pick<Actor, 'accountId' | 'projectIds'>,
  key: string,
) {
  const read = isProjectId(key) ? readProjectToDeploy.byId : readProjectToDeploy.byName
  const [project] = await read(db, { accountId, projectIds, key })
  if (project) return project
  const former = await formerlyNamed(db, accountId, key)
  const [renamed] = former ? await readProjectToDeploy.byId(db, { accountId, projectIds, key: former }) : []
  if (!renamed) throw new Fault('not_found', `There is no project ${key}.`)
  return renamed
}

type ProjectToDeploy = Awaited<ReturnType<typeof findProjectToDeploy>>

export type RefPlan = DeploymentPlan & { project: ProjectToDeploy }

/** Plans a deployment. Queries the repository, so call it outside any transaction. */
export async function planDeployment(
  db: Db,
  { repositories, vault, region }: PlanOptions,
  { accountId, projectIds }: Actor,
  input: Static<typeof CreateDeployment>,
): Promise<RefPlan> {
  const { project: key, production = false } = input
  const project = await findProjectToDeploy(db, { accountId, projectIds }, key)
  const { repo } = project
  if (repo === '') throw new Fault('project_without_repository', `${project.name} has no repository to build.`)
  const access = project.hasAccess ? await openAccess(db, vault, project.id) : null
  const wanted = input.ref ?? (project.followsDefaultBranch ? 'HEAD' : project.productionBranch)
  const resolution = isRefName(wanted)
    ? await repositories.resolve(repo, wanted, repositoryTimeoutMs, access)
    : 'not_found'
  const plan = { project, production, region, source: 'api' } as const
  if (typeof resolution === 'object') {
    const { found, isBranch, defaultBranch } = resolution
    const named = defaultBranch !== null && followDefaultBranch(project, defaultBranch) ? { repo, defaultBranch } : null
    return { ...plan, ref: wanted === 'HEAD' ? (defaultBranch ?? wanted) : wanted, isBranch, commit: found, named }
  }
  if (resolution === 'not_found') throw await missingRef(repositories, repo, wanted, access)
  // If the host does not answer us, the request still succeeds: the worker retries, or fails with the reason.
  const ref = wanted === 'HEAD' ? (project.defaultBranch ?? wanted) : wanted
  const warnings = resolution === 'unreachable' ? [unreachableWarning(repositories, repo)] : []
  return { ...plan, ref, commit: '', warnings }
}

async function missingRef(repositories: Repositories, repo: string, ref: string, access: RepositoryAccess | null) {
  const branches = await repositories.branches(repo, repositoryTimeoutMs, access)
  const detail = describeMissingRef(repo, ref, branches)
  return new Fault('ref_not_found', detail, {
    errors: [{ in: 'body', pointer: '#/ref', code: 'ref_not_found', detail }],
  })
}

export function unreachableWarning(repositories: Repositories, repo: string): DeploymentView['warnings'][number] {
  const message = `We couldn't reach ${hostOf(repositories, repo)}. The build retries for five minutes.`
  return { code: 'repository_unreachable', message }
}

/** Throws the errors of a new deployment without creating it. */
export async function checkDeployment(
  db: Db,
  options: PlanOptions,
  actor: Actor,
  { project, ref, source }: Sound<Static<typeof CreateDeployment>>,
): Promise<void> {
  await checkProjectField(db, actor, project)
  if (source === undefined && project !== undefined && ref !== undefined)
    await planDeployment(db, options, actor, { project, ref })
}
