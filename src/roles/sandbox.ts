// What worker and runner need to run untrusted code: one sandbox for both, if they share a process.
import { ConfigError } from '../config.ts'
import { askPackageRegistry } from '../sandbox/hosts.ts'
import { createSandbox, type Sandbox, SandboxError } from '../sandbox/sandbox.ts'
import type { Closing } from './closing.ts'
import type { Shared } from './shared.ts'

export type Sandboxed = { sandbox: Sandbox; packageRegistry: Promise<string> }

/** Production does not start without one. */
export async function openSandbox({ config, log }: Shared, closing: Closing): Promise<Sandboxed> {
  const mode = config.production && config.build.sandbox === 'auto' ? 'bubblewrap' : config.build.sandbox
  const sandbox = await createSandbox(mode, {
    searchPath: config.searchPath,
    ownAddresses: config.edge.addresses,
    resolvers: config.dnsResolvers,
  }).catch((error) => {
    throw error instanceof SandboxError ? new ConfigError(error.message) : error
  })
  if (sandbox.warning) log.warn({ driver: sandbox.driver }, sandbox.warning)
  closing.add(() => sandbox.close())
  return { sandbox, packageRegistry: askPackageRegistry(log) }
}
