// What worker and runner need to run untrusted code: one sandbox for both if they share a process.
import { join } from 'node:path'
import { ConfigError } from '../config.ts'
import { askPackageRegistry } from '../sandbox/network/hosts.ts'
import { openPrograms, type Programs } from '../sandbox/programs/programs.ts'
import { createSandbox, type Sandbox, SandboxError } from '../sandbox/sandbox.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'

export type Sandboxed = { sandbox: Sandbox; packageRegistry: Promise<string>; programs: Programs }

// Room for about twenty package manager versions in addition to the usual ones.
const maxProgramsMb = 1024

/** Production doesn't start without one. */
export async function openSandbox(
  { config, log }: Pick<Shared, 'config' | 'log'>,
  closing: Closing,
): Promise<Sandboxed> {
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
  const programs = openPrograms({
    directory: join(config.dataDir, 'programs'),
    maxMb: maxProgramsMb,
    keepMs: 2 * config.build.timeoutMs,
  })
  return { sandbox, packageRegistry: askPackageRegistry(log), programs }
}
