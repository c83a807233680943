// One run in bubblewrap from its mounts to its last process, and everything it needed removed.
import { chmod, chown, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { type Address, type Exit, SandboxError, type SandboxedCommand, type SandboxedProcess } from './command.ts'
import type { ControlGroups } from './control-groups.ts'
import { type Du, watchDisk } from './disk.ts'
import { certificateEnvironment, openEgress, proxyEnvironment } from './egress.ts'
import { type ForwarderPlan, PROXY_PORT } from './forwarder.ts'
import { launch } from './launcher.ts'
import { openListener } from './listener.ts'
import { ETC, HOME, planMounts, UID } from './mounts.ts'
import { outcome } from './outcome.ts'
import type { Tools } from './tools.ts'

export type Host = {
  bwrap: string
  runDirectory: string
  groups: ControlGroups | undefined
  /** Whom commands are outside, when Berth is root; null: whoever Berth is. */
  user: { uid: number; gid: number } | null
  tools: Tools
  system: string[]
  /** Measures directories from inside a sandbox. */
  du: Du
  inherited: number[]
  /** File with the filter of system calls; null where there is none for this architecture. */
  seccomp: string | null
}

const ISOLATION = [
  ...['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session', '--clearenv'],
  ...['--cap-drop', 'ALL', '--uid', String(UID), '--gid', String(UID), '--hostname', 'berth'],
]
const FORWARDER_INSIDE = '/opt/berth/forwarder.cjs'
const EGRESS_INSIDE = '/opt/berth/egress.sock'
const DEFAULT_PORT = 3000
// What bubblewrap and the forwarder need themselves, so that the command has all of its limits.
const OWN = { processes: 4, forwarderProcesses: 24, forwarderMb: 64 }
const LONGEST_TIMER_MS = 2 ** 31 - 1

let lastRun = 0

export function runInBubblewrap(host: Host, command: SandboxedCommand): SandboxedProcess {
  const stop = new AbortController()
  const { timeoutMs } = command.limits
  const deadline = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(() => stop.abort('timeout'), timeoutMs)
  const address = Promise.withResolvers<Address | null>()
  const exited = execute(host, command, stop, address.resolve).finally(() => clearTimeout(deadline))
  exited.catch(address.reject)
  // Whoever awaits neither must not bring the server down.
  address.promise.catch(() => {})
  return {
    exited,
    address: address.promise,
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
  tellAddress: (address: Address | null) => void,
): Promise<Exit> {
  const name = String(++lastRun)
  const directory = join(host.runDirectory, name)
  const cleanup: (() => Promise<unknown>)[] = []
  try {
    const mounts = await planMounts(command, host.tools, host.user && join(host.runDirectory, 'stage'))
    await mkdir(directory, { mode: 0o711 })
    cleanup.push(() => rm(directory, { recursive: true, force: true }))
    const options = [...ISOLATION, ...host.system]
    for (const file of Object.keys(ETC)) options.push('--ro-bind', join(host.runDirectory, 'etc', file), `/etc/${file}`)
    const environment: Record<string, string> = {
      ...(command.egress ? certificateEnvironment() : {}),
      PATH: host.tools.path,
      HOME,
      ...command.environment,
    }

    if (command.egress) {
      const socketPath = join(directory, 'egress.sock')
      const proxy = await openEgress(socketPath, command.egress)
      cleanup.push(() => proxy.close())
      await chmod(socketPath, 0o600)
      if (host.user) await chown(socketPath, host.user.uid, host.user.gid)
      options.push('--ro-bind', socketPath, EGRESS_INSIDE)
      Object.assign(environment, proxyEnvironment(command.egress))
    }
    const listenPort = command.listen ? (command.listen.port ?? DEFAULT_PORT) : null
    const listener = listenPort === null ? null : await openListener(directory)
    if (listener) {
      cleanup.push(async () => listener.server.close())
      environment.PORT = String(listenPort)
    }

    const forwarded = command.egress || listener
    const plan: ForwarderPlan | null = forwarded
      ? {
          argv: command.argv,
          environment,
          egress: command.egress ? EGRESS_INSIDE : null,
          proxyPort: PROXY_PORT,
          listenPort,
        }
      : null
    if (plan) options.push('--ro-bind', join(host.runDirectory, 'forwarder.cjs'), FORWARDER_INSIDE)
    else for (const [key, value] of Object.entries(environment)) options.push('--setenv', key, value)
    options.push(...mounts.arguments)
    refuseNul(options, command.argv)

    const { limits } = command
    const group = await host.groups?.create(name, {
      ...limits,
      memoryMb: limits.memoryMb + (plan ? OWN.forwarderMb : 0),
      processes: limits.processes + OWN.processes + (plan ? OWN.forwarderProcesses : 0),
    })
    if (group) cleanup.push(() => group.remove())
    if (stop.signal.aborted) return { code: null, signal: null, reason: stop.signal.reason }

    const inner = plan ? [host.tools.node, FORWARDER_INSIDE] : command.argv
    const launched = launch({
      bwrap: host.bwrap,
      // Counted for the user within this sandbox alone, so it is a limit of the whole.
      argv: group ? inner : ['prlimit', `--nproc=${limits.processes + OWN.forwarderProcesses}`, '--', ...inner],
      options,
      mounts,
      drop: host.user && { ...host.user, stage: join(host.runDirectory, 'stage') },
      entrances: group?.entrances ?? [],
      resourceLimits: ['--core=0', ...(limits.diskMb ? [`--fsize=${Math.ceil(limits.diskMb * 1024 * 1024)}`] : [])],
      plan: plan && JSON.stringify(plan),
      listener: listener?.descriptor ?? null,
      inherited: host.inherited,
      seccomp: host.seccomp,
    })
    // Ours accepts no connection from here on: the sandbox alone holds the socket.
    listener?.server.close()
    tellAddress(listener && { socketPath: listener.socketPath })
    const disk = limits.diskMb
      ? watchDisk({ tree: mounts.workTree, caches: mounts.caches }, limits.diskMb, () => stop.abort('disk'), host.du)
      : undefined
    return await outcome(launched, command, stop, group, disk)
  } finally {
    for (const clean of cleanup.reverse()) await clean()
  }
}

function refuseNul(options: string[], argv: string[]): void {
  // Bubblewrap's options are separated by NUL: one within a value would be an option of its own.
  if ([...options, ...argv].some((text) => text.includes('\0'))) throw new SandboxError('A value has a NUL in it.')
}
