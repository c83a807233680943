// Keeps the table of hosts equal to the database: all of it is read at start, then only what notifications name.
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import { follow } from '../../../platform/database/mirror.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import { type EdgeHostRow, readEdgeHosts, readTouchedEdgeHosts } from '../../../services/deployments/index.ts'
import { isTakenDown, readTakenDownHosts } from '../../../services/takedowns/index.ts'
import { HostTable } from './hosts.ts'
import type { Takeovers } from './takeovers.ts'
import { type Host, type Place, type Target, takenDown as takenDownPlace } from './targets.ts'

export type Snapshot = {
  find(host: string): Host | undefined
  /** The same, with the name that the host is known by. */
  at(host: string): Place | undefined
  /** The deployment that a page of this production host may go on with; null if it is not one of those. */
  pinned(found: Host, deploymentId: string): Target | null
  readonly size: number
  /** The refresh in progress; null if there is none. */
  settled(): Promise<void> | null
  close(): Promise<void>
}

// Certificates have their own table, and most settings are in the manifests; `project.updated` may change HSTS.
const relevant = new Set([
  'deployment.ready',
  'deployment.promoted',
  'deployment.deleted',
  'project.created',
  'project.updated',
  'project.deleted',
  'domain.verified',
  'domain.unverified',
  'domain.updated',
  'domain.deleted',
  'account.suspended',
  'account.resumed',
  'takedown.created',
  'takedown.ended',
])
const isTakedown = (subject: string) => subject.startsWith('tkd_')
const isAccount = (subject: string) => subject.startsWith('acc_')
// One statement reads all subjects of a burst of changes.
const subjectsAtOnce = 10_000

export type SnapshotOptions = {
  db: Database
  notifications: Notifications
  edgeDomain: string
  /** Hosts of the platform itself: never a project's, whatever the rows say. */
  ownHosts: ReadonlySet<string>
  takeovers: Takeovers
  /** Called when hosts may have been barred, after that is in effect. */
  onBarred(): void
  log: Logger
  /** Where the table is kept for a start without the database. */
  snapshots?: Snapshots | undefined
}

/** A host of the table, or a name that is taken down. */
type KeptRow = EdgeHostRow | { kind: 'takedown'; name: string }

export async function createSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { db, notifications, edgeDomain, ownHosts, takeovers, onBarred, log } = options
  /** Names that are taken down. There are few, so all of them are read when one changes. */
  let takenDown: ReadonlySet<string> = new Set()
  let table = new HostTable(edgeDomain, takeovers)
  const kept = options.snapshots?.open('hosts', function* (): Generator<KeptRow> {
    yield* table.rows()
    for (const name of takenDown) yield { kind: 'takedown', name }
  })

  function replace(rows: EdgeHostRow[], names: ReadonlySet<string>): void {
    const fresh = new HostTable(edgeDomain, takeovers)
    fresh.apply(rows)
    table = fresh
    takenDown = names
    onBarred()
  }

  async function reload(): Promise<string[]> {
    const names = await readTakenDownHosts(db)
    replace(await readEdgeHosts(db), names)
    kept?.changed(true)
    return []
  }

  async function read(subjects: string[]): Promise<void> {
    const asked = new Set(subjects)
    // Looked up now, not when the notification came: the previous refresh may have added the domain.
    for (const subject of subjects) {
      const projectId = table.projectOfDomain(subject)
      if (projectId) asked.add(projectId)
    }
    const names = subjects.some(isTakedown) ? await readTakenDownHosts(db) : takenDown
    const rows = await readTouchedEdgeHosts(db, [...asked])
    table.apply(
      rows,
      [...asked].filter((subject) => !isTakedown(subject) && !isAccount(subject)),
    )
    takenDown = names
    const barring = subjects.some((subject) => isTakedown(subject) || isAccount(subject))
    if (barring) onBarred()
    // What is barred must stay so if the next start is without the database.
    kept?.changed(barring)
  }

  function restore(rows: KeptRow[]): void {
    const hosts = rows.filter((row): row is EdgeHostRow => row.kind !== 'takedown')
    replace(hosts, new Set(rows.flatMap(({ kind, name }) => (kind === 'takedown' ? [name] : []))))
  }

  const source = {
    what: 'hosts',
    listen: (changed: (subject: string) => void) =>
      notifications.on('event', ({ type, subject }) => void (relevant.has(type) && changed(subject))),
    compare: reload,
    read,
    maxNames: subjectsAtOnce,
    ...(kept && { restore: () => kept.restore(restore), onCurrent: () => kept.current() }),
  }
  const { settled, close } = await follow(source, notifications, log)

  function at(host: string): Place | undefined {
    if (ownHosts.has(host)) return undefined
    return isTakenDown(takenDown, host) ? takenDownPlace : table.find(host)
  }

  /** Never one of another project, nor what is taken down or barred at its own host. */
  function pinned({ projectId, pins }: Host, deploymentId: string): Target | null {
    const place = pins?.has(deploymentId) ? table.placeOf(deploymentId) : undefined
    const shown = place && at(place.name)?.host
    return shown?.target && shown.projectId === projectId ? shown.target : null
  }

  return {
    find: (host) => at(host)?.host,
    at,
    pinned,
    get size() {
      return table.size
    },
    settled,
    async close() {
      await close()
      await kept?.close()
    },
  }
}
