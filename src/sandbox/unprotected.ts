// The sandbox driver for development without bubblewrap: no protection, but deadlines, disk limits and process cleanup.
import { once } from 'node:events'
import { access, constants, mkdir } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { constants as system, tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import { onAbort } from '../platform/abort.ts'
import { BUILD, relative } from './mounts.ts'
import { connectTo } from './network/connect.ts'
import { certificateEnvironment } from './network/proxy-environment.ts'
import type { SandboxOptions } from './options.ts'
import { exit } from './outcome.ts'
import { openPidNamespaces } from './pid-namespace.ts'
import {
  type Exit,
  GRACE_MS,
  type Sandbox,
  SandboxError,
  type SandboxedCommand,
  type SandboxedProcess,
} from './processes/command.ts'
import type { Containment } from './processes/containment.ts'
import { feed } from './processes/descriptors.ts'
import { watchDisk } from './processes/disk.ts'
import { hear } from './processes/listening.ts'
import { openMarkers } from './processes/marker.ts'

const LONGEST_TIMER_MS = 2 ** 31 - 1
// All tracked processes have exited by then, so only an escaped one could keep the output open.
const OUTPUT_TIMEOUT_MS = 500

export async function openUnprotected(options: SandboxOptions, cause: string): Promise<Sandbox> {
  const running = new Set<SandboxedProcess>()
  const containment = await openContainment(options)
  return {
    driver: 'none',
    tellsOutOfMemory: false,
    warning: `Commands run without a sandbox, with all rights of this server; for development only. ${cause} ${containment.note}`,
    run(command) {
      const started = start(options, containment, command)
      running.add(started)
      void started.exited.catch(() => {}).then(() => running.delete(started))
      return started
    },
    makeDirectory: async (path) => void (await mkdir(path, { mode: 0o755 })),
    async close() {
      await Promise.all([...running].map((one) => one.kill()))
    },
  }
}

/** Uses the best method that works here, unless a test chooses one. */
async function openContainment({ searchPath, containment: way }: SandboxOptions): Promise<Containment> {
  const namespaces = way === 'marker' ? undefined : await openPidNamespaces(searchPath)
  if (way === 'pid-namespace' && namespaces === undefined) throw new SandboxError('No PID namespace can be made here.')
  return namespaces ?? openMarkers()
}

function start(options: SandboxOptions, containment: Containment, command: SandboxedCommand): SandboxedProcess {
  const stop = new AbortController()
  const { timeoutMs } = command.limits
  const deadline = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(() => stop.abort('timeout'), timeoutMs)
  const address = command.listen ? freeAddress() : Promise.resolve(null)
  const exited = address
    .then((address) => execute({ searchPath: options.searchPath, containment }, command, address, stop))
    .finally(() => clearTimeout(deadline))
  exited.catch(() => {})
  return {
    exited,
    connect: address.then((address) => address && ((options) => connectTo({ ...address, ...options }))),
    async kill() {
      stop.abort('killed')
      await exited.catch(() => {})
    },
  }
}

async function execute(
  { searchPath, containment }: { searchPath: string; containment: Containment },
  command: SandboxedCommand,
  address: { host: string; port: number } | null,
  stop: AbortController,
): Promise<Exit> {
  const workTree = resolve(command.workTree)
  const { caches: writable = [], readOnly = [], programs: mounted = [] } = command
  const mounts = [{ host: workTree, inside: BUILD }, ...writable, ...readOnly, ...mounted]
  const environment: Record<string, string> = {
    ...(command.network ? certificateEnvironment() : {}),
    PATH: `${dirname(process.execPath)}:${searchPath}`,
    HOME: tmpdir(),
    ...mapPaths(command.environment, mounts),
  }
  const programs = mounted.map(({ host, bin }) => resolve(host, bin))
  environment.PATH = [...programs, environment.PATH].join(delimiter)
  if (address) environment.PORT = String(address.port)
  const cwd = join(workTree, relative(command.cwd ?? '.'))
  const [name, ...rest] = command.argv
  const program = await locate(name!, cwd, environment.PATH!)
  if (stop.signal.aborted) return exit(null, stop.signal.reason)
  const contained = containment.start([program, ...rest], {
    cwd,
    environment: { ...environment, PWD: cwd },
    stdin: command.input ? 'pipe' : 'ignore',
  })
  const { child } = contained
  if (command.input) feed(child.stdin!, command.input)
  let errorOutput = ''
  if (command.readStdout) command.readStdout(child.stdout)
  else hear(child.stdout, (chunk) => command.onOutput('stdout', chunk))
  hear(child.stderr, (chunk) => {
    if (!contained.started()) errorOutput = (errorOutput + chunk.toString('latin1')).slice(-1000)
    command.onOutput('stderr', chunk)
  })
  const closed = once(child, 'close').catch(() => {})
  const { diskMb } = command.limits
  const caches = command.caches ?? []
  const disk = diskMb ? watchDisk({ tree: workTree, caches }, diskMb, () => stop.abort('disk')) : undefined
  let grace: NodeJS.Timeout | undefined
  let forced = false
  let ended = false
  const kill = () => {
    forced = true
    void contained.kill()
  }
  const end = () => {
    if (stop.signal.reason !== 'killed') return kill()
    // The grace period starts with the signal, which is sent once the command has started.
    void contained.terminate().then(() => {
      if (!ended) grace = setTimeout(kill, GRACE_MS)
    })
  }
  const unlisten = onAbort(stop.signal, end)
  try {
    const [code, signalName] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    ended = true
    clearTimeout(grace)
    await contained.gone()
    // A `readStdout` reader may still be reading the rest.
    if (!command.readStdout) {
      await Promise.race([closed, delay(OUTPUT_TIMEOUT_MS)])
      child.stdout.destroy()
    }
    child.stderr.destroy()
    const aborted = stop.signal.aborted
    if (!aborted && !contained.started()) throw new Error(errorOutput.trim() || 'no output')
    const own = code ?? (signalName === null ? null : 128 + system.signals[signalName])
    return exit(forced || !contained.started() ? null : own, aborted ? stop.signal.reason : 'exit')
  } catch (error) {
    throw new SandboxError(`${name} could not be started: ${(error as Error).message}`)
  } finally {
    disk?.stop()
    clearTimeout(grace)
    unlisten()
    await contained.gone()
  }
}

/** Finds a program like execvp, because a shell would prefer its own builtins. */
async function locate(name: string, cwd: string, path: string): Promise<string> {
  const places = name.includes('/') ? [cwd] : path.split(delimiter).filter(Boolean)
  for (const place of places) {
    const found = resolve(cwd, place, name)
    const usable = await access(found, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (usable) return found
  }
  throw new SandboxError(`${name} could not be started: there is no such program.`)
}

/** Replaces sandbox paths in variables by host paths, because nothing is mounted here. */
function mapPaths(
  environment: Record<string, string>,
  mounts: { host: string; inside: string }[],
): Record<string, string> {
  const map = (value: string) => {
    const mount = mounts.find(({ inside }) => value === inside || value.startsWith(`${inside}/`))
    return mount === undefined ? value : resolve(mount.host) + value.slice(mount.inside.length)
  }
  return Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, map(value)]))
}

/** A free port, because the requested one may be in use on the host. */
async function freeAddress(): Promise<{ host: string; port: number }> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return { host: '127.0.0.1', port }
}
