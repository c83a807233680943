// What roles share: the database, the vault, the stores. Opened once for all roles of a process.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import { createConnectionShares } from '../../platform/database/connection-shares.ts'
import { isDatabaseLost } from '../../platform/database/database.ts'
import { listen, notificationsReadiness } from '../../platform/database/notifications.ts'
import { createSnapshots, snapshotReadiness } from '../../platform/database/snapshots.ts'
import { createRepositories } from '../../platform/git/repositories.ts'
import { createReach } from '../../platform/http/checked-lookup.ts'
import { createUrls } from '../../platform/http/urls.ts'
import type { Draining } from '../../platform/observe/draining.ts'
import { createHealth } from '../../platform/observe/health.ts'
import { type Monitored, serveMetrics } from '../../platform/observe/metrics.ts'
import type { Terminal } from '../../platform/observe/terminal.ts'
import { createVault } from '../../platform/secrets/secrets.ts'
import { openArtifacts } from '../../platform/storage/open-artifacts.ts'
import { createLoadMeter } from '../../services/nodes/index.ts'
import { createTicketKeys } from '../../tls/tickets.ts'
import type { Closing } from './closing.ts'
import { readSecretsKey } from './first-start.ts'
import type { Start } from './messages.ts'
import { createSchema } from './schema.ts'
import { openDataDirectory, openPools } from './storage.ts'

export type Shared = Awaited<ReturnType<typeof openShared>>

/** Roles that can't work correctly without the database; edge and nameserver continue with what they know. */
const needDatabase = ['api', 'worker']

export type Process = {
  log: Logger
  closing: Closing
  /** Starts when the process shuts down, or when the operator asks for it. */
  draining: Draining
  /** Whether this process applies migrations; another waits until they are applied. */
  migrates: boolean
  /** Set in a worker process. */
  worker?: Start | undefined
  terminal: Terminal | null
}

export async function openShared(
  config: Config,
  roles: readonly string[],
  { log, closing, draining, migrates, worker, terminal }: Process,
) {
  const isFirst = config.databaseUrl === null && !existsSync(join(config.dataDir, 'postgres'))
  terminal?.status(isFirst ? 'Creating the database…' : 'Starting…')
  const postgres = await openDataDirectory(config, { beside: false })
  closing.add(() => postgres.close())
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  setAggregators(registry)
  const health = createHealth(roles)
  health.add('draining', draining.readiness)
  const started = health.add('start', () => 'The process is starting.')
  // Before everything that takes time: a migration, or waiting for one, is no reason to restart the process.
  const monitored: Monitored = { registry, health }
  if (!worker) {
    const metrics = await serveMetrics(monitored, config.host, config.metricsPort)
    closing.add(() => metrics.close())
  }
  const closed = new AbortController()
  closing.add(() => closed.abort())
  const schema = createSchema(postgres.url, { migrates, log, signal: closed.signal })
  health.add('schema', schema.readiness, needDatabase)
  if (isFirst) terminal?.status('Applying migrations…')
  let away = false
  await schema.prepare().catch((error) => {
    const canWait = config.databaseUrl !== null && !roles.some((role) => needDatabase.includes(role))
    if (!canWait || !isDatabaseLost(error)) throw error
    away = true
    log.warn({ err: error }, 'the database is away')
  })
  terminal?.status('Starting…')
  const migrated = away ? schema.prepareLater() : Promise.resolve()
  const { db, workerDb, readiness, close } = openPools(config, postgres.url)
  closing.add(close)
  const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
  const notifications = await listen(postgres.url, log, away)
  closing.add(() => notifications.close())
  health.add('database', readiness.check, needDatabase)
  health.add('changes', readiness.changes, [])
  health.add('notifications', notificationsReadiness(notifications), needDatabase)
  const localRepositories = config.production ? null : join(config.dataDir, 'repos')
  const reach = createReach(config)
  const repositories = createRepositories(config.gitUrlTemplate, localRepositories, config.searchPath, reach)
  const artifacts = openArtifacts(config, log)
  closing.add(() => artifacts.close())
  // A worker postpones builds, and an edge serves what it has.
  if (config.artifacts) health.add('artifacts', artifacts.readiness, [])
  const tickets = createTicketKeys(worker && Buffer.from(worker.ticketKey, 'base64'))
  closing.add(() => tickets.close())
  const urls = createUrls(config)
  // An embedded database is available whenever this process is.
  const directory = join(config.dataDir, 'snapshots')
  const readOnly = worker?.keepsSnapshots === false
  const snapshots = config.databaseUrl ? createSnapshots({ directory, vault, log, registry, readOnly }) : undefined
  if (snapshots) health.add('snapshot', snapshotReadiness(snapshots), [])
  return {
    config,
    urls,
    db,
    workerDb,
    databaseUrl: postgres.url,
    notifications,
    health,
    vault,
    repositories,
    artifacts,
    snapshots,
    log,
    registry,
    tickets,
    connectionShares: createConnectionShares(),
    draining,
    worker,
    /** What the metrics port reports. */
    monitored,
    load: createLoadMeter(),
    /** Call when all roles are open; the process isn't ready before. */
    started,
    broken: postgres.broken,
    away,
    migrated,
  }
}

/** Of several processes, the slowest determines the delays, and the first one the start time. */
function setAggregators(registry: Registry): void {
  for (const metric of registry.getMetricsAsArray()) {
    if (metric.aggregator === 'average') metric.aggregator = 'max'
    if (metric.aggregator === 'omit') metric.aggregator = 'min'
  }
}
