// Finds deployments whose files are still needed on disk. For the system, so there is no owner check.
import { setTimeout as sleep } from 'node:timers/promises'
import type { JobKinds } from '../../../jobs/kinds.ts'
import { type Database, type Db, onConnection, refusedQuota } from '../../../platform/database/database.ts'
import { lockArtifacts, unlockArtifacts } from './artifact-statements.ts'

const askEveryMs = 100

/** The deployments that are served or being built, with their states. All others have ended for good. */
export async function findServed(db: Db, ids: string[]): Promise<Map<string, string>> {
  const found = await db.deployment.findMany({
    where: { id: { in: ids }, state: { in: ['READY', 'BUILDING'] } },
    select: { id: true, state: true },
  })
  return new Map(found.map(({ id, state }) => [id, state]))
}

/** The deployments that a worker builds or will build, including rebuilds to repair a file. */
export async function findToBuild(db: Db, ids: string[]): Promise<Set<string>> {
  const [builds, repairs] = await Promise.all([
    db.job.findMany({ where: { kind: 'build', key: { in: ids }, failedAt: null }, select: { key: true } }),
    db.job.findMany({ where: { kind: 'repair', failedAt: null }, select: { payload: true } }),
  ])
  const repaired = repairs.flatMap(({ payload }) => (payload as JobKinds['repair']).deploymentIds)
  return new Set([...builds.flatMap(({ key }) => key ?? []), ...repaired])
}

export async function findProjects(db: Db, ids: string[]): Promise<Set<string>> {
  const found = await db.project.findMany({ where: { id: { in: ids } }, select: { id: true } })
  return new Set(found.map(({ id }) => id))
}

/** Some served deployments after the given one whose bytes were never counted. */
export async function findUncounted(db: Db, after: string, take: number): Promise<string[]> {
  const where = { id: { gt: after }, state: 'READY', storedBytes: 0 } as const
  const found = await db.deployment.findMany({ where, select: { id: true }, orderBy: { id: 'asc' }, take })
  return found.map(({ id }) => id)
}

/** Counts the bytes of a deployment. Returns false, leaving them uncounted, if the account would exceed its quota. */
export async function countBytes(db: Db, id: string, storedBytes: number): Promise<boolean> {
  try {
    const { count } = await db.deployment.updateMany({ where: { id, storedBytes: 0 }, data: { storedBytes } })
    return count > 0
  } catch (error) {
    if (refusedQuota(error)) return false
    throw error
  }
}

/**
 * Runs `work`, which deletes files of deployments, while no backup reads them and nobody else deletes any. Returns
 * false without running it if they take longer than `waitMs`.
 */
export async function whileNoBackup(
  db: Database,
  waitMs: number,
  work: () => Promise<void>,
  signal?: AbortSignal,
): Promise<boolean> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const done = await onConnection(db, async (connection) => {
      const [lock] = await lockArtifacts(connection, {})
      if (!lock?.locked) return false
      try {
        await work()
      } finally {
        await unlockArtifacts(connection, {})
      }
      return true
    })
    if (done) return true
    if (signal?.aborted || performance.now() >= endMs) return false
    await sleep(askEveryMs)
  }
}
