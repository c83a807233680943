// The driver for production: every run in namespaces of its own, made by bubblewrap.
import { randomBytes } from 'node:crypto'
import { access, chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Exit, type Sandbox, SandboxError, type SandboxedProcess } from './command.ts'
import { openControlGroups } from './control-groups.ts'
import { inheritedDescriptors } from './descriptors.ts'
import { DU_SCRIPT, type Du, startDu } from './disk.ts'
import { FORWARDER } from './forwarder.ts'
import { startJanitor } from './janitor.ts'
import { ETC, systemMounts } from './mounts.ts'
import { type Host, runInBubblewrap } from './run.ts'
import type { SandboxOptions } from './sandbox.ts'
import { seccompFilter } from './seccomp.ts'
import { find, findTools } from './tools.ts'

// Not root, so that whoever breaks out is nobody; not `nobody`, whose processes and files are others'. Debian and
// systemd leave the number unused, and it is below 65536, where the ids of most containers end.
const UNUSED_ID = 61_000

export async function openBubblewrap(options: SandboxOptions): Promise<Sandbox> {
  if (process.platform !== 'linux') throw new SandboxError('bubblewrap runs on Linux only.')
  const bwrap = await find('bwrap', options.searchPath)
  if (bwrap === undefined) throw new SandboxError('bubblewrap is not installed (Debian: apt install bubblewrap).')
  const root = process.getuid?.() === 0
  const runDirectory = await makeRunDirectory(options.runDirectory ?? (root ? '/run' : tmpdir()))
  const name = `berth-${process.pid}-${randomBytes(4).toString('hex')}`
  const groups = options.controlGroups === false ? undefined : await openControlGroups(name)
  const janitor = startJanitor(runDirectory, groups?.directories ?? [])
  const system = await systemMounts()
  const host: Host = {
    bwrap,
    runDirectory,
    groups,
    user: root ? (options.user ?? { uid: UNUSED_ID, gid: UNUSED_ID }) : null,
    tools: await findTools(options.searchPath),
    system,
    du: duIn(bwrap, system, root),
    inherited: inheritedDescriptors(),
    seccomp: await writeFilter(runDirectory),
  }
  const running = new Set<SandboxedProcess>()
  const sandbox: Sandbox = {
    driver: 'bubblewrap',
    warning: warningOf(host),
    run(command) {
      const started = runInBubblewrap(host, command)
      running.add(started)
      void started.exited.catch(() => {}).then(() => running.delete(started))
      return started
    },
    async makeDirectory(path) {
      await mkdir(path, { mode: 0o755 })
      if (host.user) await chown(path, host.user.uid, host.user.gid)
    },
    async close() {
      await Promise.all([...running].map((one) => one.kill()))
      await janitor.finish()
    },
  }
  await probe(sandbox, runDirectory).catch(async (error) => {
    await sandbox.close()
    throw error
  })
  return sandbox
}

/** Everybody may pass through: bubblewrap, as another user, looks for its mounts here. Nobody may list it. */
async function makeRunDirectory(parent: string): Promise<string> {
  const directory = await mkdtemp(join(parent, 'berth-'))
  await chmod(directory, 0o711)
  for (const name of ['etc', 'stage']) await mkdir(join(directory, name), { mode: 0o755 })
  for (const [name, text] of Object.entries(ETC)) await writeFile(join(directory, 'etc', name), text, { mode: 0o644 })
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

function warningOf({ groups, user, seccomp }: Host): string | null {
  const missing: string[] = []
  if (groups === undefined) {
    missing.push(
      'No control group can be made here, so memory is watched, not limited: run as root or in a delegated group.',
    )
  }
  if (user === null) missing.push('Berth is not root, so sandboxed commands have its own user outside the sandbox.')
  if (seccomp === null) missing.push(`No system call is refused on ${process.arch}, for which there is no filter.`)
  return missing.length === 0 ? null : missing.join(' ')
}

/** The walk over what a command wrote sees nothing of the host but that, and can change none of it. */
function duIn(bwrap: string, system: string[], root: boolean): Du {
  const apart = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try']
  // Root stays root, or a directory that a command closed to others would be closed to the walk too.
  const user = root ? ['--cap-drop', 'ALL', '--cap-add', 'CAP_DAC_READ_SEARCH'] : ['--unshare-user']
  const isolation = [...apart, ...user, '--die-with-parent', '--new-session', ...system]
  return (directories) => {
    const inside = directories.map((_, index) => `/${index}`)
    const mounts = directories.flatMap((directory, index) => ['--ro-bind', directory, inside[index]!])
    return startDu(bwrap, [...isolation, ...mounts, '--', '/bin/sh', '-c', DU_SCRIPT, 'du', ...inside])
  }
}

/** Whether it works is a matter of kernel settings, seccomp filters and security modules: only trying tells. */
async function probe(sandbox: Sandbox, runDirectory: string): Promise<void> {
  await access('/usr/bin/setpriv').catch(() => {
    throw new SandboxError('setpriv is not installed (Debian: apt install util-linux).')
  })
  let output = ''
  await sandbox.makeDirectory(join(runDirectory, 'probe'))
  const exit: Exit = await sandbox.run({
    argv: ['node', '--version'],
    workTree: join(runDirectory, 'probe'),
    environment: {},
    limits: { memoryMb: 512, processes: 64, timeoutMs: 20_000 },
    onOutput: (_stream, chunk) => {
      output += chunk
    },
  }).exited
  await rm(join(runDirectory, 'probe'), { recursive: true, force: true })
  if (exit.code !== 0) throw new SandboxError(`bubblewrap does not work here: ${output.trim() || JSON.stringify(exit)}`)
}
