// Keeps the host table equal to the database: reads everything at startup, then whatever notifications name.
import type { Logger } from 'pino'
import type { Database } from '../../../platform/database/database.ts'
import { follow } from '../../../platform/database/mirror.ts'
import type { Notifications } from '../../../platform/database/notifications.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import { type EdgeHostRow, readEdgeHosts, readTouchedEdgeHosts } from '../../../services/deployments/index.ts'
import { isTakenDown, readTakenDownHosts } from '../../../services/takedowns/index.ts'
import { HostTable } from './hosts.ts'
import type { Takeovers } from './takeovers.ts'
import { type Host, type HostEntry, type Target, takenDownEntry } from './targets.ts'

export type Snapshot = {
  find(host: string): Host | undefined
  /** Like `find`, with the name under which the host is listed. */
  findEntry(host: string): HostEntry | undefined
  /** A deployment that pages of this production host may stay with; null if it is not such a deployment. */
  pinned(found: Host, deploymentId: string): Target | null
  readonly size: number
  /** The refresh in progress; null if there is none. */
  settled(): Promise<void> | null
  close(): Promise<void>
}

// `project.updated` may change serving settings such as HSTS.
const relevantEvents = new Set([
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
// One statement reads the subjects of a burst of changes.
const maxSubjectsPerRead = 10_000

export type SnapshotOptions = {
  db: Database
  notifications: Notifications
  edgeDomain: string
  /** The platform's own hosts, which never belong to a project. */
  ownHosts: ReadonlySet<string>
  takeovers: Takeovers
  /** Called after a change that may have barred hosts. */
  onBarred(): void
  log: Logger
  /** Stores the table for starts without the database. */
  snapshots?: Snapshots | undefined
}

type SnapshotRow = EdgeHostRow | { kind: 'takedown'; name: string }

export async function createSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { db, notifications, edgeDomain, ownHosts, takeovers, onBarred, log } = options
  /** Few, so all of them are read when one changes. */
  let takenDown: ReadonlySet<string> = new Set()
  let table = new HostTable(edgeDomain, takeovers)
  const store = options.snapshots?.open('hosts', function* (): Generator<SnapshotRow> {
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
    store?.changed(true)
    return []
  }

  async function read(subjects: string[]): Promise<void> {
    const toRead = new Set(subjects)
    // Not looked up when the notification arrived, because the previous refresh may have added the domain.
    for (const subject of subjects) {
      const projectId = table.projectOfDomain(subject)
      if (projectId) toRead.add(projectId)
    }
    const names = subjects.some(isTakedown) ? await readTakenDownHosts(db) : takenDown
    const rows = await readTouchedEdgeHosts(db, [...toRead])
    table.apply(
      rows,
      [...toRead].filter((subject) => !isTakedown(subject) && !isAccount(subject)),
    )
    takenDown = names
    const barring = subjects.some((subject) => isTakedown(subject) || isAccount(subject))
    if (barring) onBarred()
    // Barred hosts must stay barred if the next start is without the database.
    store?.changed(barring)
  }

  function restore(rows: SnapshotRow[]): void {
    const hosts = rows.filter((row): row is EdgeHostRow => row.kind !== 'takedown')
    replace(hosts, new Set(rows.flatMap(({ kind, name }) => (kind === 'takedown' ? [name] : []))))
  }

  const source = {
    what: 'hosts',
    listen: (changed: (subject: string) => void) =>
      notifications.on('event', ({ type, subject }) => void (relevantEvents.has(type) && changed(subject))),
    compare: reload,
    read,
    maxNames: maxSubjectsPerRead,
    ...(store && { restore: () => store.restore(restore), onCurrent: () => store.current() }),
  }
  const { settled, close } = await follow(source, notifications, log)

  function findEntry(host: string): HostEntry | undefined {
    if (ownHosts.has(host)) return undefined
    return isTakenDown(takenDown, host) ? takenDownEntry : table.find(host)
  }

  /** Excludes deployments of other projects and those whose own host is taken down or barred. */
  function pinned({ projectId, pins }: Host, deploymentId: string): Target | null {
    const entry = pins?.has(deploymentId) ? table.deploymentEntry(deploymentId) : undefined
    const shown = entry && findEntry(entry.name)?.host
    return shown?.target && shown.projectId === projectId ? shown.target : null
  }

  return {
    find: (host) => findEntry(host)?.host,
    findEntry,
    pinned,
    get size() {
      return table.size
    },
    settled,
    async close() {
      await close()
      await store?.close()
    },
  }
}
