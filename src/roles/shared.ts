// What roles share: the database, the vault, the stores. Opened once for all roles of a process.
import { join } from 'node:path'
import type { Logger } from 'pino'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Config } from '../config.ts'
import { createArtifacts } from '../platform/artifacts.ts'
import { listen } from '../platform/notifications.ts'
import { createRepositories } from '../platform/repositories.ts'
import { createVault } from '../platform/secrets.ts'
import { createSnapshots } from '../platform/snapshots.ts'
import { createUrls } from '../platform/urls.ts'
import type { Closing } from './closing.ts'
import { readSecretsKey } from './first-start.ts'
import { openStorage } from './storage.ts'

export type Shared = Awaited<ReturnType<typeof openShared>>

export type SharedOptions = {
  /** The roles can start while the database cannot be reached. */
  unlessAway: boolean
  /** Aborted when the process begins to stop. */
  draining: AbortSignal
}

export async function openShared(config: Config, log: Logger, closing: Closing, options: SharedOptions) {
  const { unlessAway, draining } = options
  const storage = await openStorage(config, unlessAway ? log : undefined)
  const { db, url, broken, migrated, close } = storage
  closing.add(close)
  const vault = createVault(await readSecretsKey(config), config.oldSecretsKeys)
  const notifications = await listen(url, log, storage.away)
  closing.add(() => notifications.close())
  const localRepositories = config.production ? null : join(config.dataDir, 'repos')
  const repositories = createRepositories(config.gitUrlTemplate, localRepositories, config.searchPath)
  const artifacts = createArtifacts(join(config.dataDir, 'artifacts'))
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const urls = createUrls(config)
  // An embedded database is there whenever this process is.
  const directory = join(config.dataDir, 'snapshots')
  const snapshots = config.databaseUrl ? createSnapshots({ directory, vault, log, registry }) : undefined
  const stores = { vault, repositories, artifacts, snapshots }
  return { config, urls, db, databaseUrl: url, notifications, ...stores, log, registry, broken, migrated, draining }
}
