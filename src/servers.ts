// The servers of this process, with what each of them is told from the database: for the edge, and for proofs of builds.
import type { Logger } from 'pino'
import type { Artifacts } from './artifacts.ts'
import type { Config } from './config.ts'
import type { Database } from './db.ts'
import type { ServerLimits } from './engines/edge/servers/limits.ts'
import { createServers, type Servers } from './engines/edge/servers/servers.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import { privateHosts } from './sandbox-hosts.ts'
import type { Vault } from './secrets.ts'
import { factsOf, findBuild, openVariables } from './services/builds.ts'
import { appendLines, trimRunLines } from './services/deployment-logs.ts'

export type ServersDeps = {
  config: Config
  db: Database
  vault: Vault
  artifacts: Artifacts
  sandbox: Sandbox
  packageRegistry: Promise<string>
  log: Logger
  proofsOnly: boolean
  limits?: Partial<ServerLimits>
}

export function openServers({ config, db, vault, packageRegistry, ...options }: ServersDeps): Servers {
  return createServers({
    ...options,
    async settingsOf(deploymentId) {
      const build = await findBuild(db, deploymentId)
      if (!build) throw new Error('The deployment is deleted.')
      const environment = { ...(await openVariables(db, vault, build)), ...factsOf(config, build) }
      return { environment, network: build.serverNetwork }
    },
    // Without a registry a server still runs; that npm does not name it is in the log.
    privateHosts: () =>
      packageRegistry.then((registry) => privateHosts(registry, config.gitUrlTemplate)).catch(() => []),
    writeLog: (deploymentId, lines) => appendLines(db, deploymentId, lines),
    trimLog: (deploymentId, keepBytes) => trimRunLines(db, deploymentId, keepBytes),
  })
}
