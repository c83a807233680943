// Keeps the table of hosts as the database has it: loaded whole at start, then only what notifications name.
import type { Logger } from 'pino'
import type { Database } from '../../db.ts'
import { follow } from '../../follow.ts'
import type { Notifications } from '../../notifications.ts'
import { readEdgeHosts, readTouchedEdgeHosts } from '../../services/edge-hosts.ts'
import { type Host, HostTable } from './hosts.ts'
import type { Takeovers } from './takeovers.ts'

export type Snapshot = {
  find(host: string): Host | undefined
  readonly size: number
  /** A refresh that is under way; null where there is none. */
  settled(): Promise<void> | null
  close(): Promise<void>
}

// Certificates are kept elsewhere, and most settings in the manifests; a project that is updated may change its HSTS.
const relevant = new Set([
  'deployment.ready',
  'deployment.promoted',
  'deployment.deleted',
  'project.created',
  'project.updated',
  'project.deleted',
  'domain.verified',
  'domain.unverified',
  'domain.deleted',
])
// One statement reads what a whole burst of changes touched.
const subjectsAtOnce = 10_000

export async function createSnapshot(
  db: Database,
  notifications: Notifications,
  edgeDomain: string,
  log: Logger,
  takeovers: Takeovers,
): Promise<Snapshot> {
  let table = new HostTable(edgeDomain, takeovers)

  async function reload(): Promise<string[]> {
    const rows = await readEdgeHosts(db)
    const fresh = new HostTable(edgeDomain, takeovers)
    fresh.apply(rows)
    table = fresh
    return []
  }

  async function read(subjects: string[]): Promise<void> {
    const asked = new Set(subjects)
    // Asked of the table now and not when the notice came: the refresh before this one may have brought the domain.
    for (const subject of subjects) {
      const projectId = table.projectOfDomain(subject)
      if (projectId) asked.add(projectId)
    }
    table.apply(await readTouchedEdgeHosts(db, [...asked]), [...asked])
  }

  const source = {
    what: 'hosts',
    listen: (changed: (subject: string) => void) =>
      notifications.on('event', ({ type, subject }) => void (relevant.has(type) && changed(subject))),
    compare: reload,
    read,
    namesAtOnce: subjectsAtOnce,
  }
  const { settled, close } = await follow(source, notifications, log)

  return {
    find: (host) => table.find(host),
    get size() {
      return table.size
    },
    settled,
    close,
  }
}
