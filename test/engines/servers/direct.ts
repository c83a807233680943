// Servers of this process as an edge sees them, without runners and a table of instances: a deployment's id is its key.
import { pino } from 'pino'
import type { ServerProjects } from '../../../src/engines/edge/hosts/server-projects.ts'
import { defaultLimits, type ServerLimits } from '../../../src/engines/servers/instance/limits.ts'
import { createVisits } from '../../../src/engines/servers/proxy/visits.ts'
import type { Servers } from '../../../src/engines/servers/run/servers.ts'

export function directly(servers: Servers, limits: Partial<ServerLimits> = {}): Servers & ServerProjects {
  const visits = createVisits({
    route: (deploymentId, act) => act(servers.lane(deploymentId)),
    limits: { ...defaultLimits, ...limits },
    log: pino({ level: 'silent' }),
  })
  return { ...servers, ...visits }
}
