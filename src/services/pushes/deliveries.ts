// Deliveries of a repository host to a project's hook: processed one at a time, and each only once.
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
  /** The raw body. It identifies the delivery too, because the delivery id is not signed. */
  text: Buffer
  deliveryId: string | null
}

export type LockedDelivery = {
  project: Project
  /** The identity under which it is stored. */
  key: { projectId: string; delivery: string; digest: Uint8Array<ArrayBuffer> }
  /** The same delivery, if it was received before. */
  earlier: Push | null
}

/** Finds the project of the hook. If it was deleted since the signature check, its hook is gone too. */
export function findHookProject(db: Db, actor: Actor): Promise<Project> {
  return findProject(db, actor, actor.projectIds![0]!).catch((error) => {
    throw error instanceof Fault && error.code === 'not_found' ? new Fault('invalid_signature') : error
  })
}

/**
 * Processes the deliveries of a project one at a time, so that the later one sees the deployment of the earlier one and
 * supersedes it. A delivery over a quota is not stored, so the host can send it again later.
 */
export async function receiveInTurn(
  db: Db,
  actor: Actor,
  { text, deliveryId }: Delivery,
  take: (db: Db, received: LockedDelivery) => Promise<PushResult>,
): Promise<PushResult> {
  const projectId = actor.projectIds![0]!
  const digest = hash('sha256', text, 'buffer')
  const delivery = deliveryId ?? `sha256:${digest.toString('hex')}`
  try {
    return await inTransaction(db, async (db) => {
      // Lock order everywhere: project, hook. A different order could deadlock.
      await shareProject(db, { projectId })
      if ((await lockHook(db, { projectId })).length === 0) throw new Fault('invalid_signature')
      const project = await findHookProject(db, actor)
      const earlier = await db.push.findFirst({ where: { projectId, OR: [{ delivery }, { digest }] } })
      return take(db, { project, key: { projectId, delivery, digest }, earlier })
    })
  } catch (error) {
    // The rollback also undoes the superseding.
    const quota = refusedQuota(error)
    if (!quota) throw error
    return { deployment: null, reason: 'quota_exceeded', detail: quotaFault(quota).message }
  }
}

/** The response to a push or deploy hook that started a deployment. */
export function startedDetail({ id, ref, production, pinned }: DeploymentView): string {
  if (!production) return `${ref} is being deployed as a preview.`
  if (pinned === null) return `${ref} is being deployed to production.`
  return `${ref} is being deployed, but production is pinned to ${pinned}. Promote ${id} to switch.`
}
