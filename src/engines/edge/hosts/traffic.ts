// Counts what visitors ask for, by project and host. The counters of a host are looked up once an hour, not per request.
import { type Counted, createTallies, type Tally } from '../../../platform/observe/tallies.ts'
import { durationBoundsMs, edgeAt, edgeColumns } from '../../../schemas/traffic-columns.ts'
import type { Place } from './targets.ts'

export type Traffic = {
  /** The counters of a host, or those that all further hosts of its project share. */
  of(place: Place): Tally
  /** What was counted since the last time; to be called each minute. */
  take(): Counted[]
}

/** How many hosts of a project have counters of their own in an hour: each is a row that is kept for a year. */
const maxHosts = { production: 50, deployment: 20 }
const otherHosts = ''
const hourMs = 60 * 60_000

type Project = { hosts: Map<string, Tally>; left: typeof maxHosts }

export function createTraffic(now: () => number = Date.now): Traffic {
  const tallies = createTallies(edgeColumns.length)
  const projects = new Map<string, Project>()
  const hourNow = () => Math.floor(now() / hourMs)
  let hour = hourNow()

  function find({ name, kind, host: { projectId } }: Place): Tally {
    // A name that is taken down counts for nobody.
    if (projectId === '') return tallies.nobody
    const project = projects.get(projectId) ?? { hosts: new Map(), left: { ...maxHosts } }
    projects.set(projectId, project)
    const known = project.hosts.get(name)
    if (known) return known
    const alone = project.left[kind]-- > 0
    const tally = (!alone && project.hosts.get(otherHosts)) || tallies.create(projectId, alone ? name : otherHosts)
    project.hosts.set(tally.host, tally)
    return tally
  }

  return {
    of(place) {
      if (place.tally === null || place.hour !== hour) {
        place.tally = find(place)
        place.hour = hour
      }
      return place.tally
    },
    take() {
      const taken = tallies.take()
      if (hour !== hourNow()) {
        hour = hourNow()
        projects.clear()
      }
      return taken
    },
  }
}

/** `beganMs`: how long it took until the answer began; null for what has no such time. */
export function countAnswer(tally: Tally, status: number, bytes: number, beganMs: number | null): void {
  const counts = tally.open()
  // Servers of customers answer with any number up to 999; above 599 none is defined, and clients take it for a failure.
  counts[edgeAt.status + Math.min(5, Math.trunc(status / 100))]! += 1
  counts[edgeAt.bytes]! += bytes
  if (beganMs === null) return
  let bucket = 0
  while (bucket < durationBoundsMs.length && beganMs > durationBoundsMs[bucket]!) bucket++
  counts[edgeAt.durations + bucket]! += 1
  counts[edgeAt.durationUs]! += beganMs * 1000
}
