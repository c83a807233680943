// The state machine of deployments: the table, and the one guarded change that moves a deployment along it.
import { type Db, inTransaction } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { append, type EventType } from '../events/index.ts'
import { type Actor, actorName } from '../identity/index.ts'
import { noteMove } from '../projects/index.ts'
import { queueStatus } from './commit-statuses.ts'
import { type DeploymentView, findDeployment, rowOf, viewDeployment, withProject } from './deployments.ts'
import { lockBuilding, shareProjectOf } from './statements.ts'

type State = DeploymentView['state']

export const initialState: State = 'BUILDING'

export const transitions: { from: State; to: State; when: string; event: EventType }[] = [
  {
    from: 'BUILDING',
    to: 'READY',
    when: 'the build is published, and a server has answered',
    event: 'deployment.ready',
  },
  {
    from: 'BUILDING',
    to: 'ERROR',
    when: 'the build failed, ran out of time or lost its worker, or its server did not answer',
    event: 'deployment.error',
  },
  {
    from: 'BUILDING',
    to: 'CANCELED',
    when: 'a caller canceled it, a newer push superseded it or the account was suspended',
    event: 'deployment.canceled',
  },
]

export const terminalStates: State[] = ['READY', 'ERROR', 'CANCELED']

export const isFinished = (state: string): boolean => terminalStates.some((terminal) => terminal === state)

/** Why a deployment was not built, as its `error` says. */
export type Failure = { code: string; message: string; excerpt?: string; logLine?: number }

/** What a build tells of itself when it has ended. */
export type Told = { steps?: DeploymentView['steps']; warnings?: DeploymentView['warnings'] }

/** `storedBytes`: what it serves. READY is refused if that exceeds the account's quota. */
export type Outcome =
  | ({ to: 'READY'; storedBytes?: number; files?: number | null } & Told)
  | { to: 'CANCELED'; failure?: Failure }
  | ({ to: 'ERROR' } & Told & Failure)

/** How builds end whose account is suspended. */
export const suspended: Failure = {
  code: 'account_suspended',
  message: 'The account was suspended before the build finished. Deploy again once the suspension is lifted.',
}

/**
 * Moves a deployment to its outcome if it is still in the state that the table asks for; null if it was not.
 * A production deployment that becomes READY takes production over in the same transaction, unless a newer one did.
 * `guard` throws in that transaction if it may not be moved.
 */
export async function finishDeployment(
  db: Db,
  urls: Urls,
  id: string,
  { by, guard, ...outcome }: Outcome & { by: string; guard?: ((db: Db) => Promise<void>) | undefined },
): Promise<DeploymentView | null> {
  const step = transitions.find((transition) => transition.to === outcome.to)!
  const failure = outcome.to === 'ERROR' ? outcome : outcome.to === 'CANCELED' ? outcome.failure : null
  return inTransaction(db, async (db) => {
    // The project before its deployment, as its deletion locks them: in another order they could lock each other.
    await shareProjectOf(db, { id })
    await guard?.(db)
    const now = new Date()
    const moved = await db.deployment.updateMany({
      where: { id, state: step.from },
      data: {
        state: step.to,
        finishedAt: now,
        readyAt: step.to === 'READY' ? now : null,
        errorCode: failure?.code ?? null,
        errorMessage: failure?.message ?? null,
        errorExcerpt: failure?.excerpt ?? null,
        errorLogLine: failure?.logLine ?? null,
        ...(outcome.to === 'READY' && { storedBytes: outcome.storedBytes, files: outcome.files }),
        ...(outcome.to !== 'CANCELED' && { steps: outcome.steps, warnings: outcome.warnings }),
      },
    })
    if (moved.count === 0) return null
    const found = await db.deployment.findUniqueOrThrow({ where: { id }, include: withProject })
    const { accountId, projectId } = found
    const row = rowOf(found)
    await queueStatus(db, row)
    if (step.to === 'READY' && row.production && (await takeProduction(db, row))) {
      row.current = true
      await noteMove(db, { projectId, deploymentId: id, reason: 'deployment', by: null })
    }
    const view = viewDeployment(urls, row)
    await append(db, [{ accountId, projectId, type: step.event, actor: by, subject: id, data: view }])
    return view
  })
}

/**
 * Ends all builds of an account, waiting or under way, in one go; `db` is the handle of the suspension's transaction.
 * A build that another transaction begins meanwhile is ended by its worker.
 */
export async function cancelBuildsOf(db: Db, urls: Urls, accountId: string, by: string): Promise<void> {
  const { from, to, event } = transitions.find((transition) => transition.to === 'CANCELED')!
  // All of them before the first change: whoever ends one of them has one row and may want what a change locks.
  await lockBuilding(db, { accountId })
  const ended = await db.deployment.updateManyAndReturn({
    where: { accountId, state: from },
    data: { state: to, finishedAt: new Date(), errorCode: suspended.code, errorMessage: suspended.message },
    include: withProject,
  })
  for (const row of ended) await queueStatus(db, row)
  await append(
    db,
    ended.map((row) => ({
      accountId,
      projectId: row.projectId,
      type: event,
      actor: by,
      subject: row.id,
      data: viewDeployment(urls, rowOf(row)),
    })),
  )
}

/** Whether the deployment serves production now: a newer one that did before stays, and so does one that is pinned. */
async function takeProduction(db: Db, { id, projectId }: { id: string; projectId: string }): Promise<boolean> {
  const taken = await db.project.updateMany({
    where: {
      id: projectId,
      pinnedDeploymentId: null,
      OR: [{ newestProductionId: null }, { newestProductionId: { lt: id } }],
    },
    data: { currentDeploymentId: id, newestProductionId: id },
  })
  return taken.count > 0
}

export async function cancelDeployment(db: Db, urls: Urls, actor: Actor, id: string): Promise<DeploymentView> {
  const row = await findDeployment(db, actor, id)
  const canceled = await finishDeployment(db, urls, row.id, { to: 'CANCELED', by: actorName(actor) })
  if (canceled) return canceled
  const { state } = await findDeployment(db, actor, id)
  throw new Fault('deployment_finished', `The deployment is already ${state}.`)
}
