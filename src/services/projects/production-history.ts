// Entries of the history of production: one is begun whenever production goes to another deployment, which ends the last.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import type { ProductionEntry } from '../../schemas/production.ts'
import { selectBefore, trimHistory } from './history-statements.ts'

export type MoveReason = Static<typeof ProductionEntry>['reason']

type Move = {
  projectId: string
  deploymentId: string
  reason: MoveReason
  /** Who asked for it; null for a deployment that took over when it was READY. */
  by: string | null
  /** What a rollback from here goes to; default: what serves production until now. */
  beforeId?: string | null
}

/** Writes down that production goes to another deployment; `db` is the handle of the transaction that has locked the project. */
export async function noteMove(db: Db, { projectId, deploymentId, reason, by, beforeId }: Move): Promise<void> {
  const until = new Date()
  const [ended] = await db.production.updateManyAndReturn({ where: { projectId, until: null }, data: { until } })
  const before = beforeId === undefined ? (ended?.id ?? null) : beforeId === null ? null : BigInt(beforeId)
  await db.production.create({
    data: { projectId, deploymentId, reason, actor: by, since: until, beforeId: before },
  })
  await trimHistory(db, { projectId })
}

/** A deployment to go back to, and the entry that a rollback from there goes to. */
export type Before = { deploymentId: string; beforeId: string | null }

/**
 * What a rollback goes to: what served before the present entry and still exists. A rollback leads from its target on, so
 * that a second one goes further back and not to what was left by the first.
 */
export async function findBefore(db: Db, projectId: string): Promise<Before | null> {
  const [found] = await selectBefore(db, { projectId })
  return found ? { ...found, beforeId: found.beforeId === '0' ? null : found.beforeId } : null
}

/** The last time that a deployment served production of the project. */
export async function findServed(db: Db, projectId: string, deploymentId: string): Promise<Before | null> {
  const found = await db.production.findFirst({ where: { projectId, deploymentId }, orderBy: { id: 'desc' } })
  return found && { deploymentId, beforeId: found.beforeId === null ? null : String(found.beforeId) }
}
