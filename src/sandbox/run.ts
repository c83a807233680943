// Runs one command in bubblewrap, from its mounts to the cleanup.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { type Launched, launch } from './launcher.ts'
import { etcFiles, HOME, planMounts, UID } from './mounts.ts'
import { connectTo } from './network/connect.ts'
import { openListener } from './network/listener.ts'
import type { Loopback } from './network/loopback.ts'
import { type NetworkHost, startNetwork } from './network/network.ts'
import { certificateEnvironment } from './network/proxy-environment.ts'
import { outcome } from './outcome.ts'
import {
  type Connect,
  DEFAULT_PORT,
  type Exit,
  SandboxError,
  type SandboxedCommand,
  type SandboxedProcess,
} from './processes/command.ts'
import type { ControlGroups } from './processes/control-groups.ts'
import { type Du, watchDisk } from './processes/disk.ts'
import { type ForwarderPlan, PROXY_PORT } from './processes/forwarder.ts'
import type { Tools } from './programs/tools.ts'

export type Host = NetworkHost & {
  bwrap: string
  runDirectory: string
  /** Mounts that hide host information in /proc. */
  hiding: string[]
  groups: ControlGroups | undefined
  tools: Tools
  system: string[]
  /** Null if connections to servers pass the forwarder. */
  loopback: Loopback | null
  /** Measures directories inside a sandbox. */
  du: Du
  /** File with the seccomp filter; null if there is none for this architecture. */
  seccomp: string | null
}

const UNSHARE = ['--unshare-all', '--unshare-user']
const ISOLATION = [
  ...['--disable-userns', '--die-with-parent', '--new-session', '--clearenv'],
  ...['--cap-drop', 'ALL', '--uid', String(UID), '--gid', String(UID), '--hostname', 'berth'],
]
const FORWARDER_INSIDE = '/opt/berth/forwarder.cjs'
const EGRESS_INSIDE = '/opt/berth/egress.sock'
const RESOLVER_INSIDE = '/opt/berth/resolver.sock'
// Added for bubblewrap, slirp4netns and the forwarder, so that the command has its full limits.
const OWN = { processes: 6, forwarderProcesses: 24, forwarderMb: 64 }
const LOSS_MS = 500
const LONGEST_TIMER_MS = 2 ** 31 - 1

let lastRun = 0

export function runInBubblewrap(host: Host, command: SandboxedCommand): SandboxedProcess {
  const stop = new AbortController()
  const { timeoutMs } = command.limits
  const deadline = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(() => stop.abort('timeout'), timeoutMs)
  const connect = Promise.withResolvers<Connect | null>()
  const exited = execute(host, command, stop, connect.resolve).finally(() => clearTimeout(deadline))
  exited.then(() => connect.resolve(null), connect.reject)
  // Not all callers await this, so a rejection must not be unhandled.
  connect.promise.catch(() => {})
  return {
    exited,
    connect: connect.promise,
    async kill() {
      stop.abort('killed')
      await exited.catch(() => {})
    },
  }
}

async function execute(
  host: Host,
  command: SandboxedCommand,
  stop: AbortController,
  tellConnect: (connect: Connect | null) => void,
): Promise<Exit> {
  const name = String(++lastRun)
  const directory = join(host.runDirectory, name)
  const cleanup: (() => Promise<unknown>)[] = []
  try {
    await mkdir(directory, { mode: 0o711 })
    cleanup.push(() => rm(directory, { recursive: true, force: true }))
    const { limits } = command
    const loopback = command.listen ? host.loopback : null
    const forwarded = Boolean(command.network || (command.listen && !loopback))
    // Group, network and mounts are prepared in parallel.
    const grouping = Promise.resolve(
      host.groups?.create(name, {
        ...limits,
        memoryMb: limits.memoryMb + (forwarded ? OWN.forwarderMb : 0),
        processes: limits.processes + OWN.processes + (forwarded ? OWN.forwarderProcesses : 0),
      }),
    )
    cleanup.push(() =>
      grouping.then(
        (group) => group?.remove(),
        () => {},
      ),
    )
    grouping.catch(() => {})
    const { signal } = stop
    const networking = command.network ? startNetwork(host, command.network, { directory, grouping, signal }) : null
    if (networking) cleanup.push(() => networking.close())
    const mounts = await planMounts(command, host.tools, host.user && join(host.runDirectory, 'stage'))
    const listenPort = command.listen ? (command.listen.port ?? DEFAULT_PORT) : null
    const listener = listenPort === null || loopback ? null : await openListener(directory)
    if (listener) cleanup.push(async () => listener.server.close())
    const group = await grouping
    const network = await networking?.opened.catch((error) => {
      if (signal.aborted) return undefined
      throw error
    })
    if (signal.aborted) return { code: null, signal: null, reason: signal.reason }

    const environment: Record<string, string> = {
      ...(network ? certificateEnvironment() : {}),
      PATH: host.tools.path,
      HOME,
      ...command.environment,
    }
    const programs = (command.programs ?? []).map(({ inside, bin }) => join(inside, bin))
    environment.PATH = [...programs, environment.PATH].join(':')
    Object.assign(environment, network?.environment(environment))
    if (listenPort !== null) environment.PORT = String(listenPort)
    const plan: ForwarderPlan | null = forwarded
      ? {
          argv: command.argv,
          environment,
          egress: network?.proxySocket ? EGRESS_INSIDE : null,
          proxyPort: PROXY_PORT,
          resolver: network?.resolverSocket ? RESOLVER_INSIDE : null,
          listenPort: listener && listenPort,
        }
      : null
    const options = [...UNSHARE, ...(network?.enter ? ['--share-net'] : []), ...ISOLATION, ...host.system]
    for (const [name, file] of Object.entries(etcFiles(network?.enter != null))) {
      options.push('--ro-bind', join(host.runDirectory, 'etc', file), `/etc/${name}`)
    }
    if (network?.proxySocket) options.push('--ro-bind', network.proxySocket, EGRESS_INSIDE)
    if (network?.resolverSocket) options.push('--ro-bind', network.resolverSocket, RESOLVER_INSIDE)
    if (plan) options.push('--ro-bind', join(host.runDirectory, 'forwarder.cjs'), FORWARDER_INSIDE)
    else for (const [key, value] of Object.entries(environment)) options.push('--setenv', key, value)
    options.push(...mounts.arguments, ...host.hiding)
    refuseNul(options, command.argv)

    const inner = plan ? [host.tools.node, FORWARDER_INSIDE] : command.argv
    const launched = launch({
      bwrap: host.bwrap,
      // RLIMIT_NPROC only counts the user's processes in this sandbox, so it limits the whole sandbox.
      argv: group ? inner : ['prlimit', `--nproc=${limits.processes + OWN.forwarderProcesses}`, '--', ...inner],
      options,
      mounts,
      enter: network?.enter ?? [],
      drop: host.user && { ...host.user, stage: join(host.runDirectory, 'stage') },
      entrances: group?.entrances ?? [],
      resourceLimits: ['--core=0', ...(limits.diskMb ? [`--fsize=${Math.ceil(limits.diskMb * 1024 * 1024)}`] : [])],
      // The forwarder starts while the network connects, but runs nothing before it gets the plan.
      plan: plan && Promise.resolve(network?.connected).then(() => JSON.stringify(plan)),
      input: command.input ?? null,
      listener: listener?.descriptor ?? null,
      inherited: host.inherited,
      seccomp: host.seccomp,
    })
    // From now on only the sandbox holds the socket.
    listener?.server.close()
    if (listener) tellConnect((options) => connectTo({ path: listener.socketPath, ...options }))
    const entering = loopback && enter(loopback, launched, listenPort!, tellConnect)
    entering?.catch(() => stop.abort('killed'))
    cleanup.push(async () => (await entering?.catch(() => null))?.close())
    const loss = network && watchLoss(network.lost, () => stop.abort('killed'))
    if (loss) cleanup.push(async () => loss.stop())
    const disk = limits.diskMb
      ? watchDisk({ tree: mounts.workTree, caches: mounts.caches }, limits.diskMb, () => stop.abort('disk'), host.du)
      : undefined
    const exit = await outcome(launched, command, stop, { group, disk })
    await entering
    if (!signal.aborted) await network?.connected
    if (loss?.acted()) throw new SandboxError('The network of the sandbox was lost: slirp4netns ended.')
    return exit
  } finally {
    for (const clean of cleanup.reverse()) await clean()
  }
}

async function enter(loopback: Loopback, launched: Launched, port: number, tell: (connect: Connect) => void) {
  const init = await launched.started
  const inside = init === undefined ? null : loopback.open(init, launched.child.pid!)
  if (inside) tell((options) => inside.connect(port, options))
  return inside
}

/** Stops a server that lost its network. The delay lets an out-of-memory kill be reported as such. */
function watchLoss(lost: Promise<void>, onLoss: () => void): { acted(): boolean; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let [acted, stopped] = [false, false]
  void lost.then(() => {
    if (stopped) return
    timer = setTimeout(() => {
      acted = true
      onLoss()
    }, LOSS_MS)
  })
  return {
    acted: () => acted,
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

function refuseNul(options: string[], argv: string[]): void {
  // NUL separates bubblewrap's options, so a NUL in a value would start another option.
  if ([...options, ...argv].some((text) => text.includes('\0'))) throw new SandboxError('A value has a NUL in it.')
}
