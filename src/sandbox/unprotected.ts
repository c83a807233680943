// The driver for development without bubblewrap: a plain process group, with deadline, disk watch and kill.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { clearTimeout, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Address,
  type Exit,
  GRACE_MS,
  type Sandbox,
  SandboxError,
  type SandboxedCommand,
  type SandboxedProcess,
} from './command.ts'
import { watchDisk } from './disk.ts'
import { BUILD, relative } from './mounts.ts'
import { certificateEnvironment } from './proxy-environment.ts'
import type { SandboxOptions } from './sandbox.ts'

const LONGEST_TIMER_MS = 2 ** 31 - 1
// A grandchild in a session of its own may hold the output open for ever.
const OUTPUT_TIMEOUT_MS = 500

export function openUnprotected(options: SandboxOptions, cause: string): Sandbox {
  const running = new Set<SandboxedProcess>()
  return {
    driver: 'none',
    warning: `Commands run without a sandbox, with all rights of this server; for development only. ${cause}`,
    run(command) {
      const started = start(options, command)
      running.add(started)
      void started.exited.catch(() => {}).then(() => running.delete(started))
      return started
    },
    async close() {
      await Promise.all([...running].map((one) => one.kill()))
    },
  }
}

function start(options: SandboxOptions, command: SandboxedCommand): SandboxedProcess {
  const stop = new AbortController()
  const { timeoutMs } = command.limits
  const deadline = timeoutMs > LONGEST_TIMER_MS ? undefined : setTimeout(() => stop.abort('timeout'), timeoutMs)
  const address = command.listen ? freeAddress() : Promise.resolve(null)
  const exited = address
    .then((address) => execute(options, command, address, stop))
    .finally(() => clearTimeout(deadline))
  exited.catch(() => {})
  return {
    exited,
    address,
    async kill() {
      stop.abort('killed')
      await exited.catch(() => {})
    },
  }
}

async function execute(
  options: SandboxOptions,
  command: SandboxedCommand,
  address: { host: string; port: number } | null,
  stop: AbortController,
): Promise<Exit> {
  const workTree = resolve(command.workTree)
  const mounts = [{ host: workTree, inside: BUILD }, ...(command.caches ?? [])]
  const environment: Record<string, string> = {
    ...(command.network ? certificateEnvironment() : {}),
    PATH: `${dirname(process.execPath)}:${options.searchPath}`,
    HOME: tmpdir(),
    ...mapPaths(command.environment, mounts),
  }
  if (address) environment.PORT = String(address.port)
  const cwd = join(workTree, relative(command.cwd ?? '.'))
  if (stop.signal.aborted) return { code: null, signal: null, reason: stop.signal.reason }

  const [program, ...rest] = command.argv
  const child = spawn(program!, rest, {
    cwd,
    env: { ...environment, PWD: cwd },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.on('data', (chunk: Buffer) => command.onOutput('stdout', chunk))
  child.stderr.on('data', (chunk: Buffer) => command.onOutput('stderr', chunk))
  const closed = once(child, 'close').catch(() => {})
  const { diskMb } = command.limits
  const caches = (command.caches ?? []).map(({ host }) => host)
  const disk = diskMb ? watchDisk({ tree: workTree, caches }, diskMb, () => stop.abort('disk')) : undefined
  const signal = (name: NodeJS.Signals) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name)
    } catch {
      // The group is gone.
    }
  }
  let grace: NodeJS.Timeout | undefined
  const end = () => {
    if (stop.signal.reason !== 'killed') return signal('SIGKILL')
    signal('SIGTERM')
    grace = setTimeout(signal, GRACE_MS, 'SIGKILL')
  }
  stop.signal.addEventListener('abort', end)
  try {
    const [code, name] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    signal('SIGKILL')
    await Promise.race([closed, delay(OUTPUT_TIMEOUT_MS)])
    child.stdout.destroy()
    child.stderr.destroy()
    return { code, signal: name, reason: stop.signal.aborted ? stop.signal.reason : 'exit' }
  } catch (error) {
    throw new SandboxError(`${program} could not be started: ${(error as Error).message}`)
  } finally {
    disk?.stop()
    clearTimeout(grace)
    stop.signal.removeEventListener('abort', end)
  }
}

/** Nothing is mounted here, so variables that name a place inside name the host's instead. */
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

/** The wished-for port is the sandbox's own; on the host it may be taken. */
async function freeAddress(): Promise<Extract<Address, { host: string }>> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return { host: '127.0.0.1', port }
}
