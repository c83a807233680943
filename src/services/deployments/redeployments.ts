// Redeployments of the same commit or uploaded files, with current settings and variables.
import type { Db } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { Actor } from '../identity/index.ts'
import { type DeploymentPlan, findDeployment } from './deployments.ts'
import { findProjectToDeploy } from './plans.ts'
import { readUploaded } from './sources.ts'
import { checkTree, requireWithin, type UploadPlan } from './uploaded.ts'

export type Redeployment = { id: string; region: string; production: boolean | undefined }

/** Whether the deployment consists of uploaded files, of which there may be many. */
export async function isUploaded(db: Db, actor: Actor, id: string): Promise<boolean> {
  return (await findDeployment(db, actor, id)).source === 'upload'
}

/** Plans a redeployment of the commit that was resolved before, even if its branch has moved on. */
export async function planRedeployment(
  db: Db,
  actor: Actor,
  { id, region, production }: Redeployment,
): Promise<DeploymentPlan | UploadPlan> {
  const found = await findDeployment(db, actor, id)
  const { projectId, ref, branchLabel, commit, source, untrusted, production: before } = found
  const project = await findProjectToDeploy(db, actor, projectId)
  const planned = { project, region, production: production ?? before }
  if (source === 'upload') {
    const upload = await db.deploymentSource.findFirst({
      where: { deploymentId: id, accountId: actor.accountId },
      select: { prebuilt: true },
    })
    const files = upload && (await readUploaded(db, id))
    if (!files) throw new Fault('source_incomplete', `Some files of ${id} are missing. Upload them again.`)
    await requireWithin(db, actor.accountId, 'sourceFiles', files.length)
    await checkTree(db, actor.accountId, files)
    return { ...planned, files, prebuilt: upload.prebuilt }
  }
  if (project.repo === '') throw new Fault('project_without_repository', `${project.name} has no repository to build.`)
  return { ...planned, ref, isBranch: branchLabel !== null, commit, source: 'api', untrusted }
}
