// The history of a project's production: what served it, when and why. The newest entry has no end.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import { type PageOf, type PageRequest, pageOf } from '../../platform/database/page.ts'
import { Fault } from '../../platform/errors.ts'
import type { ProductionEntry } from '../../schemas/production.ts'
import { findDeployment } from '../deployments/index.ts'
import type { Actor } from '../identity/index.ts'
import { findProject } from '../projects/index.ts'
import { selectLaggingEdges } from './statements.ts'

type ProductionView = Static<typeof ProductionEntry>

/** Names of the nodes whose edges still send visitors to the previous deployment. */
async function findLaggingEdges(db: Db, projectId: string): Promise<string[]> {
  return (await selectLaggingEdges(db, { projectId })).map(({ name }) => name)
}

export async function listProduction(
  db: Db,
  actor: Actor,
  key: string,
  page: PageRequest,
): Promise<PageOf<ProductionView>> {
  const { id: projectId } = await findProject(db, actor, key)
  const bound = page.after === null ? {} : { [page.order === 'asc' ? 'gt' : 'lt']: parseCursor(page.after) }
  const found = await db.production.findMany({
    where: { projectId, id: bound },
    orderBy: { id: page.order },
    take: page.limit + 1,
  })
  const ids = [...new Set(found.map(({ deploymentId }) => deploymentId))]
  const deployments = await db.deployment.findMany({ where: { id: { in: ids } }, select: { id: true } })
  const existing = new Set(deployments.map(({ id }) => id))
  const isSwitching = found.some(({ until, servedAt }) => until === null && servedAt === null)
  const waitingFor = isSwitching ? await findLaggingEdges(db, projectId) : []
  return pageOf(
    found,
    page,
    (row): ProductionView => ({
      deployment: row.deploymentId,
      deleted: !existing.has(row.deploymentId),
      reason: row.reason as ProductionView['reason'],
      by: row.actor,
      since: row.since.toISOString(),
      servedAt: row.servedAt?.toISOString() ?? null,
      until: row.until?.toISOString() ?? null,
      waitingFor: row.until === null ? waitingFor : [],
    }),
    (row) => [String(row.id)],
  )
}

function parseCursor([id]: string[]): bigint {
  if (!/^\d{1,18}$/.test(id!)) throw new Fault('invalid_cursor')
  return BigInt(id!)
}

/** Whether every edge has switched to the current production of a project, or of a deployment's project. */
export async function isServedBy(
  db: Db,
  actor: Actor,
  { project, id }: { project?: string; id?: string },
): Promise<boolean> {
  const projectId =
    id === undefined ? (await findProject(db, actor, project!)).id : (await findDeployment(db, actor, id)).projectId
  return (await findLaggingEdges(db, projectId)).length === 0
}
