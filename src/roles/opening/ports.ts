// Checks before anything starts whether another program uses one of our ports.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { claim } from '../../embedded-postgres/processes.ts'
import { tryToListen } from '../../platform/http/ports.ts'

/**
 * Rejects where `listen` would fail seconds later. Only for a start with an embedded database: other processes may
 * start while the one they replace still serves.
 */
export async function refuseTakenPorts(config: Config, roles: readonly string[]): Promise<void> {
  const { host, edge } = config
  const at = (ports: number[]) => ports.map((port) => ({ host, port }))
  try {
    await tryToListen([
      ...at([config.metricsPort]),
      ...at(roles.includes('api') ? [config.port] : []),
      ...at(roles.includes('edge') ? [edge.httpPort, edge.httpsPort] : []),
      ...(roles.includes('nameserver') ? config.nameserverListen : []),
    ])
  } catch (error) {
    // If this very installation is running, that is the better error.
    const directory = join(config.dataDir, 'postgres')
    if (existsSync(directory)) await (await claim(directory))()
    throw error
  }
}
