// Moves production: to files immediately, to a server only once it is healthy, so that no request fails.
import type { Logger } from 'pino'
import type { ServerProjects } from './server-projects.ts'
import type { Host, Target } from './targets.ts'

export type Takeovers = {
  /** Moves `host` to what the database says. A barred host shows nothing, and its server stops immediately. */
  move(host: Host, next: Target | null, how: Move): void
  /** Stops the server of a deleted deployment. */
  retire(deploymentId: string): void
  /** Stops the server of a barred deployment immediately. */
  halt(deploymentId: string): void
  dropProject(projectId: string): void
  /** Stops all retries and starts. */
  close(): void
}

/** `instances` is 0 for files. `switching`: the platform waits until this edge shows the deployment. */
export type Move = { instances: number; switching: boolean }

type Production = { host: Host; wanted: string | null; move: Move; retry?: NodeJS.Timeout }

// Limits parallel starts of servers when the edge starts.
const maxParallelStarts = 4
// The build has already proved that the server starts, so a failure is most likely temporary. Each start costs a core.
const defaultRetryMs = 5_000

export function createTakeovers(
  servers: Pick<ServerProjects, 'ready' | 'retire' | 'halt'> | undefined,
  /** Called when a project's production shows what the database says, if the platform waits for that. */
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

  function reportShown({ move: { switching }, host: { projectId } }: Production, deploymentId: string): void {
    if (switching) onShown(projectId, deploymentId)
  }

  const shows = ({ host }: Production, deploymentId: string) => host.target?.deploymentId === deploymentId

  /** Without an old deployment to keep serving, requests wait for the start instead of getting an error page. */
  function showCold(production: Production, next: Target): void {
    production.host.target = next
    reportShown(production, next.deploymentId)
    coldStarts.push({ production, deploymentId: next.deploymentId })
    warmUp()
  }

  /** Starts servers a few at a time and logs those that fail. */
  function warmUp(): void {
    while (!closed && starting < maxParallelStarts && coldStarts.length > 0) {
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
      if (production.wanted === next.deploymentId) retryLater(production, next)
      return
    }
    if (production.wanted !== next.deploymentId) return retire(next.deploymentId)
    assign(production.host, next)
    reportShown(production, next.deploymentId)
  }

  /** The old deployment stays in service until then. */
  function retryLater(production: Production, next: Target): void {
    // Resets `wanted`, so that the next read of the table also retries.
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
    move(host, current, move) {
      const next = host.barred ? null : current
      const wanted = next?.deploymentId ?? null
      const known = productions.get(host.projectId)
      const production: Production = known ?? { host, wanted: null, move }
      production.move = move
      if (!known) productions.set(host.projectId, production)
      clearTimeout(production.retry)
      // A reloaded table starts with what is served now, not with what the database says.
      if (production.host !== host) host.target = production.host.target
      production.host = host
      const pending = production.wanted === wanted
      production.wanted = wanted
      if ((host.target?.deploymentId ?? null) !== wanted) {
        if (servers && next && move.instances > 0) return change(production, next, pending)
        assign(host, next)
      }
      // Also reports barred deployments: nobody shows them, so waiting for them would be in vain.
      if (current) reportShown(production, current.deploymentId)
    },
    retire,
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
