// `berth cancel` and `berth redeploy`.
import type { Action } from '../kit/action.ts'
import { finishBuild, startBuild } from '../kit/builds.ts'
import type { Context } from '../kit/context.ts'
import { findDeployment, newestDeployment } from '../kit/deployments.ts'
import { exitCodes, Failure } from '../kit/failures.ts'
import { deploymentOf } from '../kit/messages.ts'
import { requireProject } from '../kit/project.ts'
import { clean } from '../kit/text.ts'

type ProjectOption = { project?: string }

export const cancel: Action<ProjectOption> = async (context, [given], { project }) => {
  const id = given ? (await findDeployment(context, given, project)).id : await newestBuild(context, project)
  const canceled = await deploymentOf(await context.send('POST', `/api/deployments/${encodeURIComponent(id)}/cancel`))
  context.out.say(`Canceled ${clean(canceled.id)} of ${clean(canceled.project)}.`)
  context.out.show(canceled, () => '')
}

async function newestBuild(context: Context, given: string | undefined): Promise<string> {
  const project = await requireProject(context, given)
  const found = await newestDeployment(context, project, 'BUILDING')
  if (!found) throw new Failure(exitCodes.notFound, `${project} has no build in progress.`)
  return found.id
}

type Redeploy = ProjectOption & { prod?: boolean; wait: boolean }

export const redeploy: Action<Redeploy> = async (context, [given], { project, prod, wait }) => {
  const before = given ? await findDeployment(context, given, project) : await newest(context, project)
  const path = `/api/deployments/${encodeURIComponent(before.id)}/redeploy`
  const created = await startBuild(context, path, prod ? { production: true } : {})
  context.out.say(`Redeploying ${clean(before.id)} of ${clean(created.project)}`)
  return finishBuild(context, created, wait)
}

async function newest(context: Context, given: string | undefined) {
  const project = await requireProject(context, given)
  const found = await newestDeployment(context, project)
  if (!found) throw new Failure(exitCodes.notFound, `${project} has no deployments.`)
  return found
}
