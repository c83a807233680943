// When production moves: at once for files, and for servers when the new one is healthy, so that no request fails.
import type { Logger } from 'pino'
import type { Host, Target } from './hosts.ts'
import type { Servers } from './servers/servers.ts'

export type Takeovers = {
  /** The database says that `host` shows `next`; `server` that it is a process and not files. */
  move(host: Host, next: Target | null, server: boolean): void
  /** The deployment is deleted. */
  gone(deploymentId: string): void
  dropProject(projectId: string): void
}

type Production = { host: Host; wanted: string | null }

// Servers that are warmed up side by side when the edge starts.
const startsAtOnce = 4

export function createTakeovers(servers: Servers | undefined, log: Logger): Takeovers {
  const productions = new Map<string, Production>()
  const coldStarts: string[] = []
  let starting = 0

  function assign(host: Host, next: Target | null): void {
    const before = host.target
    host.target = next
    if (before && before.deploymentId !== next?.deploymentId) retire(before.deploymentId)
  }

  function retire(deploymentId: string): void {
    servers?.retire(deploymentId).catch((err) => log.warn({ err, deploymentId }, 'a server could not be retired'))
  }

  /** The edge starts with everything switched already: its servers are called up so that the first visitor need not wait. */
  function warmUp(): void {
    while (starting < startsAtOnce && coldStarts.length > 0) {
      const deploymentId = coldStarts.shift()!
      starting++
      servers!
        .ready(deploymentId)
        .catch((err) => log.warn({ err, deploymentId }, 'a server did not start'))
        .finally(() => {
          starting--
          warmUp()
        })
    }
  }

  async function moveWhenReady(production: Production, next: Target): Promise<void> {
    try {
      await servers!.ready(next.deploymentId)
    } catch (err) {
      // The old one goes on; where there is none, the visitor is told why.
      log.warn({ err, deploymentId: next.deploymentId }, 'a server is not healthy and does not take over')
      if (production.host.target) {
        // What is wanted is forgotten, so that the next reading of the table tries again.
        if (production.wanted === next.deploymentId) production.wanted = production.host.target.deploymentId
        return
      }
    }
    if (production.wanted === next.deploymentId) assign(production.host, next)
    else retire(next.deploymentId)
  }

  return {
    move(host, next, server) {
      const wanted = next?.deploymentId ?? null
      const known = productions.get(host.projectId)
      const production = known ?? { host, wanted: null }
      if (!known) productions.set(host.projectId, production)
      // A table that was read anew begins with what is served now, not with what the database wants.
      if (production.host !== host) host.target = production.host.target
      production.host = host
      const pending = production.wanted === wanted
      production.wanted = wanted
      if ((host.target?.deploymentId ?? null) === wanted) return
      if (!servers || !next || !server) return assign(host, next)
      if (known) {
        if (!pending || host.target === null) void moveWhenReady(production, next)
        return
      }
      host.target = next
      coldStarts.push(next.deploymentId)
      warmUp()
    },
    gone: retire,
    dropProject(projectId) {
      const target = productions.get(projectId)?.host.target
      if (target) retire(target.deploymentId)
      productions.delete(projectId)
    },
  }
}
