// Builds that wait: their place in the queue, what their log says of it, and the moment they start. The order itself is
// that of the functions take_build and build_places of the database.
import type { Deployment } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { queueRunning } from './commit-statuses.ts'
import { buildMinutesUsed, queuePlaces, unannouncedBuilds, writeFirstLines } from './queue-statements.ts'

/** Places of those of the deployments that wait; 1 is next. */
export async function queuePositions(db: Db, deploymentIds: string[]): Promise<Map<string, number>> {
  if (deploymentIds.length === 0) return new Map()
  const places = await queuePlaces(db, { deploymentIds })
  return new Map(places.map(({ id, position }) => [id, Number(position)]))
}

/** Records that the build begins; false if the deployment has ended meanwhile. */
export async function startBuild(
  db: Db,
  { id, projectId, createdAt }: Pick<Deployment, 'id' | 'projectId' | 'createdAt'>,
): Promise<boolean> {
  // By the clock of another machine it may have been made a moment later.
  const startedAt = new Date(Math.max(Date.now(), createdAt.getTime()))
  const started = await db.deployment.updateMany({ where: { id, state: 'BUILDING' }, data: { startedAt } })
  if (started.count > 0) await queueRunning(db, { id, projectId })
  return started.count > 0
}

/** What is used up of the account's build minutes of this month, if nothing is left. */
export async function exceededMinutes(db: Db, accountId: string): Promise<{ used: number; max: number } | null> {
  const [found] = await buildMinutesUsed(db, { accountId })
  if (!found || found.max === null || BigInt(found.used) < BigInt(found.max)) return null
  return { used: Number(found.used), max: Number(found.max) }
}

const builds = (count: number) => `${count} ${count === 1 ? 'build' : 'builds'}`
const are = (count: number) => (count === 1 ? 'is' : 'are')

type Place = { position: number; place: number; running: number; allowed: number | null }

/** The first line of the log: `place` is the build's number among those of its account. */
export function describeWait({ position, place, running, allowed }: Place): string {
  const own = place - 1
  const others = position - place
  if (allowed === 0) return 'Waiting: the account may not run builds at the moment.'
  if (allowed !== null && running >= allowed) {
    const ahead = own > 0 ? `, and ${builds(own)} of yours ${are(own)} ahead` : ''
    const most = `the limit of the account`
    return `Waiting for another of your builds to finish: ${builds(running)} ${are(running)} running, ${most}${ahead}.`
  }
  const ahead = [
    ...(others > 0 ? [`${builds(others)} of other accounts`] : []),
    ...(own > 0 ? [`${others > 0 ? own : builds(own)} of yours`] : []),
  ]
  const what = ahead.length > 0 ? `${ahead.join(' and ')} ${are(others + own)} ahead` : 'this build is next'
  return `Waiting for a free build slot: ${what}.`
}

/** A build that starts sooner gets no line about waiting. */
export const noticeableMs = 1_000

/**
 * Writes the first line of every build that has waited for a second and has none. `sinceMs`: of those that were queued
 * within this time; null for all.
 */
export async function announceWaiting(db: Db, sinceMs: number | null): Promise<void> {
  const found = await unannouncedBuilds(db, { noticeableMs, sinceMs })
  if (found.length === 0) return
  const places = await queuePlaces(db, { deploymentIds: found.map(({ id }) => id) })
  const lines = places.map(({ id, position, place, running, allowed }) => ({
    deploymentId: id,
    text: describeWait({
      position: Number(position),
      place: Number(place),
      running: Number(running),
      allowed: allowed === null ? null : Number(allowed),
    }),
  }))
  if (lines.length > 0) await writeFirstLines(db, { lines })
}

/** What the log says when a build starts that had to wait; null if it did not. */
export function describeStart(waitedMs: number): string | null {
  if (waitedMs < noticeableMs) return null
  const seconds = Math.round(waitedMs / 1000)
  return `Build started after ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`}.`
}
