// Opens the parts of this engine that roles use: a process's runner, and an edge's balancer.
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Artifacts } from '../../platform/artifacts/artifacts.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Notifications } from '../../platform/database/notifications.ts'
import type { Snapshots } from '../../platform/database/snapshots.ts'
import type { Urls } from '../../platform/http/urls.ts'
import type { DrainSignal } from '../../platform/observe/draining.ts'
import type { Vault } from '../../platform/secrets/secrets.ts'
import { privateHosts } from '../../sandbox/network/hosts.ts'
import type { Programs } from '../../sandbox/programs/programs.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { appendLines, buildFacts, findBuild, openVariables, trimRunLines } from '../../services/deployments/index.ts'
import { openNodeCredentials } from '../../tls/node-credentials.ts'
import { type Balancer, createBalancer, type LocalInstances } from './balancer/balancer.ts'
import { openInstanceTable } from './balancer/instance-table.ts'
import { createRunnerConnections } from './balancer/runner-connections.ts'
import { createDial } from './instance/dial.ts'
import type { ServerLimits } from './instance/limits.ts'
import { openRunnerPort } from './run/port.ts'
import { openRunner, type Runner } from './run/runner.ts'
import { createServers, type Servers, type ServersOptions } from './run/servers.ts'

type Common = {
  db: Database
  notifications: Notifications
  vault: Vault
  log: Logger
  /** Stores state for starts without the database. */
  snapshots?: Snapshots | undefined
  limits?: Partial<ServerLimits>
}

export type RunnerOptions = Common & {
  config: Pick<Config, 'gitUrlTemplate' | 'runner' | 'databaseUrl'>
  urls: Urls
  artifacts: Artifacts
  sandbox: Sandbox
  packageRegistry: Promise<string>
  programs?: Programs
  registry?: Registry
  draining: DrainSignal
  leaseMs?: number
  handoverMs?: number
}

/** `node.address` is where edges on other machines reach this one. Default: the address it listens on. */
export async function startRunner(
  options: RunnerOptions,
  node: { id: string; address: string | null },
): Promise<Runner> {
  const { config, log } = options
  let runner: Runner | null = null
  const credentials = await openNodeCredentials({ ...options, snapshots: undefined }, 'runner', node.id)
  const { host } = config.runner
  const connect = async (key: string) => runner?.connect(key) ?? null
  const port = await openRunnerPort({ ...config.runner, credentials, connect, log }).catch(async (error) => {
    await credentials.close()
    throw error
  })
  const configured = node.address ?? (host.includes(':') ? `[${host}]` : host)
  const address = /:\d+$/.test(configured) ? configured : `${configured}:${port.port}`
  // An embedded database has no other clients.
  const isOnlyProcess = config.databaseUrl === null
  const opened = await openRunner({ ...options, node: { id: node.id, address }, isOnlyProcess }, (onState) =>
    openServers({ ...options, onState }),
  )
  runner = opened
  return {
    ...opened,
    async close() {
      await opened.close()
      await port.close()
      await credentials.close()
    },
  }
}

type ServersDeps = Omit<RunnerOptions, 'draining' | 'config' | 'notifications'> & {
  config: Pick<Config, 'gitUrlTemplate'>
  onState: NonNullable<ServersOptions['onState']>
}

function openServers({ config, urls, db, vault, packageRegistry, ...options }: ServersDeps): Servers {
  return createServers({
    ...options,
    async settingsOf(deploymentId) {
      const build = await findBuild(db, deploymentId)
      if (!build) throw new Error('The deployment is deleted.')
      const environment = { ...(await openVariables(db, vault, build)), ...buildFacts(urls, build) }
      const started = build.startCommand === null ? {} : { command: build.startCommand }
      return { environment, network: build.serverNetwork, owner: build.accountId, ...started }
    },
    // A server also runs without a registry.
    privateHosts: () =>
      packageRegistry.then((registry) => privateHosts(registry, config.gitUrlTemplate)).catch(() => []),
    writeLog: (deploymentId, lines) => appendLines(db, deploymentId, lines),
    trimLog: (deploymentId, keepBytes) => trimRunLines(db, deploymentId, keepBytes),
  })
}

/** `node` is the id of this process, `local` its runner. */
export async function openBalancer(options: Common, node: string, local: LocalInstances | null): Promise<Balancer> {
  const credentials = await openNodeCredentials(options, 'edge', node)
  const table = await openInstanceTable(options).catch(async (error) => {
    await credentials.close()
    throw error
  })
  const reach = createRunnerConnections((onLost) => createDial(credentials, onLost))
  const balancer = createBalancer({ ...options, table, local, reach })
  return {
    ...balancer,
    async close() {
      await balancer.close()
      await credentials.close()
    },
  }
}
