// Keeps the table of hosts as the database has it: loaded whole at start, then only what notifications name.
import type { Logger } from 'pino'
import type { Database } from '../../db.ts'
import type { Notifications } from '../../notifications.ts'
import { readEdgeHosts, readTouchedEdgeHosts } from '../../services/edge-hosts.ts'
import { type Host, HostTable } from './hosts.ts'
import type { Takeovers } from './takeovers.ts'

export type Snapshot = {
  find(host: string): Host | undefined
  readonly size: number
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
// The database is away or overloaded: soon at first, then without adding to its trouble.
const retryDelaysMs = [100, 250, 500, 1_000, 2_000]
// A connection that died without a word brings no notifications; this bounds how long nobody would notice.
const reloadMs = 5 * 60_000

export async function createSnapshot(
  db: Database,
  notifications: Notifications,
  edgeDomain: string,
  log: Logger,
  takeovers: Takeovers,
): Promise<Snapshot> {
  let table = new HostTable(edgeDomain, takeovers)
  let closed = false
  let whole = true
  let subjects = new Set<string>()
  let running: Promise<void> | null = null
  let wake = () => {}

  async function refresh(): Promise<void> {
    const [all, batch] = [whole, subjects]
    whole = false
    subjects = new Set()
    if (all) {
      const rows = await readEdgeHosts(db)
      const fresh = new HostTable(edgeDomain, takeovers)
      fresh.apply(rows)
      table = fresh
      return
    }
    // Asked of the table now and not when the notice came: the refresh before this one may have brought the domain.
    for (const subject of [...batch]) {
      const projectId = table.projectOfDomain(subject)
      if (projectId) batch.add(projectId)
    }
    const asked = [...batch]
    table.apply(await readTouchedEdgeHosts(db, asked), asked)
  }

  // One refresh at a time: what is heard of meanwhile is read together by the next, never before it was committed.
  async function run(): Promise<void> {
    for (let failures = 0; !closed && (whole || subjects.size > 0); ) {
      try {
        await refresh()
        failures = 0
      } catch (err) {
        // What was asked for is lost track of, so the next one reads all.
        whole = true
        if (failures === 0) log.warn({ err }, 'the edge could not refresh its hosts; it serves those it knows')
        const delayMs = retryDelaysMs[Math.min(failures++, retryDelaysMs.length - 1)]
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, delayMs)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    }
    running = null
  }

  function start(): void {
    if (!closed && (whole || subjects.size > 0)) running ??= run()
  }

  function reload(): void {
    whole = true
    wake()
    start()
  }

  // Listening before loading: a change between the two would be missed.
  const off = [
    notifications.on('event', ({ type, subject }) => {
      if (!relevant.has(type)) return
      subjects.add(subject)
      start()
    }),
    notifications.on('reconnected', reload),
  ]
  const timer = setInterval(reload, reloadMs)
  timer.unref()

  async function close(): Promise<void> {
    closed = true
    for (const stop of off) stop()
    clearInterval(timer)
    wake()
    await running
  }

  // At start there is nothing to serve from, so a database that is away is an error and not a reason to wait.
  const first = refresh()
  running = first.then(
    () => {},
    () => {},
  )
  try {
    await first
  } catch (error) {
    await close()
    throw error
  }
  running = null
  start()

  return {
    find: (host) => table.find(host),
    get size() {
      return table.size
    },
    close,
  }
}
