// Moves production: at once to files, to a server only when it is healthy, so that no request fails.
import type { Logger } from 'pino'
import type { ServerProjects } from './server-projects.ts'
import type { Host, Target } from './targets.ts'

export type Takeovers = {
  /**
   * The database says that `host` shows `next`. A barred host shows nothing, and its server is stopped at once.
   */
  move(host: Host, next: Target | null, how: Move): void
  /** The deployment is deleted. */
  gone(deploymentId: string): void
  /** The deployment's project is barred: its server is stopped at once. */
  halt(deploymentId: string): void
  dropProject(projectId: string): void
  /** Nothing moves from here on. */
  close(): void
}

/** `instances`: of its server; 0 for files. `switching`: the platform waits for this edge to show it. */
export type Move = { instances: number; switching: boolean }

type Production = { host: Host; wanted: string | null; move: Move; retry?: NodeJS.Timeout }

// Servers that are waited for in parallel when the edge starts.
const startsAtOnce = 4
// The server answered when the build proved it, so the failure is most likely temporary; each start costs a core.
const defaultRetryMs = 5_000

export function createTakeovers(
  servers: Pick<ServerProjects, 'ready' | 'retire' | 'halt'> | undefined,
  /** Told of each project whose production is shown as the database says, while the platform waits for that. */
  onShown: (projectId: string, deploymentId: string) => void,
  log: Logger,
  retryMs = defaultRetryMs,
): Takeovers {
  const productions = new Map<string, Production>()
  const coldStarts: { production: Production; deploymentId: string }[] = []
  let starting = 0
  let closed = false

  function assign(host: Host, next: Target | null): void {
    const before = host.target
    host.target = next
    if (!before || before.deploymentId === next?.deploymentId) return
    if (host.barred) halt(before.deploymentId)
    else retire(before.deploymentId)
  }

  function halt(deploymentId: string): void {
    servers?.halt(deploymentId).catch((err) => log.warn({ err, deploymentId }, 'a server could not be stopped'))
  }

  function retire(deploymentId: string): void {
    servers?.retire(deploymentId).catch((err) => log.warn({ err, deploymentId }, 'a server could not be retired'))
  }

  function tellShown({ move: { switching }, host: { projectId } }: Production, deploymentId: string): void {
    if (switching) onShown(projectId, deploymentId)
  }

  const shows = ({ host }: Production, deploymentId: string) => host.target?.deploymentId === deploymentId

  /** There is no old deployment to keep serving: requests wait for the start instead of getting an error page. */
  function showCold(production: Production, next: Target): void {
    production.host.target = next
    tellShown(production, next.deploymentId)
    coldStarts.push({ production, deploymentId: next.deploymentId })
    warmUp()
  }

  /** Waits for servers that are started, a few at a time, to tell of those that do not. */
  function warmUp(): void {
    while (!closed && starting < startsAtOnce && coldStarts.length > 0) {
      const { production, deploymentId } = coldStarts.shift()!
      // Replaced or deleted while it was queued.
      if (!shows(production, deploymentId)) continue
      starting++
      servers!
        .ready(deploymentId, 1)
        .then(
          () => void (shows(production, deploymentId) || retire(deploymentId)),
          (err) => log.warn({ err, deploymentId }, 'a server did not start'),
        )
        .finally(() => {
          starting--
          warmUp()
        })
    }
  }

  async function moveWhenReady(production: Production, next: Target): Promise<void> {
    try {
      await servers!.ready(next.deploymentId, production.move.instances)
    } catch (err) {
      log.warn({ err, deploymentId: next.deploymentId }, 'a server is not healthy and does not take over')
      if (production.wanted === next.deploymentId) tryLater(production, next)
      return
    }
    if (production.wanted !== next.deploymentId) return retire(next.deploymentId)
    assign(production.host, next)
    tellShown(production, next.deploymentId)
  }

  /** The old deployment is served meanwhile. */
  function tryLater(production: Production, next: Target): void {
    // Resets `wanted`, so that the next read of the table tries again too.
    production.wanted = production.host.target?.deploymentId ?? null
    if (closed) return
    production.retry = setTimeout(() => {
      production.wanted = next.deploymentId
      void moveWhenReady(production, next)
    }, retryMs)
    production.retry.unref()
  }

  function change(production: Production, next: Target, pending: boolean): void {
    if (production.host.target === null) showCold(production, next)
    else if (!pending) void moveWhenReady(production, next)
  }

  return {
    move(host, given, move) {
      const next = host.barred ? null : given
      const wanted = next?.deploymentId ?? null
      const known = productions.get(host.projectId)
      const production: Production = known ?? { host, wanted: null, move }
      production.move = move
      if (!known) productions.set(host.projectId, production)
      clearTimeout(production.retry)
      // A newly loaded table starts with what is served now, not with what the database says.
      if (production.host !== host) host.target = production.host.target
      production.host = host
      const pending = production.wanted === wanted
      production.wanted = wanted
      if ((host.target?.deploymentId ?? null) !== wanted) {
        if (servers && next && move.instances > 0) return change(production, next, pending)
        assign(host, next)
      }
      // What is barred is shown nowhere, and waited for in vain.
      if (given) tellShown(production, given.deploymentId)
    },
    gone: retire,
    halt,
    dropProject(projectId) {
      const production = productions.get(projectId)
      if (!production) return
      productions.delete(projectId)
      clearTimeout(production.retry)
      production.wanted = null
      assign(production.host, null)
    },
    close() {
      closed = true
      for (const { retry } of productions.values()) clearTimeout(retry)
    },
  }
}
