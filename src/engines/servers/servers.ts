// The server projects of an edge: which servers run, which one gets a request, and which one is stopped to make room.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { onAbort } from '../../platform/abort.ts'
import type { Artifacts } from '../../platform/artifacts.ts'
import type { Snapshots } from '../../platform/snapshots.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { NewLogLine } from '../../services/deployments/deployment-logs.ts'
import { createEnvironments, type ServerSettings } from './environments.ts'
import { ServerUnavailable, ServerUnhealthy, sendFailure, sendFailureTo } from './failures.ts'
import { isGone } from './health.ts'
import { launch, withOutput } from './instance.ts'
import { defaultLimits, type ServerLimits } from './limits.ts'
import { createServerMetrics } from './metrics.ts'
import { createOutput } from './output.ts'
import { forward } from './proxy.ts'
import { createSupervisor, type Supervisor } from './supervisor.ts'
import { tunnel } from './tunnel.ts'

export type Servers = {
  /**
   * Starts the deployment's server if it does not run; resolves when it is healthy, and it stays up from then on.
   * Rejects with ServerUnavailable, whose message is for the deployment's owner; it may be called again.
   */
  ready(deploymentId: string): Promise<void>
  /** Marks the server as production's: restarted however often it fails, and not counted as on demand. */
  keep(deploymentId: string): void
  /**
   * Starts a deployment that has no visitors yet, to check that it answers. A healthy server keeps running until it is
   * released or stopped, unless `proofsOnly` is set; an unhealthy one is stopped. Rejects if the failure is not the
   * server's own fault.
   */
  prove(deploymentId: string, signal: AbortSignal): Promise<Proof>
  /** If the server does not run, as with previews, it is started and the request waits for it. */
  proxy(request: IncomingMessage, response: ServerResponse, target: { deploymentId: string }): void
  /** For the event `upgrade` of an HTTP server. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, target: { deploymentId: string }): void
  /**
   * The server is no longer kept up: it is stopped when its requests are done, or after `drainMs`. If it still gets
   * requests at its own address, it runs until it is idle.
   */
  retire(deploymentId: string): Promise<void>
  /** Stops the server now, with its requests and WebSockets; the next use or `ready` starts it again. */
  halt(deploymentId: string): Promise<void>
  close(): Promise<void>
}

export type Proof =
  | { healthy: false; reason: string }
  | {
      healthy: true
      /** The deployment is READY: the server runs on demand from now on. */
      release(): Promise<void>
      /** The deployment will not be READY. */
      stop(): Promise<void>
    }

export type ServersOptions = {
  sandbox: Sandbox
  artifacts: Pick<Artifacts, 'openTree'>
  /** Default `npm start`; run by a shell in the deployment's tree. */
  start?: { command: string }
  settingsOf(deploymentId: string): Promise<ServerSettings>
  writeLog(deploymentId: string, lines: NewLogLine[]): Promise<void>
  /** Removes the oldest lines of step `run`; without it a server's output is cut for good at `limits.log.bytes`. */
  trimLog?(deploymentId: string, keepBytes: number): Promise<void>
  /** `host:port` of services that servers may reach at a private address, unless they have no network. */
  privateHosts?(): Promise<string[]>
  log: Logger
  /** Default: a registry of its own. */
  registry?: Registry
  limits?: Partial<ServerLimits>
  /** This process only proves servers; visitors come to another one. */
  proofsOnly?: boolean
  /** Where settings are kept for a start without the database. */
  snapshots?: Snapshots | undefined
}

const sweepMs = 10_000

export function createServers(options: ServersOptions): Servers {
  const { sandbox, artifacts, log } = options
  const command = options.start?.command ?? 'npm start'
  const limits = { ...defaultLimits, ...options.limits }
  const environments = createEnvironments(options.settingsOf, options.snapshots)
  const supervisors = new Map<string, Supervisor>()
  const metrics = createServerMetrics(
    options.registry,
    () => [...supervisors.values()].filter(({ isUp }) => isUp).length,
  )
  let closed = false

  function supervisorOf(deploymentId: string): Supervisor {
    const known = supervisors.get(deploymentId)
    if (known) return known
    const { writeLog, trimLog } = options
    const output = createOutput(
      {
        write: (lines) => writeLog(deploymentId, lines),
        trim: trimLog && ((keepBytes) => trimLog(deploymentId, keepBytes)),
      },
      limits.log,
    )
    const supervisor: Supervisor = createSupervisor({
      limits,
      output,
      metrics,
      admit: () => makeRoom(supervisor),
      async launch(signal) {
        const { environment, network, secrets } = await environments.read(deploymentId)
        const privateHosts = (await options.privateHosts?.()) ?? []
        output.beginRun(secrets)
        output.system(`$ ${command}`)
        const { directory: workTree, root, release } = await artifacts.openTree(deploymentId)
        const rights = { environment, network, privateHosts, limits }
        try {
          const instance = await launch({ sandbox, workTree, root, command, ...rights, output, signal })
          void instance.ended.then(release)
          return instance
        } catch (error) {
          release()
          throw error
        }
      },
    })
    supervisors.set(deploymentId, supervisor)
    return supervisor
  }

  /** Anybody can request old previews one after the other, and each running server takes memory. */
  async function makeRoom(candidate: Supervisor): Promise<void> {
    const others = [...supervisors.values()].filter((one) => one !== candidate && one.onDemand)
    if (others.length < limits.onDemand) return
    const [idle] = others
      .filter(({ idleSinceMs }) => idleSinceMs !== undefined)
      .sort((a, b) => a.idleSinceMs! - b.idleSinceMs!)
    if (!idle) throw new ServerUnavailable('Too many servers run on demand, and all of them are busy.')
    await idle.stopIfIdle(0)
  }

  function sweep(): void {
    for (const [deploymentId, supervisor] of supervisors) {
      void supervisor.stopIfIdle(limits.idleMs)
      if (!supervisor.forgettable) continue
      // A last attempt: the log of a deleted deployment accepts nothing more, and retries would never end.
      void supervisor.output.flush()
      supervisors.delete(deploymentId)
      environments.forget(deploymentId)
    }
  }
  const sweeping = setInterval(sweep, Math.min(sweepMs, limits.idleMs))
  sweeping.unref()

  function note(deploymentId: string, err: Error): void {
    log.warn({ deploymentId, reason: err.message }, 'a request found no server')
  }

  async function prove(deploymentId: string, signal: AbortSignal): Promise<Proof> {
    signal.throwIfAborted()
    if (closed) throw new ServerUnavailable('The edge is stopping.')
    const supervisor = supervisorOf(deploymentId)
    const stop = () => supervisor.abandon('The build was ended')
    // A server of an earlier attempt runs with the files of that attempt.
    await stop()
    const unlisten = onAbort(signal, stop)
    try {
      signal.throwIfAborted()
      const instance = await supervisor.hold()
      await Promise.race([instance.ended, delay(limits.settleMs)])
      // On a busy machine the exit of a process is reported late; a probe finds at once that nothing listens any more.
      if (supervisor.isRunning(instance) && (await isGone(instance.address))) {
        await Promise.race([instance.ended, delay(limits.startMs)])
      }
      signal.throwIfAborted()
      if (!supervisor.isRunning(instance)) {
        const end = `The server ${await instance.ended} just after its first answer`
        throw new ServerUnhealthy(withOutput(end, supervisor.output.latest()))
      }
      // Stopped before the deployment is READY: the edge then starts its own, and two would take twice the memory.
      if (options.proofsOnly) await supervisor.abandon('It answers and is started where visitors come')
    } catch (error) {
      await stop()
      if (error instanceof ServerUnhealthy && !signal.aborted) return { healthy: false, reason: error.message }
      throw error
    } finally {
      unlisten()
      // The output must be in the log when the result is reported.
      await supervisor.output.flush()
    }
    return { healthy: true, stop, release: () => release(supervisor) }
  }

  async function release(supervisor: Supervisor): Promise<void> {
    supervisor.release()
    await makeRoom(supervisor).catch(() => {})
  }

  return {
    prove,
    async ready(deploymentId) {
      if (closed) throw new ServerUnavailable('The edge is stopping.')
      await supervisorOf(deploymentId).ready()
    },
    keep(deploymentId) {
      if (!closed) supervisorOf(deploymentId).keep()
    },
    proxy(request, response, { deploymentId }) {
      if (closed) return sendFailure(response, 503)
      const supervisor = supervisorOf(deploymentId)
      const { isRunning, checkForCrash } = supervisor
      const pass = (again: (() => void) | null) =>
        supervisor.use(
          (instance) =>
            forward(request, response, instance, { stallMs: limits.stallMs, isRunning, checkForCrash, again }),
          (error) => {
            note(deploymentId, error)
            sendFailure(response, 503)
          },
        )
      pass(() => pass(null))
    },
    upgrade(request, socket, head, { deploymentId }) {
      // A visitor who disconnects early must not cause an unhandled error.
      socket.on('error', () => socket.destroy())
      if (closed) return sendFailureTo(socket, 503)
      supervisorOf(deploymentId).use(
        (instance) => tunnel({ request, socket, head }, instance, limits),
        (error) => {
          note(deploymentId, error)
          sendFailureTo(socket, 503)
        },
      )
    },
    async retire(deploymentId) {
      await supervisors.get(deploymentId)?.retire()
    },
    async halt(deploymentId) {
      await supervisors.get(deploymentId)?.halt()
    },
    async close() {
      closed = true
      clearInterval(sweeping)
      await Promise.all([...supervisors.values()].map((one) => one.close()))
      supervisors.clear()
      await environments.close()
    },
  }
}
