// Finds out before anything is started that another program listens where this one is to listen.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { claim } from '../../embedded-postgres/processes.ts'
import { tryToListen } from '../../platform/http/ports.ts'

/**
 * Rejects as `listen` would seconds later. Only for a start with an embedded database: others may be started while the
 * process that they replace still serves.
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
    // Perhaps this very installation is running, which is the better thing to say.
    const directory = join(config.dataDir, 'postgres')
    if (existsSync(directory)) await (await claim(directory))()
    throw error
  }
}
