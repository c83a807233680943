// The sandbox driver for production: bubblewrap runs every command in its own namespaces.

import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { access, chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BOOT_ID, ETC, hidingMounts, idleStat, NOTHING, STAT, systemMounts } from './mounts.ts'
import { openLoopback } from './network/loopback.ts'
import type { SandboxOptions } from './options.ts'
import { startCleanup } from './processes/cleanup.ts'
import {
  type Network,
  type Sandbox,
  SandboxError,
  type SandboxedCommand,
  type SandboxedProcess,
} from './processes/command.ts'
import { openControlGroups } from './processes/control-groups.ts'
import { inheritedDescriptors } from './processes/descriptors.ts'
import { duIn } from './processes/disk.ts'
import { FORWARDER } from './processes/forwarder.ts'
import { find, findNamespaceTools, findTools } from './programs/tools.ts'
import { deviceRemedy, remedyOf } from './remedy.ts'
import { type Host, runInBubblewrap } from './run.ts'
import { seccompFilter } from './seccomp.ts'

// Not root, so that an escaped command has no privileges; not `nobody`, which other programs use. Debian and systemd
// leave this id unused, and it is below 65536, where the ids of most containers end. The network helpers use the next
// id, so that an escaped command can't control them either.
const UNUSED_ID = 61_000

export async function openBubblewrap(options: SandboxOptions): Promise<Sandbox> {
  if (process.platform !== 'linux') throw new SandboxError('bubblewrap runs on Linux only.')
  const bwrap = await find('bwrap', options.searchPath)
  if (bwrap === undefined) throw new SandboxError('bubblewrap is not installed (Debian: apt install bubblewrap).')
  const root = process.getuid?.() === 0
  const runDirectory = await makeRunDirectory(options.runDirectory ?? (root ? '/run' : tmpdir())).catch(
    async ({ message }: Error) => {
      throw await cannotBeMade(message)
    },
  )
  const name = `berth-${process.pid}-${randomBytes(4).toString('hex')}`
  const groups = options.controlGroups === false ? undefined : await openControlGroups(name)
  const cleanup = startCleanup(runDirectory, groups?.directories ?? [])
  const system = await systemMounts()
  const user = root ? (options.user ?? { uid: UNUSED_ID, gid: UNUSED_ID }) : null
  const network = await findNamespaceTools(options.searchPath)
  const host: Host = {
    bwrap,
    runDirectory,
    groups,
    user,
    helper: user && { uid: user.uid + 1, gid: user.gid + 1 },
    namespaces: 'missing' in network ? null : network,
    ownAddresses: options.ownAddresses ?? [],
    resolvers: options.resolvers ?? [],
    tools: await findTools(options.searchPath),
    system,
    hiding: await hidingMounts(join(runDirectory, 'etc')),
    loopback: options.forwardConnections ? null : await openLoopback(),
    du: duIn(bwrap, system, root),
    inherited: inheritedDescriptors(),
    seccomp: await writeFilter(runDirectory),
  }
  const running = new Set<SandboxedProcess>()
  const run = (command: SandboxedCommand) => {
    const started = runInBubblewrap(host, command)
    running.add(started)
    void started.exited.catch(() => {}).then(() => running.delete(started))
    return started
  }
  const makeDirectory = async (path: string) => {
    await mkdir(path, { mode: 0o755 })
    if (user) await chown(path, user.uid, user.gid)
  }
  const close = async () => {
    await Promise.all([...running].map((one) => one.kill()))
    await cleanup.finish()
  }
  try {
    await makeDirectory(join(runDirectory, 'probe'))
    const probes = [probe(run, runDirectory), probeNetwork(run, host), probeLoopback(run, host)] as const
    const [, networkFault, enterable] = await Promise.all(probes)
    if (!enterable) host.loopback = null
    if (networkFault !== null) host.namespaces = null
    const fault = 'missing' in network ? network.missing : networkFault
    const warning = warningOf(host, fault)
    return { driver: 'bubblewrap', warning, tellsOutOfMemory: groups !== undefined, run, makeDirectory, close }
  } catch (error) {
    await close()
    throw error
  } finally {
    await rm(join(runDirectory, 'probe'), { recursive: true, force: true })
  }
}

/** Mode --x for others: bubblewrap runs as another user and needs its mounts here, but can't list them. */
async function makeRunDirectory(parent: string): Promise<string> {
  const directory = await mkdtemp(join(parent, 'berth-'))
  await chmod(directory, 0o711)
  for (const name of ['etc', 'stage']) await mkdir(join(directory, name), { mode: 0o755 })
  for (const [name, text] of Object.entries(ETC)) await writeFile(join(directory, 'etc', name), text, { mode: 0o644 })
  await mkdir(join(directory, 'etc', NOTHING.directory), { mode: 0o755 })
  const stat = idleStat(await readFile('/proc/stat', 'utf8'))
  const shown = { [NOTHING.file]: '', [BOOT_ID]: `${randomUUID()}\n`, [STAT]: stat }
  for (const [name, text] of Object.entries(shown)) await writeFile(join(directory, 'etc', name), text, { mode: 0o644 })
  await writeFile(join(directory, 'forwarder.cjs'), FORWARDER, { mode: 0o644 })
  return directory
}

async function writeFilter(runDirectory: string): Promise<string | null> {
  const filter = seccompFilter()
  if (filter === null) return null
  const path = join(runDirectory, 'seccomp.bpf')
  await writeFile(path, filter, { mode: 0o600 })
  return path
}

function warningOf({ groups, user, seccomp }: Host, networkFault: string | null): string | null {
  const missing: string[] = []
  if (groups === undefined) {
    missing.push(
      'No control group can be created, so memory is watched, not limited: run as root or in a delegated group.',
    )
  }
  if (user === null) missing.push('Berth is not root, so sandboxed commands have its own user outside the sandbox.')
  if (seccomp === null) missing.push(`No system call is refused on ${process.arch}, for which there is no filter.`)
  if (networkFault !== null) {
    missing.push(
      `${networkFault} So sandboxed commands reach the internet by an HTTP proxy only, not over TCP and UDP.`,
    )
  }
  return missing.length === 0 ? null : missing.join(' ')
}

type Run = Sandbox['run']

/** Runs a test command, because kernel settings, seccomp filters and security modules may all prevent it. */
async function probe(run: Run, runDirectory: string): Promise<void> {
  await access('/usr/bin/setpriv').catch(() => {
    throw new SandboxError('setpriv is not installed (Debian: apt install util-linux).')
  })
  const fault = await faultOf(run, runDirectory, null)
  if (fault !== null) throw await cannotBeMade(fault)
}

/** One sentence, with the remedy if it is known. */
async function cannotBeMade(fault: string): Promise<SandboxError> {
  const remedy = await remedyOf()
  return new SandboxError(`Sandboxes cannot be made here (${fault})${remedy === '' ? '' : `: ${remedy}`}.`)
}

/** Why sandboxes can't have their own network, or null. Never fails the sandbox. */
async function probeNetwork(run: Run, { namespaces, runDirectory, user }: Host): Promise<string | null> {
  if (namespaces === null) return null
  const fault = await faultOf(run, runDirectory, { reach: 'public', private: [] })
  return fault && `slirp4netns and nft do not work here (${fault}).${await deviceRemedy(user !== null)}`
}

/** Whether connections can be opened in a sandbox's namespace, which requires access to its processes. */
async function probeLoopback(run: Run, { loopback, runDirectory }: Host): Promise<boolean> {
  if (loopback === null) return false
  const started = run({
    argv: ['sleep', '20'],
    workTree: join(runDirectory, 'probe'),
    environment: {},
    limits: { memoryMb: 64, processes: 8, timeoutMs: 20_000 },
    listen: {},
    onOutput: () => {},
  })
  try {
    const socket = await (await started.connect)?.()
    if (!socket) return false
    // Nothing listens there, but a busy machine may refuse the connection late.
    const [error] = await once(socket, 'error', { signal: AbortSignal.timeout(10_000) }).finally(() => socket.destroy())
    return error.code === 'ECONNREFUSED'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  } finally {
    await started.kill()
  }
}

/** Null if a command runs; otherwise its error output in one line. */
async function faultOf(run: Run, runDirectory: string, network: Network | null): Promise<string | null> {
  let output = ''
  const exit = await run({
    argv: ['node', '--version'],
    workTree: join(runDirectory, 'probe'),
    environment: {},
    limits: { memoryMb: 512, processes: 64, timeoutMs: 20_000 },
    network,
    onOutput: (_stream, chunk) => {
      output += chunk
    },
  }).exited.catch((error: Error) => {
    output = error.message.replace(/^The sandbox could not be started: /, '')
    return { code: null }
  })
  return exit.code === 0 ? null : output.trim().replace(/\s+/g, ' ').replace(/\.$/, '') || JSON.stringify(exit)
}
