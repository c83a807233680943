// What a repository host delivers to the hook of a project: one after another, and each once.
import { hash } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import type { Project, Push } from '../../generated/client.ts'
import { type Db, inTransaction, refusedQuota } from '../../platform/database/database.ts'
import { Fault } from '../../platform/errors.ts'
import type { PushResult as PushResultSchema } from '../../schemas/push-hooks.ts'
import type { DeploymentView } from '../deployments/index.ts'
import type { Actor } from '../identity/index.ts'
import { findProject } from '../projects/index.ts'
import { quotaFault } from '../quotas/index.ts'
import { lockHook, shareProject } from './statements.ts'

export type PushResult = Static<typeof PushResultSchema>

export type Delivery = {
  /** What the host sent: the same text is taken once, also under another delivery id, which nothing signs. */
  text: Buffer
  deliveryId: string | null
}

export type Received = {
  project: Project
  /** How it is remembered. */
  key: { projectId: string; delivery: string; digest: Uint8Array<ArrayBuffer> }
  /** The same delivery, received before. */
  known: Push | null
}

/** The project of the hook. If it was deleted since the signature was checked, its hook is gone too. */
export function findHooked(db: Db, actor: Actor): Promise<Project> {
  return findProject(db, actor, actor.projectIds![0]!).catch((error) => {
    throw error instanceof Fault && error.code === 'not_found' ? new Fault('invalid_signature') : error
  })
}

/**
 * Deliveries of one project take turns: the later one must see the deployment of the earlier one to supersede it. One
 * that would exceed a quota leaves no trace, and can be sent again when there is room.
 */
export async function takeInTurn(
  db: Db,
  actor: Actor,
  { text, deliveryId }: Delivery,
  take: (db: Db, received: Received) => Promise<PushResult>,
): Promise<PushResult> {
  const projectId = actor.projectIds![0]!
  const digest = hash('sha256', text, 'buffer')
  const delivery = deliveryId ?? `sha256:${digest.toString('hex')}`
  try {
    return await inTransaction(db, async (db) => {
      // The project before its hook, as every change of the two locks them: in another order they could lock each other.
      await shareProject(db, { projectId })
      if ((await lockHook(db, { projectId })).length === 0) throw new Fault('invalid_signature')
      const project = await findHooked(db, actor)
      const known = await db.push.findFirst({ where: { projectId, OR: [{ delivery }, { digest }] } })
      return take(db, { project, key: { projectId, delivery, digest }, known })
    })
  } catch (error) {
    // Nothing was superseded either: the transaction is undone as a whole.
    const quota = refusedQuota(error)
    if (!quota) throw error
    return { deployment: null, reason: 'quota_exceeded', detail: quotaFault(quota).message }
  }
}

/** The answer to the repository host or deploy hook that started a deployment. */
export function startedDetail({ id, ref, production, pinned }: DeploymentView): string {
  if (!production) return `${ref} is being deployed as a preview.`
  if (pinned === null) return `${ref} is being deployed to production.`
  return `${ref} is being deployed, but production is pinned to ${pinned}. Promote ${id} to switch.`
}
