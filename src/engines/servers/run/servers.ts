// The servers that this process runs: each is started, watched and restarted, and one is stopped to make room.
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
import type { Lane } from '../proxy/visits.ts'
import { createEnvironments, type ServerSettings } from './environments.ts'
import { createServerMetrics } from './metrics.ts'
import { programsOf } from './programs.ts'
import { toLeave } from './shares.ts'
import { startOf } from './start-script.ts'
import { createSupervisor, type RunState, type Supervisor } from './supervisor.ts'

/** A key is the id of a deployment or, if it has several instances, `<id>/<term>`. */
export type Servers = {
  /**
   * Starts a server if it does not run; resolves when it is healthy, and it stays up from then on. Rejects with
   * ServerUnavailable, whose message is for the deployment's owner; it may be called again.
   */
  ready(key: string): Promise<void>
  /** Marks the server as production's: restarted however often it fails, and not counted as on demand. */
  keep(key: string): void
  /** Starts it as for a visitor: it is stopped when it is idle. */
  wake(key: string): void
  /**
   * Starts a deployment that has no visitors yet, to check that it answers. A healthy server keeps running until it is
   * released or stopped; an unhealthy one is stopped. Rejects if the failure is not the server's own fault.
   */
  prove(key: string, signal: AbortSignal): Promise<Proof>
  /** The way to a server for requests of this process. */
  lane(key: string): Lane
  /** A connection to the server for requests of another process; it counts as an exchange until it is closed. */
  connect(key: string): Promise<Socket>
  /** It runs or starts, or a request waits for it. */
  isWanted(key: string): boolean
  /**
   * The server is no longer kept up: it is stopped when its requests are done, or after `drainMs`. If it still gets
   * requests at its own address, it runs until it is idle. `why` is for its log.
   */
  retire(key: string, why?: string): Promise<void>
  /** Stops the server now, with its requests and WebSockets; the next use or `ready` starts it again. */
  halt(key: string): Promise<void>
  close(): Promise<void>
}

export type Proof =
  | { healthy: false; reason: string; unplaced?: boolean }
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
  /** Without it, every server runs on the Node and the npm of the machine. */
  programs?: Programs
  /** Instead of the command of each deployment. */
  start?: { command: string }
  settingsOf(deploymentId: string): Promise<ServerSettings>
  writeLog(deploymentId: string, lines: NewLogLine[]): Promise<void>
  /** Removes the oldest lines of step `run`; without it a server's output is cut for good at `limits.log.bytes`. */
  trimLog?(deploymentId: string, keepBytes: number): Promise<void>
  /** `host:port` of services that servers may reach at a private address, unless they have no network. */
  privateHosts?(): Promise<string[]>
  /** Default: a registry of its own. */
  registry?: Registry
  limits?: Partial<ServerLimits>
  /** Where settings are kept for a start without the database. */
  snapshots?: Snapshots | undefined
  /** Told of each change of a server; `stopped` also when it is forgotten. */
  onState?(key: string, state: RunState, error?: Error): void
}

const sweepMs = 10_000
// How long an edge waits at most for the end of a crashed server to be known, and how often it looks.
const noticeMs = 10_000
const againMs = 100

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
        output.beginRun(secrets)
        output.system(`$ ${command}`)
        const tree = await artifacts.openTree(deploymentId)
        const { directory: workTree, root, release } = tree
        const rights = { network, privateHosts, limits }
        try {
          const programs = await programsOf(options.programs, tree)
          const start = await startOf(command, tree, environment)
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

  /** Anybody can request old previews one after the other, and each running server takes memory. */
  async function makeRoom(candidate: string): Promise<void> {
    const others = [...supervisors].filter(([key, one]) => key !== candidate && one.onDemand)
    if (others.length < limits.onDemand) return
    const [idle] = others
      .map(([, one]) => one)
      .filter(({ idleSinceMs }) => idleSinceMs !== undefined)
      .sort((a, b) => a.idleSinceMs! - b.idleSinceMs!)
    if (idle) return void (await idle.stopIfIdle(0))
    const { owner } = await environments.read(deploymentOf(candidate))
    const placed = others.map(([key, server]) => ({ owner: environments.ownerOf(deploymentOf(key)), server }))
    const leaves = toLeave(placed, owner)
    if (!leaves) throw new ServerUnavailable('Too many servers run on demand, and all of them are busy.')
    leaves.output.system('Too many servers of this account run on demand: this one leaves for another account’s')
    await leaves.halt()
  }

  function sweep(): void {
    for (const [key, supervisor] of supervisors) {
      void supervisor.stopIfIdle(limits.idleMs)
      if (!supervisor.forgettable) continue
      // A last attempt: the log of a deleted deployment accepts nothing more, and retries would never end.
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
    const stop = () => supervisor.abandon('The build was ended')
    // A server of an earlier attempt runs with the files of that attempt.
    await stop()
    const unlisten = onAbort(signal, stop)
    try {
      signal.throwIfAborted()
      const instance = await supervisor.hold()
      await Promise.race([instance.ended, delay(limits.settleMs)])
      // On a busy machine the exit of a process is reported late; a probe finds at once that nothing listens any more.
      if (supervisor.isRunning(instance) && (await isGone(instance.connect))) {
        await Promise.race([instance.ended, delay(limits.startMs)])
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
      // The output must be in the log when the result is reported.
      await supervisor.output.flush()
    }
    return { healthy: true, stop, release: () => release(key) }
  }

  async function release(key: string): Promise<void> {
    supervisorOf(key).release()
    await makeRoom(key).catch(() => {})
  }

  /** If the server has just crashed, that may not be known yet: another attempt waits until it is. */
  function connect(key: string): Promise<Socket> {
    return new Promise((resolve, reject) => {
      if (closed) return reject(new ServerUnavailable('The runner is stopping.'))
      const supervisor = supervisorOf(key)
      const untilMs = performance.now() + noticeMs
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
              // The server crashed and its end is not known yet.
              const isGone = error.code === 'ECONNREFUSED' || error.code === 'ENOENT'
              if (isGone && performance.now() < untilMs) setTimeout(attempt, againMs)
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
      // A failure is told by `onState`.
      if (!closed)
        supervisorOf(key).use(
          () => {},
          () => {},
        )
    },
    lane(key) {
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
