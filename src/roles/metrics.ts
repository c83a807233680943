// Metrics that belong to no engine: the process, its connections, and the platform's queue and certificates.
import { Counter, Gauge, type Registry } from 'prom-client'
import { jobKinds } from '../jobs/kinds.ts'
import { type Database, poolUsage } from '../platform/database/database.ts'
import type { Notifications } from '../platform/database/notifications.ts'
import { type CachedFigureOptions, cachedFigure } from '../platform/observe/cached-figure.ts'
import type { Vault } from '../platform/secrets/secrets.ts'
import { version } from '../platform/version.ts'
import { type QueueFigures, readFigures } from '../services/figures/index.ts'

export type ProcessParts = {
  registry: Registry
  db: Database
  workerDb: Database
  notifications: Notifications
  vault: Vault
}

export function observeProcess(parts: ProcessParts, roles: readonly string[]): void {
  const { registry, db, workerDb, notifications, vault } = parts
  const registers = [registry]
  const pools = { requests: db, workers: workerDb }
  new Gauge({
    name: 'berth_build_info',
    help: 'Always 1; the labels tell the version, that of Node, and the roles of this process.',
    labelNames: ['version', 'node', 'roles'],
    aggregator: 'max',
    registers,
  }).set({ version, node: process.versions.node, roles: [...roles].sort().join(',') }, 1)
  new Gauge({
    name: 'berth_database_pool_connections',
    help: 'Connections to the database by pool, and by whether work holds them.',
    labelNames: ['pool', 'state'],
    registers,
    collect() {
      for (const [pool, of] of Object.entries(pools)) {
        const { inUse, idle } = poolUsage(of)
        this.set({ pool, state: 'in_use' }, inUse)
        this.set({ pool, state: 'idle' }, idle)
      }
    },
  })
  new Gauge({
    name: 'berth_database_pool_waiting',
    help: 'Work that waits for a connection, by pool.',
    labelNames: ['pool'],
    registers,
    collect() {
      for (const [pool, of] of Object.entries(pools)) this.set({ pool }, poolUsage(of).waiting)
    },
  })
  new Gauge({
    name: 'berth_notifications_connected',
    help: 'Whether the connection is there by which the database tells of changes.',
    aggregator: 'min',
    registers,
    collect() {
      this.set(notifications.connected ? 1 : 0)
    },
  })
  const reconnections = new Counter({
    name: 'berth_notifications_reconnections_total',
    help: 'How often that connection was lost and made again.',
    registers,
  })
  notifications.on('reconnected', () => reconnections.inc())
  new Counter({
    name: 'berth_secrets_unopened_total',
    help: 'Stored secrets that could not be opened: their key is missing, or they were changed.',
    registers,
    collect() {
      this.reset()
      this.inc(vault.failures)
    },
  })
}

const queueGauges: readonly [string, string, keyof Omit<QueueFigures, 'kind'>][] = [
  ['berth_jobs_waiting', 'Jobs that are due and that no worker has, of all workers.', 'waiting'],
  ['berth_jobs_running', 'Jobs that workers run now, of all workers.', 'running'],
  ['berth_jobs_failed', 'Jobs that were given up and are kept.', 'failed'],
  [
    'berth_jobs_oldest_seconds',
    'For how long the job that waits longest has been due; 0 if none waits.',
    'oldestSeconds',
  ],
]

// Long enough that two scrapers cause one query.
const ttlMs = 10_000

/** These describe the platform, not the process: every worker reports the same, so take the maximum, not the sum. */
export function observePlatform(
  { registry, db }: Pick<ProcessParts, 'registry' | 'db'>,
  options: CachedFigureOptions = { ttlMs },
): void {
  const figures = cachedFigure(() => readFigures(db), options)
  const registers = [registry]
  for (const [name, help, field] of queueGauges) {
    new Gauge({
      name,
      help,
      labelNames: ['kind'],
      registers,
      async collect() {
        this.reset()
        const read = await figures()
        if (!read) return
        // A kind without jobs is reported as 0, so that a missing value means that the query failed.
        for (const kind of jobKinds) this.set({ kind }, read.queue.find((one) => one.kind === kind)?.[field] ?? 0)
      },
    })
  }
  new Gauge({
    name: 'berth_certificates_earliest_expiry_days',
    help: 'Days until the first certificate in service expires; negative once it has.',
    // Without a label, prom-client would report 0 while nothing is known.
    labelNames: ['scope'],
    registers,
    async collect() {
      this.reset()
      const seconds = (await figures())?.certificates.earliestSeconds
      if (seconds !== null && seconds !== undefined) this.set({ scope: 'platform' }, seconds / 86_400)
    },
  })
  new Gauge({
    name: 'berth_certificates_failing',
    help: 'Domains, and purposes of the platform, whose last attempt to get a certificate failed.',
    labelNames: ['scope'],
    registers,
    async collect() {
      this.reset()
      const read = await figures()
      if (read) this.set({ scope: 'platform' }, read.certificates.failing)
    },
  })
  new Gauge({
    name: 'berth_nodes',
    help: 'Processes of the installation by state: active, draining, or lost, which have not been heard of for 18 s.',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset()
      for (const [state, count] of Object.entries((await figures())?.nodes ?? {})) this.set({ state }, count)
    },
  })
  new Gauge({
    name: 'berth_figures_known',
    help: 'Whether the figures of the whole platform could be read from the database: 1, or 0 and they are absent.',
    registers,
    async collect() {
      this.set((await figures()) ? 1 : 0)
    },
  })
}
