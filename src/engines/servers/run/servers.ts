// Manages this process's servers: one supervisor each, and a limit on those that run on demand.
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Registry } from 'prom-client'
import { onAbort } from '../../../platform/abort.ts'
import type { Artifacts } from '../../../platform/artifacts/artifacts.ts'
import type { Snapshots } from '../../../platform/database/snapshots.ts'
import type { Programs } from '../../../sandbox/programs/programs.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import type { NewLogLine } from '../../../services/deployments/index.ts'
import { ServerUnavailable, ServerUnhealthy } from '../instance/failures.ts'
import { isGone } from '../instance/health.ts'
import { launch } from '../instance/instance.ts'
import { defaultLimits, type ServerLimits } from '../instance/limits.ts'
import { createOutput } from '../instance/output.ts'
import type { Backend } from '../proxy/dispatcher.ts'
import { createEnvironments, type ServerSettings } from './environments.ts'
import { chooseEviction } from './eviction.ts'
import { createServerMetrics } from './metrics.ts'
import { programsOf } from './programs.ts'
import { resolveStart } from './start-script.ts'
import { createSupervisor, type RunState, type Supervisor } from './supervisor.ts'

/** A key is a deployment's id or, for one of several instances, `<id>/<term>`. */
export type Servers = {
  /**
   * Starts a server if it isn't running, and keeps it up once it is healthy. Rejects with ServerUnavailable, whose
   * message is for the deployment's owner; may be called again.
   */
  ready(key: string): Promise<void>
  /** Marks the server as production: it is restarted however often it fails, and doesn't count as on demand. */
  keep(key: string): void
  /** Starts the server as for a visitor, so it stops once idle. */
  wake(key: string): void
  /**
   * Starts a new deployment to check that it responds. A healthy server keeps running until it is released or stopped; an
   * unhealthy one is stopped. Rejects if the failure isn't the server's fault.
   */
  prove(key: string, signal: AbortSignal): Promise<Proof>
  /** A server, for requests of this process. */
  backend(key: string): Backend
  /** Connects requests of another process to the server. The connection counts as an exchange until it closes. */
  connect(key: string): Promise<Socket>
  /** Whether it runs, starts, or has waiting requests. */
  isWanted(key: string): boolean
  /**
   * Stops the server when its requests are done, or after `drainMs`. If it still gets requests at its own URL, it runs
   * until it is idle. `reason` is for its log.
   */
  retire(key: string, reason?: string): Promise<void>
  /** Stops the server now and aborts its requests and WebSockets. The next use or `ready` starts it again. */
  halt(key: string): Promise<void>
  close(): Promise<void>
}

export type Proof =
  | { healthy: false; reason: string; unplaced?: boolean }
  | {
      healthy: true
      /** Called when the deployment is READY: from now on, the server runs on demand. */
      release(): Promise<void>
      /** Called when the deployment won't become READY. */
      stop(): Promise<void>
    }

export type ServersOptions = {
  sandbox: Sandbox
  artifacts: Pick<Artifacts, 'openTree'>
  /** Default: the machine's own Node and npm. */
  programs?: Programs
  /** Overrides the command of every deployment. */
  start?: { command: string }
  settingsOf(deploymentId: string): Promise<ServerSettings>
  writeLog(deploymentId: string, lines: NewLogLine[]): Promise<void>
  /** Removes the oldest lines of step `run`. Without it, a server's output ends at `limits.log.bytes`. */
  trimLog?(deploymentId: string, keepBytes: number): Promise<void>
  /** `host:port` of services at private addresses that servers with a network may reach. */
  privateHosts?(): Promise<string[]>
  /** Default: its own registry. */
  registry?: Registry
  limits?: Partial<ServerLimits>
  /** Stores settings for starts without the database. */
  snapshots?: Snapshots | undefined
  /** Called on each change of a server's state, and with `stopped` when it is forgotten. */
  onState?(key: string, state: RunState, error?: Error): void
}

const sweepMs = 10_000
// How long a request waits for a crash to be reported, and how often it retries.
const crashNoticeMs = 10_000
const retryDelayMs = 100

const deploymentOf = (key: string) => key.split('/', 1)[0]!

export function createServers(options: ServersOptions): Servers {
  const { sandbox, artifacts, onState } = options
  const limits = { ...defaultLimits, ...options.limits }
  const environments = createEnvironments(options.settingsOf, options.snapshots)
  const supervisors = new Map<string, Supervisor>()
  const metrics = createServerMetrics(
    options.registry,
    () => [...supervisors.values()].filter(({ isUp }) => isUp).length,
  )
  let closed = false

  function supervisorOf(key: string): Supervisor {
    const known = supervisors.get(key)
    if (known) return known
    const { writeLog, trimLog } = options
    const deploymentId = deploymentOf(key)
    const instance = key.split('/')[1]
    const output = createOutput(
      {
        write: (lines) =>
          writeLog(deploymentId, instance === undefined ? lines : lines.map((line) => ({ ...line, instance }))),
        trim: trimLog && ((keepBytes) => trimLog(deploymentId, keepBytes)),
      },
      limits.log,
    )
    const supervisor: Supervisor = createSupervisor({
      limits,
      output,
      metrics,
      admit: () => makeRoom(key),
      onState: (state, error) => onState?.(key, state, error),
      async launch(signal) {
        const { environment, network, secrets, ...settings } = await environments.read(deploymentId)
        const command = options.start?.command ?? settings.command ?? 'npm start'
        const privateHosts = (await options.privateHosts?.()) ?? []
        output.startRun(secrets)
        output.system(`$ ${command}`)
        const tree = await artifacts.openTree(deploymentId)
        const { directory: workTree, root, release } = tree
        const rights = { network, privateHosts, limits }
        try {
          const programs = await programsOf(options.programs, tree)
          const start = await resolveStart(command, tree, environment)
          const instance = await launch({ sandbox, workTree, root, ...start, programs, ...rights, output, signal })
          void instance.ended.then(release)
          return instance
        } catch (error) {
          release()
          throw error
        }
      },
    })
    supervisors.set(key, supervisor)
    return supervisor
  }

  /** Anybody can request old previews one after the other, and each running server uses memory. */
  async function makeRoom(candidate: string): Promise<void> {
    const others = [...supervisors].filter(([key, one]) => key !== candidate && one.onDemand)
    if (others.length < limits.maxOnDemand) return
    const [idle] = others
      .map(([, one]) => one)
      .filter(({ idleSinceMs }) => idleSinceMs !== undefined)
      .sort((a, b) => a.idleSinceMs! - b.idleSinceMs!)
    if (idle) return void (await idle.stopIfIdle(0))
    const { owner } = await environments.read(deploymentOf(candidate))
    const placed = others.map(([key, server]) => ({ owner: environments.ownerOf(deploymentOf(key)), server }))
    const evicted = chooseEviction(placed, owner)
    if (!evicted) throw new ServerUnavailable('Too many servers run on demand, and all of them are busy.')
    evicted.output.system(
      'This account runs many servers on demand, so this one was stopped to make room for another account’s',
    )
    await evicted.halt()
  }

  function sweep(): void {
    for (const [key, supervisor] of supervisors) {
      void supervisor.stopIfIdle(limits.idleMs)
      if (!supervisor.forgettable) continue
      // A last attempt: the log of a deleted deployment accepts no more lines, so retries would never end.
      void supervisor.output.flush()
      supervisors.delete(key)
      const deploymentId = deploymentOf(key)
      const others = [...supervisors.keys()].some((other) => deploymentOf(other) === deploymentId)
      if (!others) environments.forget(deploymentId)
      onState?.(key, 'stopped')
    }
  }
  const sweeping = setInterval(sweep, Math.min(sweepMs, limits.idleMs))
  sweeping.unref()

  async function prove(key: string, signal: AbortSignal): Promise<Proof> {
    signal.throwIfAborted()
    if (closed) throw new ServerUnavailable('The runner is stopping.')
    const supervisor = supervisorOf(key)
    const stop = () => supervisor.abandon('The build has ended')
    // A server of an earlier attempt would run that attempt's files.
    await stop()
    const unlisten = onAbort(signal, stop)
    try {
      signal.throwIfAborted()
      const instance = await supervisor.hold()
      await Promise.race([instance.ended, delay(limits.settleMs)])
      // A busy machine reports exits late, while a probe immediately shows that nothing listens anymore.
      if (supervisor.isRunning(instance) && (await isGone(instance.connect))) {
        await Promise.race([instance.ended, delay(limits.startTimeoutMs)])
      }
      signal.throwIfAborted()
      if (!supervisor.isRunning(instance)) {
        const end = `The server ${await instance.ended} just after its first answer`
        throw new ServerUnhealthy(end)
      }
    } catch (error) {
      await stop()
      if (error instanceof ServerUnhealthy && !signal.aborted) return { healthy: false, reason: error.message }
      throw error
    } finally {
      unlisten()
      // The log must be complete when the result is reported.
      await supervisor.output.flush()
    }
    return { healthy: true, stop, release: () => release(key) }
  }

  async function release(key: string): Promise<void> {
    supervisorOf(key).release()
    await makeRoom(key).catch(() => {})
  }

  /** Retries if the server has crashed but that hasn't been reported yet. */
  function connect(key: string): Promise<Socket> {
    return new Promise((resolve, reject) => {
      if (closed) return reject(new ServerUnavailable('The runner is stopping.'))
      const supervisor = supervisorOf(key)
      const untilMs = performance.now() + crashNoticeMs
      const attempt = () =>
        supervisor.use((instance) => {
          let socket: Socket | undefined
          const done = instance.begin('request', () => socket?.destroy())
          instance.connect().then(
            (opened) => {
              socket = opened
              opened.once('close', done)
              opened.once('error', () => supervisor.checkForCrash(instance))
              resolve(opened)
            },
            (error: NodeJS.ErrnoException) => {
              done()
              supervisor.checkForCrash(instance)
              // The server has crashed, but its exit hasn't been reported yet.
              const isGone = error.code === 'ECONNREFUSED' || error.code === 'ENOENT'
              if (isGone && performance.now() < untilMs) setTimeout(attempt, retryDelayMs)
              else reject(error)
            },
          )
        }, reject)
      attempt()
    })
  }

  return {
    prove,
    connect,
    async ready(key) {
      if (closed) throw new ServerUnavailable('The runner is stopping.')
      await supervisorOf(key).ready()
    },
    keep(key) {
      if (!closed) supervisorOf(key).keep()
    },
    wake(key) {
      // `onState` reports failures.
      if (!closed)
        supervisorOf(key).use(
          () => {},
          () => {},
        )
    },
    backend(key) {
      const supervisor = () => supervisorOf(key)
      return {
        use(act, fail) {
          if (closed) return fail(new ServerUnavailable('The runner is stopping.'))
          supervisor().use(act, fail)
        },
        isRunning: (instance) => supervisors.get(key)?.isRunning(instance) ?? false,
        checkForCrash: (instance) => supervisors.get(key)?.checkForCrash(instance),
        get load() {
          return supervisors.get(key)?.load ?? 0
        },
      }
    },
    isWanted: (key) => supervisors.get(key)?.isWanted ?? false,
    async retire(key, why) {
      await supervisors.get(key)?.retire(why)
    },
    async halt(key) {
      await supervisors.get(key)?.halt()
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
