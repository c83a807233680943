// What roles share: the database, the vault, the stores. Opened once for all roles of a process.
import { join } from 'node:path'
import type { Logger } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Config } from '../config.ts'
import { createArtifacts } from '../platform/artifacts.ts'
import { drainReadiness } from '../platform/draining.ts'
import { createHealth } from '../platform/health.ts'
import { listen, notificationsReadiness } from '../platform/notifications.ts'
import { createRepositories } from '../platform/repositories.ts'
import { createVault } from '../platform/secrets.ts'
import { createSnapshots, snapshotReadiness } from '../platform/snapshots.ts'
import { createUrls } from '../platform/urls.ts'
import { createTicketKeys } from '../tls/tickets.ts'
import type { Closing } from './closing.ts'
import type { Start } from './cluster/messages.ts'
import { readSecretsKey } from './first-start.ts'
import { openStorage } from './storage.ts'

export type Shared = Awaited<ReturnType<typeof openShared>>

/** Without them these roles answer wrongly or not at all; edge and nameserver go on with what they know. */
const needDatabase = ['api', 'worker']

export type Process = {
  log: Logger
  closing: Closing
  /** Aborted when the process begins to stop. */
  draining: AbortSignal
  /** Set in a worker process. */
  worker?: Start | undefined
}

export async function openShared(config: Config, roles: readonly string[], process: Process) {
  const { log, closing, draining, worker } = process
  const canWait = config.databaseUrl !== null && !roles.some((role) => needDatabase.includes(role))
  const storage = await openStorage(config, { patient: canWait ? log : undefined })
  const { db, workerDb, readiness, url, broken, away, migrated, close } = storage
  closing.add(close)
  const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
  const notifications = await listen(url, log, away)
  closing.add(() => notifications.close())
  const health = createHealth(roles)
  health.add('draining', drainReadiness(draining))
  health.add('database', readiness.check, needDatabase)
  health.add('notifications', notificationsReadiness(notifications), needDatabase)
  const localRepositories = config.production ? null : join(config.dataDir, 'repos')
  const repositories = createRepositories(config.gitUrlTemplate, localRepositories, config.searchPath)
  const artifacts = createArtifacts(join(config.dataDir, 'artifacts'), log)
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  boundAggregates(registry)
  const tickets = createTicketKeys(worker && Buffer.from(worker.ticketKey, 'base64'))
  closing.add(() => tickets.close())
  const urls = createUrls(config)
  // An embedded database is there whenever this process is.
  const directory = join(config.dataDir, 'snapshots')
  const readOnly = worker?.keepsSnapshots === false
  const snapshots = config.databaseUrl ? createSnapshots({ directory, vault, log, registry, readOnly }) : undefined
  if (snapshots) health.add('snapshot', snapshotReadiness(snapshots), [])
  return {
    config,
    urls,
    db,
    workerDb,
    databaseUrl: url,
    notifications,
    health,
    vault,
    repositories,
    artifacts,
    snapshots,
    log,
    registry,
    tickets,
    draining,
    worker,
    broken,
    away,
    migrated,
  }
}

/** Of several processes, the slowest tells how slow they are, and the first one when they were started. */
function boundAggregates(registry: Registry): void {
  for (const metric of registry.getMetricsAsArray()) {
    if (metric.aggregator === 'average') metric.aggregator = 'max'
    if (metric.aggregator === 'omit') metric.aggregator = 'min'
  }
}
