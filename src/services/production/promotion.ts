// Production is pointed at another deployment: by a promotion or a rollback, and pinned there or released.
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { type DeploymentView, findDeploymentToChange, viewDeployment } from '../deployments/index.ts'
import { append, eventOf } from '../events/index.ts'
import { type Actor, actorName } from '../identity/index.ts'
import {
  findBefore,
  findProjectToChange,
  findServed,
  type MoveReason,
  noteMove,
  type ProjectView,
  showProject,
  viewProject,
} from '../projects/index.ts'

/** `beforeId`: what a rollback from there goes to; default: what serves production until now. */
type Promotion = { id: string; pin?: boolean | undefined; reason?: MoveReason; beforeId?: string | null }

/** Points production at a READY deployment, older or newer, without a build. With `pin` it stays there. */
export async function promoteDeployment(
  db: Db,
  urls: Urls,
  actor: Actor,
  { id, pin = false, ...move }: Promotion,
): Promise<DeploymentView> {
  return inTransaction(db, async (db) => {
    const row = await findDeploymentToChange(db, actor, id)
    if (row.state !== 'READY') throw new Fault('deployment_not_ready', `The deployment is ${row.state}, not READY.`)
    const pinned = pin ? row.id : null
    await pinProduction(db, urls, actor, { projectId: row.projectId, deploymentId: pinned })
    if (row.current) return viewDeployment(urls, { ...row, pinned })
    await db.project.update({ where: { id: row.projectId }, data: { currentDeploymentId: row.id } })
    const { projectId, id: deploymentId } = row
    await noteMove(db, { projectId, deploymentId, reason: 'promotion', by: actorName(actor), ...move })
    const data = row.production ? {} : ({ production: true, source: 'promote' } as const)
    if (!row.production) await db.deployment.update({ where: { id: row.id }, data })
    const view = viewDeployment(urls, { ...row, ...data, pinned, current: true })
    await append(db, [eventOf(actor, 'deployment.promoted', { subject: row.id, projectId: row.projectId, data: view })])
    return view
  })
}

/** Pins production, or releases it; the project is locked. An event tells of it if that changes anything. */
async function pinProduction(
  db: Db,
  urls: Urls,
  actor: Actor,
  { projectId, deploymentId }: { projectId: string; deploymentId: string | null },
): Promise<void> {
  const before = await db.project.findUniqueOrThrow({ where: { id: projectId } })
  if (before.pinnedDeploymentId === deploymentId) return
  const data = { pinnedDeploymentId: deploymentId, updatedAt: new Date() }
  const after = await db.project.update({ where: { id: projectId }, data })
  await append(db, [
    eventOf(actor, 'project.updated', { subject: projectId, projectId, data: viewProject(urls, after) }),
  ])
}

/** Has the next production deployment that becomes READY take over again. */
export async function unpinProject(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, precondition }: { key: string; precondition(view: ProjectView): void },
): Promise<void> {
  await inTransaction(db, async (db) => {
    const project = await findProjectToChange(db, actor, key)
    precondition(await showProject(db, urls, project))
    if (project.pinnedDeploymentId === null) throw new Fault('not_found', `${project.name} has no pinned deployment.`)
    await pinProduction(db, urls, actor, { projectId: project.id, deploymentId: null })
  })
}

/** Points production at `to`, or at what served it before the present deployment, and pins it there. */
export async function rollBack(
  db: Db,
  urls: Urls,
  actor: Actor,
  { key, to }: { key: string; to?: string | undefined },
): Promise<DeploymentView> {
  return inTransaction(db, async (db) => {
    const { id: projectId, name } = await findProjectToChange(db, actor, key)
    const served = to === undefined ? await findBefore(db, projectId) : await findServed(db, projectId, to)
    if (!served) {
      const why =
        to === undefined
          ? `No other deployment that still exists has served production of ${name}.`
          : `${to} has never served production of ${name}. Promote it instead.`
      throw new Fault('not_found', why)
    }
    const { deploymentId: id, beforeId } = served
    return promoteDeployment(db, urls, actor, { id, pin: true, reason: 'rollback', beforeId })
  })
}
