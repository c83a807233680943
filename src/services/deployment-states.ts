// The state machine of deployments: the table, and the one guarded statement that moves a deployment along it.
import type { Actor } from '../actor.ts'
import type { Config } from '../config.ts'
import { type Db, inTransaction, rows, sql } from '../db.ts'
import { Fault } from '../errors.ts'
import { statusJobSql } from './commit-statuses.ts'
import {
  type DeploymentRow,
  type DeploymentView,
  deploymentColumns,
  findDeployment,
  viewDeployment,
} from './deployments.ts'
import { append, type EventType } from './events.ts'

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
    when: 'a caller canceled it or a newer push superseded it',
    event: 'deployment.canceled',
  },
]

export const terminalStates: State[] = ['READY', 'ERROR', 'CANCELED']

export type Outcome = { to: 'READY' } | { to: 'CANCELED' } | { to: 'ERROR'; code: string; message: string }

/**
 * Moves a deployment to its outcome if it is still in the state that the table asks for; null if it was not.
 * A production deployment that becomes READY takes production over in the same transaction, unless a newer one did.
 */
export async function finishDeployment(
  db: Db,
  config: Config,
  id: string,
  actor: string,
  outcome: Outcome,
): Promise<DeploymentView | null> {
  const step = transitions.find((transition) => transition.to === outcome.to)!
  const failure = outcome.to === 'ERROR' ? outcome : null
  return inTransaction(db, async (db) => {
    const [moved] = await rows<{ projectId: string; production: boolean }>(
      db,
      sql`WITH moved AS (
            UPDATE deployment SET state = ${step.to}, finished_at = now(),
              ready_at = CASE WHEN ${step.to} = 'READY' THEN now() END,
              error_code = ${failure?.code ?? null}, error_message = ${failure?.message ?? null}
            WHERE id = ${id} AND state = ${step.from} RETURNING project_id, production),
          told AS (${statusJobSql(id, sql`moved`)})
          SELECT project_id AS "projectId", production FROM moved`,
    )
    if (!moved) return null
    if (step.to === 'READY' && moved.production) {
      await rows(
        db,
        sql`UPDATE project SET current_deployment_id = ${id}, newest_production_id = ${id}
            WHERE id = ${moved.projectId} AND (newest_production_id IS NULL OR newest_production_id < ${id}) RETURNING id`,
      )
    }
    const [row] = await rows<DeploymentRow>(
      db,
      sql`SELECT ${deploymentColumns} FROM deployment d JOIN project p ON p.id = d.project_id WHERE d.id = ${id}`,
    )
    const view = viewDeployment(config, row!)
    await append(db, [
      { accountId: row!.accountId, projectId: row!.projectId, type: step.event, actor, subject: id, data: view },
    ])
    return view
  })
}

export async function cancelDeployment(db: Db, config: Config, actor: Actor, id: string): Promise<DeploymentView> {
  const row = await findDeployment(db, actor, id)
  const canceled = await finishDeployment(db, config, row.id, actor.tokenId, { to: 'CANCELED' })
  if (canceled) return canceled
  const { state } = await findDeployment(db, actor, id)
  throw new Fault('deployment_finished', `The deployment is ${state} already.`)
}
