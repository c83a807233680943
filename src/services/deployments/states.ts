// The state machine of deployments: the transition table, and the guarded change that follows it.
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

/** Why a deployment failed, as in its `error`. */
export type Failure = { code: string; message: string; excerpt?: string; logLine?: number }

/** What a finished build reports about itself. */
export type BuildReport = { steps?: DeploymentView['steps']; warnings?: DeploymentView['warnings'] }

/** `storedBytes`: the size of what it serves. READY is refused if that exceeds the account's quota. */
export type Outcome =
  | ({ to: 'READY'; storedBytes?: number; files?: number | null } & BuildReport)
  | { to: 'CANCELED'; failure?: Failure }
  | ({ to: 'ERROR' } & BuildReport & Failure)

/** The failure of builds of suspended accounts. */
export const suspended: Failure = {
  code: 'account_suspended',
  message: 'The account was suspended before the build finished. Deploy again once the suspension is lifted.',
}

/**
 * Moves a deployment to its outcome, or returns null if the table does not allow it. A production deployment that
 * becomes READY takes over production in the same transaction, unless a newer one did. `guard` can throw in that
 * transaction to prevent the change.
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
    // Lock order everywhere: project, deployment. A different order could deadlock.
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
    if (step.to === 'READY' && row.production && (await claimProduction(db, row))) {
      row.current = true
      await noteMove(db, { projectId, deploymentId: id, reason: 'deployment', by: null })
    }
    const view = viewDeployment(urls, row)
    await append(db, [{ accountId, projectId, type: step.event, actor: by, subject: id, data: view }])
    return view
  })
}

/**
 * Ends all waiting and running builds of an account; `db` must be in the transaction of the suspension. A worker ends
 * builds that start concurrently.
 */
export async function cancelBuildsOf(db: Db, urls: Urls, accountId: string, by: string): Promise<void> {
  const { from, to, event } = transitions.find((transition) => transition.to === 'CANCELED')!
  // Lock all rows before the first change, to avoid a deadlock with transactions that end one of them.
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

/** Makes the deployment serve production. Returns false if a newer or pinned one stays. */
async function claimProduction(db: Db, { id, projectId }: { id: string; projectId: string }): Promise<boolean> {
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
