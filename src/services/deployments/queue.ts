// Waiting builds: their place in the queue, the log lines about it, and their start. The SQL functions take_build and
// build_places define the order.
import type { Deployment } from '../../generated/client.ts'
import type { Db } from '../../platform/database/database.ts'
import { queueRunning } from './commit-statuses.ts'
import { buildMinutesUsed, queuePlaces, unannouncedBuilds, writeFirstLines } from './queue-statements.ts'

/** The places of the waiting deployments; 1 is next. */
export async function queuePositions(db: Db, deploymentIds: string[]): Promise<Map<string, number>> {
  if (deploymentIds.length === 0) return new Map()
  const places = await queuePlaces(db, { deploymentIds })
  return new Map(places.map(({ id, position }) => [id, Number(position)]))
}

/** Records the start of a build. Returns false if the deployment has ended in the meantime. */
export async function startBuild(
  db: Db,
  { id, projectId, createdAt }: Pick<Deployment, 'id' | 'projectId' | 'createdAt'>,
): Promise<boolean> {
  // With clock skew, it may have been created slightly later on another machine.
  const startedAt = new Date(Math.max(Date.now(), createdAt.getTime()))
  const started = await db.deployment.updateMany({ where: { id, state: 'BUILDING' }, data: { startedAt } })
  if (started.count > 0) await queueRunning(db, { id, projectId })
  return started.count > 0
}

/** The account's build minutes of this month if they are used up, or null. */
export async function exceededMinutes(db: Db, accountId: string): Promise<{ used: number; max: number } | null> {
  const [found] = await buildMinutesUsed(db, { accountId })
  if (!found || found.max === null || BigInt(found.used) < BigInt(found.max)) return null
  return { used: Number(found.used), max: Number(found.max) }
}

const builds = (count: number) => `${count} ${count === 1 ? 'build' : 'builds'}`
const are = (count: number) => (count === 1 ? 'is' : 'are')

type QueuePlace = { position: number; place: number; running: number; allowed: number | null }

/** The first line of the log: `place` is the build's number among those of its account. */
export function describeWait({ position, place, running, allowed }: QueuePlace): string {
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

/** Shorter waits get no log line. */
export const noticeableMs = 1_000

/**
 * Logs the place of every build that has waited for a second and has no log yet. `sinceMs`: only builds queued within
 * this time; null for all.
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

/** The log line when a build starts after a wait; null if it did not wait. */
export function describeStart(waitedMs: number): string | null {
  if (waitedMs < noticeableMs) return null
  const seconds = Math.round(waitedMs / 1000)
  return `Build started after ${seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`}.`
}
