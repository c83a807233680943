// What worker and edge need to run untrusted code: the sandbox, and the servers of this process.
import type { Logger } from 'pino'
import { type Config, ConfigError } from '../config.ts'
import { openServers } from '../engines/servers/index.ts'
import { askPackageRegistry } from '../sandbox/hosts.ts'
import { createSandbox, type Sandbox, SandboxError } from '../sandbox/sandbox.ts'
import type { Closing } from './closing.ts'
import type { Shared } from './shared.ts'

export type Hosting = Awaited<ReturnType<typeof openHosting>>

/** With `proofsOnly`, this process only proves servers; visitors come to another one. */
export async function openHosting(shared: Shared, closing: Closing, proofsOnly: boolean) {
  const sandbox = await openSandbox(shared.config, shared.log)
  closing.add(() => sandbox.close())
  const packageRegistry = askPackageRegistry(shared.log)
  const servers = openServers({ ...shared, sandbox, packageRegistry, proofsOnly })
  closing.add(() => servers.close())
  return { sandbox, packageRegistry, servers }
}

/** The sandbox of builds and servers; production does not start without one. */
async function openSandbox(config: Config, log: Logger): Promise<Sandbox> {
  const mode = config.production && config.build.sandbox === 'auto' ? 'bubblewrap' : config.build.sandbox
  const sandbox = await createSandbox(mode, {
    searchPath: config.searchPath,
    ownAddresses: config.edge.addresses,
    resolvers: config.dnsResolvers,
  }).catch((error) => {
    throw error instanceof SandboxError ? new ConfigError(error.message) : error
  })
  if (sandbox.warning) log.warn({ driver: sandbox.driver }, sandbox.warning)
  return sandbox
}
