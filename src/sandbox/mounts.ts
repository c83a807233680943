// The file system that a sandbox sees, as arguments for bubblewrap.
import { lstat, readlink, stat } from 'node:fs/promises'
import { isAbsolute, join, normalize, resolve } from 'node:path'
import { SandboxError, type SandboxedCommand } from './processes/command.ts'
import type { Tools } from './programs/tools.ts'

export const BUILD = '/build'
export const HOME = '/home/build'
export const UID = 1000

// Certificates, link targets of /usr and the dynamic linker's cache. Never all of /etc, which contains keys.
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

/** Files for the sandbox's /etc. Without resolv.conf, only the proxy resolves names. */
export const ETC = {
  passwd: `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nbuild:x:${UID}:${UID}:build:${HOME}:/bin/sh\n`,
  group: `root:x:0:\nbuild:x:${UID}:\n`,
  hosts: '127.0.0.1 localhost\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
  // For a sandbox with its own network, where the forwarder answers DNS queries.
  'nsswitch-dns.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'resolv.conf': 'nameserver 127.0.0.1\n',
}

/** Replaces the host's boot id, by which builds could identify the machine. */
export const BOOT_ID = 'boot-id'
/** An empty file and an empty directory, to hide parts of /proc. */
export const NOTHING = { file: 'nothing', directory: 'nowhere' }

/** Replaces the host's CPU statistics, which reveal when neighbors are busy. */
export const STAT = 'stat'

/** A /proc/stat with the same number of processors, which programs count there, and zero activity. */
export function idleStat(text: string): string {
  const idle = text.split('\n').map((line) => {
    const [name = '', ...numbers] = line.split(' ')
    if (name === 'btime' || name === '') return line
    return [name, ...numbers.slice(0, 11).map((number) => (number === '' ? '' : '0'))].join(' ')
  })
  return idle.join('\n')
}

// What the kernel reveals about the host: boot parameters, keyrings, addresses, disks, timers, drivers and detailed
// load. Container engines hide much the same. What programs need stays visible: cpuinfo, version and most of /proc/sys.
// So do meminfo, loadavg and uptime, because sysinfo(2) reveals the same.
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

/** Mounts that hide parts of /proc. `from` is the directory with the replacements. */
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
    // Kernels differ, and mount points can't be created in /proc.
    if (await stat(path).catch(() => undefined)) found.push('--ro-bind', join(from, source), path)
  }
  return found
}

/** Maps names in /etc to the files above. `names` is whether DNS is available. */
export function etcFiles(names: boolean): Record<string, keyof typeof ETC> {
  const always = { passwd: 'passwd', group: 'group', hosts: 'hosts' } as const
  if (!names) return { ...always, 'nsswitch.conf': 'nsswitch.conf' }
  return { ...always, 'nsswitch.conf': 'nsswitch-dns.conf', 'resolv.conf': 'resolv.conf' }
}

/** The read-only system mounts that exist on this host. */
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
  /** Host paths that root binds to 0, 1, 2 … in the stage; empty if they are mounted directly. */
  staged: string[]
  workTree: string
  caches: { host: string; empty?: boolean }[]
}

/**
 * `stage` is where root binds paths that the sandbox's user couldn't reach, since data directories may be below closed
 * ones. Null if bubblewrap runs as this process's user.
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

/** Keeps `cwd` inside the work tree. A symlink on the way can't leave the sandbox. */
export function relative(cwd: string): string {
  const path = normalize(cwd)
  if (isAbsolute(path) || path === '..' || path.startsWith('../'))
    throw new SandboxError(`${cwd} leaves the work tree.`)
  return path
}

async function directory(path: string): Promise<string> {
  const absolute = resolve(path)
  const entry = await lstat(absolute).catch(() => undefined)
  // Not through a link, which a command could have left to get another directory mounted or its owner changed.
  if (!entry?.isDirectory()) throw new SandboxError(`${absolute} is no directory.`)
  return absolute
}

/** Bubblewrap would follow a link of the repository when it creates a mount point within the tree. */
function refuseRelative(inside: string): void {
  const plain = inside === normalize(inside) && isAbsolute(inside)
  if (!plain || inside.startsWith(`${BUILD}/`)) throw new SandboxError(`${inside} is no place for a mount.`)
}
