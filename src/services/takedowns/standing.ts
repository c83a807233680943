// Takedowns in force, for the edge and for the owners of the hosts.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import type { TakedownNotice } from '../../schemas/takedowns.ts'
import { namesCovering } from './names.ts'

/** Reads every taken-down host, in the form in which the edge looks them up. */
export async function readTakenDownHosts(db: Db): Promise<Set<string>> {
  const standing = await db.takedown.findMany({ where: { endedAt: null }, select: { hosts: true } })
  return new Set(standing.flatMap(({ hosts }) => hosts))
}

export type TakedownNoticeView = Static<typeof TakedownNotice>

/** The notice to the owner of a host that is taken down itself or with its project, or null. */
export async function findNotice(db: Db, projectId: string, host: string): Promise<TakedownNoticeView | null> {
  const found = await db.takedown.findFirst({
    where: { endedAt: null, OR: [{ host: null, projectId }, { hosts: { hasSome: namesCovering(host) } }] },
    select: { reason: true, createdAt: true },
    orderBy: { id: 'asc' },
  })
  return found && { reason: found.reason, createdAt: found.createdAt.toISOString() }
}
