// Counts requests by project and host. The counters of a host are looked up once an hour, not per request.
import { type Counted, createTallies, type Tally } from '../../../platform/observe/tallies.ts'
import { durationBoundsMs, edgeAt, edgeColumns } from '../../../schemas/traffic-columns.ts'
import type { HostEntry } from './targets.ts'

export type Traffic = {
  /** The counters of a host. Beyond a limit, the remaining hosts of a project share one set. */
  of(entry: HostEntry): Tally
  /** Returns the counts since the last call; called every minute. */
  take(): Counted[]
}

/** How many hosts of a project get their own counters per hour: each one is a row stored for a year. */
const maxHosts = { production: 50, deployment: 20 }
const otherHosts = ''
const hourMs = 60 * 60_000

type Project = { hosts: Map<string, Tally>; remaining: typeof maxHosts }

export function createTraffic(now: () => number = Date.now): Traffic {
  const tallies = createTallies(edgeColumns.length)
  const projects = new Map<string, Project>()
  const hourNow = () => Math.floor(now() / hourMs)
  let hour = hourNow()

  function find({ name, kind, host: { projectId } }: HostEntry): Tally {
    // Names that are taken down count for nobody.
    if (projectId === '') return tallies.nobody
    const project = projects.get(projectId) ?? { hosts: new Map(), remaining: { ...maxHosts } }
    projects.set(projectId, project)
    const known = project.hosts.get(name)
    if (known) return known
    const isSeparate = project.remaining[kind]-- > 0
    const tally =
      (!isSeparate && project.hosts.get(otherHosts)) || tallies.create(projectId, isSeparate ? name : otherHosts)
    project.hosts.set(tally.host, tally)
    return tally
  }

  return {
    of(entry) {
      if (entry.tally === null || entry.hour !== hour) {
        entry.tally = find(entry)
        entry.hour = hour
      }
      return entry.tally
    },
    take() {
      const counted = tallies.take()
      if (hour !== hourNow()) {
        hour = hourNow()
        projects.clear()
      }
      return counted
    },
  }
}

/** `beganMs` is the time until the response began; null if that doesn't apply. */
export function countResponse(tally: Tally, status: number, bytes: number, beganMs: number | null): void {
  const counts = tally.open()
  // Customers' servers may send any status up to 999. None above 599 is defined, and clients treat them as failures.
  counts[edgeAt.status + Math.min(5, Math.trunc(status / 100))]! += 1
  counts[edgeAt.bytes]! += bytes
  if (beganMs === null) return
  let bucket = 0
  while (bucket < durationBoundsMs.length && beganMs > durationBoundsMs[bucket]!) bucket++
  counts[edgeAt.durations + bucket]! += 1
  counts[edgeAt.durationUs]! += beganMs * 1000
}
