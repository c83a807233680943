// The takedowns that stand: for the edge, which answers none of these hosts, and for the owner of one of them.
import type { Static } from '@sinclair/typebox'
import type { Db } from '../../platform/database/database.ts'
import type { TakedownNotice } from '../../schemas/takedowns.ts'
import { namesCovering } from './names.ts'

/** Every name that is taken down, in the form in which the edge looks hosts up. */
export async function readTakenDownHosts(db: Db): Promise<Set<string>> {
  const standing = await db.takedown.findMany({ where: { endedAt: null }, select: { hosts: true } })
  return new Set(standing.flatMap(({ hosts }) => hosts))
}

export type TakedownNoticeView = Static<typeof TakedownNotice>

/** What the owner is told of a host that is taken down, by its name or with its whole project; null if it is not. */
export async function findNotice(db: Db, projectId: string, host: string): Promise<TakedownNoticeView | null> {
  const found = await db.takedown.findFirst({
    where: { endedAt: null, OR: [{ host: null, projectId }, { hosts: { hasSome: namesCovering(host) } }] },
    select: { reason: true, createdAt: true },
    orderBy: { id: 'asc' },
  })
  return found && { reason: found.reason, createdAt: found.createdAt.toISOString() }
}
