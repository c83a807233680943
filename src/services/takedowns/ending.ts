// Ends takedowns, at the request of an operator or because nobody can serve the host again.
import type { Static } from '@sinclair/typebox'
import type { Prisma, Takedown } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { viewOf } from '../../platform/database/views.ts'
import type { Urls } from '../../platform/http/urls.ts'
import { Takedown as TakedownSchema } from '../../schemas/takedowns.ts'
import { append, type EventType } from '../events/index.ts'

export type TakedownView = Static<typeof TakedownSchema>

const viewRow = viewOf(TakedownSchema)

export const viewTakedown = (row: Takedown): TakedownView => viewRow(row, { project: row.projectId })

/** Appends an event to the owner's log, which notifies the owner's webhooks and every edge. */
export async function appendTakedownEvent(db: Db, type: EventType, row: Takedown, by: string): Promise<void> {
  const { id, accountId, projectId } = row
  await append(db, [{ accountId, projectId, type, actor: by, subject: id, data: viewTakedown(row) }])
}

/** Ends the matching takedowns that are in force, with an event for each. */
export async function endTakedowns(db: Db, where: Prisma.TakedownWhereInput, by: string): Promise<void> {
  const ended = await db.takedown.updateManyAndReturn({
    where: { AND: [where, { endedAt: null }] },
    data: { endedAt: new Date() },
  })
  for (const row of ended) await appendTakedownEvent(db, 'takedown.ended', row, by)
}

type DeletedDeployments = { projectId: string; labels: readonly string[]; by: string }

/**
 * Ends takedowns of the hosts of deleted deployments, which are never reused. Takedowns of production hosts and domains
 * stay, because their names can be claimed again.
 */
export async function endMootTakedowns(db: Db, urls: Urls, { projectId, labels, by }: DeletedDeployments) {
  const standing = await db.takedown.findMany({
    where: { projectId, host: { not: null }, endedAt: null },
    select: { id: true, host: true },
  })
  if (standing.length === 0) return
  const gone = new Set(labels.map((label) => urls.host(label)))
  const moot = standing.filter(({ host }) => gone.has(host!)).map(({ id }) => id)
  await endTakedowns(db, { id: { in: moot } }, by)
}
