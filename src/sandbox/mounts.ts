// What a sandbox sees of the file system, as arguments of bubblewrap.
import { lstat, readlink, stat } from 'node:fs/promises'
import { isAbsolute, join, normalize, resolve } from 'node:path'
import { SandboxError, type SandboxedCommand } from './processes/command.ts'
import type { Tools } from './programs/tools.ts'

export const BUILD = '/build'
export const HOME = '/home/build'
export const UID = 1000

// Certificates, link targets of /usr, and the dynamic linker's list; never all of /etc, which contains keys.
const SYSTEM_FILES = [
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/ld.so.cache',
  '/etc/localtime',
  '/etc/pki/ca-trust/extracted',
  '/etc/pki/tls/certs',
  '/etc/ssl/certs',
  '/etc/ssl/openssl.cnf',
]

/** Files written for the sandbox's /etc; without resolv.conf, only the proxy resolves names. */
export const ETC = {
  passwd: `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nbuild:x:${UID}:${UID}:build:${HOME}:/bin/sh\n`,
  group: `root:x:0:\nbuild:x:${UID}:\n`,
  hosts: '127.0.0.1 localhost\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
  // For a sandbox with its own network, where the forwarder answers DNS queries.
  'nsswitch-dns.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'resolv.conf': 'nameserver 127.0.0.1\n',
}

/** Written instead of the id of the host's boot, which tells builds of one machine from those of another. */
export const BOOT_ID = 'boot-id'
/** An empty file and an empty directory, which hide what is below /proc. */
export const NOTHING = { file: 'nothing', directory: 'nowhere' }

/** Written instead of what the processors of the host have done, which tells when neighbours work. */
export const STAT = 'stat'

/** A /proc/stat with the same processors, none of which has done anything: programs count them there. */
export function idleStat(text: string): string {
  const idle = text.split('\n').map((line) => {
    const [name = '', ...numbers] = line.split(' ')
    if (name === 'btime' || name === '') return line
    return [name, ...numbers.slice(0, 11).map((number) => (number === '' ? '' : '0'))].join(' ')
  })
  return idle.join('\n')
}

// What the kernel tells everybody about the host: its boot parameters, keyrings, addresses, disks, timers and drivers,
// and how busy it is in detail. Container engines hide much the same. What programs need stays: cpuinfo, version and
// most of /proc/sys; so do meminfo, loadavg and uptime, because sysinfo(2) tells the same.
const HIDDEN_FILES = [
  ...[
    'cmdline',
    'config.gz',
    'keys',
    'key-users',
    'modules',
    'kallsyms',
    'iomem',
    'ioports',
    'vmallocinfo',
    'interrupts',
    'softirqs',
    'vmstat',
    'zoneinfo',
    'buddyinfo',
    'schedstat',
  ],
  ...[
    'timer_list',
    'timer_stats',
    'sched_debug',
    'latency_stats',
    'diskstats',
    'partitions',
    'swaps',
    'mdstat',
    'locks',
  ],
  ...['sys/kernel/core_pattern', 'sys/fs/file-nr', 'sys/fs/inode-nr', 'sys/fs/inode-state', 'sys/fs/dentry-state'],
]
const HIDDEN_DIRECTORIES = ['acpi', 'asound', 'bus', 'driver', 'fs', 'irq', 'pressure', 'scsi']

/** Mounts over parts of /proc, for after it is mounted; `from` is the directory with what is shown instead. */
export async function hidingMounts(from: string): Promise<string[]> {
  const shown = [
    ...HIDDEN_FILES.map((name) => [name, NOTHING.file] as const),
    ...HIDDEN_DIRECTORIES.map((name) => [name, NOTHING.directory] as const),
    ['sys/kernel/random/boot_id', BOOT_ID] as const,
    ['stat', STAT] as const,
  ]
  const found: string[] = []
  for (const [name, source] of shown) {
    const path = join('/proc', name)
    // Not every kernel has them all, and nothing can be made in /proc.
    if (await stat(path).catch(() => undefined)) found.push('--ro-bind', join(from, source), path)
  }
  return found
}

/** Names in /etc, with the files above. */
export function etcFiles(names: boolean): Record<string, keyof typeof ETC> {
  const always = { passwd: 'passwd', group: 'group', hosts: 'hosts' } as const
  if (!names) return { ...always, 'nsswitch.conf': 'nsswitch.conf' }
  return { ...always, 'nsswitch.conf': 'nsswitch-dns.conf', 'resolv.conf': 'resolv.conf' }
}

/** Read-only mounts of the system, the same for every run, as far as they exist on this host. */
export async function systemMounts(): Promise<string[]> {
  const found: string[] = []
  for (const path of ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64']) {
    const entry = await lstat(path).catch(() => undefined)
    if (entry?.isSymbolicLink()) found.push('--symlink', await readlink(path), path)
    else if (entry?.isDirectory()) found.push('--ro-bind', path, path)
  }
  for (const path of SYSTEM_FILES) if (await stat(path).catch(() => undefined)) found.push('--ro-bind', path, path)
  return found
}

export type MountPlan = {
  arguments: string[]
  /** Host paths that root binds, in this order, to 0, 1, 2 … in the stage; empty when they are used as they are. */
  staged: string[]
  workTree: string
  caches: { host: string; empty?: boolean }[]
}

/**
 * `stage` is where root mounts what the sandbox's user cannot reach by its path: data directories and checkouts may be
 * below directories closed to others. Null if bubblewrap runs as the user of this process.
 */
export async function planMounts(command: SandboxedCommand, tools: Tools, stage: string | null): Promise<MountPlan> {
  const staged: string[] = []
  const source = (path: string) => (stage === null ? path : join(stage, String(staged.push(path) - 1)))
  const workTree = await directory(command.workTree)
  const caches: MountPlan['caches'] = []
  const half = String(Math.max(16, Math.round(command.limits.memoryMb / 2)) * 1024 * 1024)
  const temporary = (path: string, mode: string) => ['--perms', mode, '--size', half, '--tmpfs', path]
  const found = [
    ...['--proc', '/proc', '--dev', '/dev', ...temporary('/dev/shm', '1777'), '--remount-ro', '/dev'],
    ...[...temporary('/tmp', '1777'), ...temporary(HOME, '0700')],
    ...[command.writable === false ? '--ro-bind' : '--bind', source(workTree), BUILD],
  ]
  for (const { host, inside } of tools.mounts) found.push('--ro-bind', source(host), inside)
  for (const { target, inside } of tools.links) found.push('--symlink', target, inside)
  for (const { host, inside } of [...(command.programs ?? []), ...(command.readOnly ?? [])]) {
    refuseRelative(inside)
    found.push('--ro-bind', source(resolve(host)), inside)
  }
  for (const { host, inside, empty } of command.caches ?? []) {
    const cache = await directory(host)
    refuseRelative(inside)
    caches.push({ host: cache, empty })
    found.push('--bind', source(cache), inside)
  }
  found.push('--remount-ro', '/', '--chdir', join(BUILD, relative(command.cwd ?? '.')))
  return { arguments: found, staged, workTree, caches }
}

/** Inside the work tree, whatever the project's settings say; a symlink on the way stays within the sandbox. */
export function relative(cwd: string): string {
  const path = normalize(cwd)
  if (isAbsolute(path) || path === '..' || path.startsWith('../'))
    throw new SandboxError(`${cwd} leaves the work tree.`)
  return path
}

async function directory(path: string): Promise<string> {
  const absolute = resolve(path)
  const entry = await lstat(absolute).catch(() => undefined)
  // Not through a link: a command could have left one to have another directory mounted, or its owner changed.
  if (!entry?.isDirectory()) throw new SandboxError(`${absolute} is no directory.`)
  return absolute
}

/** Bubblewrap would follow a link of the repository when it creates a mount point within the tree. */
function refuseRelative(inside: string): void {
  const plain = inside === normalize(inside) && isAbsolute(inside)
  if (!plain || inside.startsWith(`${BUILD}/`)) throw new SandboxError(`${inside} is no place for a mount.`)
}
