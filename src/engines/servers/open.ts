// Creates the servers of this process, with their settings from the database: for the edge, and to prove builds.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Artifacts } from '../../platform/artifacts.ts'
import type { Database } from '../../platform/database.ts'
import type { Vault } from '../../platform/secrets.ts'
import type { Snapshots } from '../../platform/snapshots.ts'
import type { Urls } from '../../platform/urls.ts'
import { privateHosts } from '../../sandbox/hosts.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { factsOf, findBuild, openVariables } from '../../services/deployments/builds.ts'
import { appendLines, trimRunLines } from '../../services/deployments/deployment-logs.ts'
import type { ServerLimits } from './limits.ts'
import { createServers, type Servers } from './servers.ts'

export type ServersDeps = {
  config: Pick<Config, 'gitUrlTemplate'>
  urls: Urls
  db: Database
  vault: Vault
  artifacts: Artifacts
  sandbox: Sandbox
  packageRegistry: Promise<string>
  log: Logger
  proofsOnly: boolean
  /** Where the settings of servers are kept for a start without the database. */
  snapshots?: Snapshots | undefined
  registry?: Registry
  limits?: Partial<ServerLimits>
}

export function openServers({ config, urls, db, vault, packageRegistry, ...options }: ServersDeps): Servers {
  return createServers({
    ...options,
    // The file is that of the edge, which runs the servers.
    snapshots: options.proofsOnly ? undefined : options.snapshots,
    async settingsOf(deploymentId) {
      const build = await findBuild(db, deploymentId)
      if (!build) throw new Error('The deployment is deleted.')
      const environment = { ...(await openVariables(db, vault, build)), ...factsOf(urls, build) }
      return { environment, network: build.serverNetwork }
    },
    // A server runs without a registry too; the log says if npm does not name one.
    privateHosts: () =>
      packageRegistry.then((registry) => privateHosts(registry, config.gitUrlTemplate)).catch(() => []),
    writeLog: (deploymentId, lines) => appendLines(db, deploymentId, lines),
    trimLog: (deploymentId, keepBytes) => trimRunLines(db, deploymentId, keepBytes),
  })
}
