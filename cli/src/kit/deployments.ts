// Finds the deployment a command acts on, and the one in production.
import type { Deployment } from '../../../sdk/src/types.ts'
import type { Context } from './context.ts'
import { exitCodes, Failure } from './failures.ts'
import type { Output } from './output.ts'
import { checkProjectIfEmpty } from './project.ts'
import { fromServer } from './shape.ts'
import { clean } from './text.ts'

/** The deployment with this ID; it must belong to the project, if one is given. */
export async function findDeployment(context: Context, id: string, project?: string): Promise<Deployment> {
  const berth = await context.berth()
  const found = await berth.get('/deployments/{id}', { params: { path: { id } } })
  if (project === undefined || project === found.project) return found
  // The project may be given by ID or by a former name.
  const { name } = await berth.get('/projects/{project}', { params: { path: { project } } })
  if (name === found.project) return found
  throw new Failure(exitCodes.notFound, `${id} is a deployment of ${found.project}, not of ${name}.`)
}

/** The newest deployment of a project; null if it has none. */
export async function newestDeployment(
  context: Context,
  project: string,
  state?: Deployment['state'],
): Promise<Deployment | null> {
  const query = { project: [project], limit: 1, ...(state && { state: [state] }) }
  const page = await (await context.berth()).get('/deployments', { params: { query } })
  const deployments = fromServer(() => [...page.deployments])
  await checkProjectIfEmpty(context, project, deployments)
  return deployments[0] ?? null
}

type Serving = { id: string; waitingFor: string[] }

/** The deployment that serves production, and the nodes that don't serve it yet; null before the first one. */
export async function findServing(context: Context, project: string): Promise<Serving | null> {
  const params = { path: { project }, query: { limit: 1 } }
  const page = await (await context.berth()).get('/projects/{project}/production', { params })
  const [newest] = fromServer(() => [...page.production])
  if (!newest || newest.until !== null) return null
  return { id: newest.deployment, waitingFor: fromServer(() => [...newest.waitingFor]) }
}

/** `to`: the deployment that could take over. */
export function sayPinned(out: Output, pinned: string, to = '<deployment>'): void {
  out.say(`Production is pinned to ${clean(pinned)}. Run \`berth promote ${clean(to)}\` to switch.`)
}
