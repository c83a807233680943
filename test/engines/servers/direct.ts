// Servers of this process as an edge sees them, without runners and a table of instances: a deployment's id is its key.
import { pino } from 'pino'
import type { ServerProjects } from '../../../src/engines/edge/hosts/server-projects.ts'
import { defaultLimits, type ServerLimits } from '../../../src/engines/servers/instance/limits.ts'
import { createDispatcher } from '../../../src/engines/servers/proxy/dispatcher.ts'
import type { Servers } from '../../../src/engines/servers/run/servers.ts'

export function directly(servers: Servers, limits: Partial<ServerLimits> = {}): Servers & ServerProjects {
  const visits = createDispatcher({
    route: (deploymentId, act) => act(servers.backend(deploymentId)),
    limits: { ...defaultLimits, ...limits },
    log: pino({ level: 'silent' }),
  })
  return { ...servers, ...visits }
}
