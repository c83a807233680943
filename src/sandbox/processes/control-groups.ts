// Limits memory, processes and CPU time with Linux control groups, version 1 or 2.
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Limits, SandboxError } from './command.ts'

export type ControlGroups = {
  version: 1 | 2
  /** One per hierarchy, with the groups of runs below. */
  directories: string[]
  create(name: string, limits: Limits): Promise<ControlGroup>
}

export type ControlGroup = {
  /** A process that writes 0 into each of these joins the group, with all its later children. */
  entrances: string[]
  /** What ran out of memory if the kernel killed a process of the group: the group or the machine. */
  outOfMemory(): Promise<'group' | 'machine' | null>
  /** Kills all processes in the group. */
  remove(): Promise<void>
}

type Setting = [file: string, value: string, optional?: 'optional']
type Hierarchy = { directory: string; settings(limits: Limits): Setting[] }

const BELOW = 'berth'
const PERIOD_US = 100_000
const REMOVE_TIMEOUT_MS = 5000
/** The largest amount that a process requests at once. */
const HUGE_PAGE = 2 << 20
const bytes = (megabytes: number) => String(Math.round(megabytes * 1024 * 1024))
const quota = (cpus: number) => Math.round(cpus * PERIOD_US)

const VERSION_1: Record<string, Hierarchy['settings']> = {
  memory: ({ memoryMb }) => [
    ['memory.limit_in_bytes', bytes(memoryMb)],
    ['memory.memsw.limit_in_bytes', bytes(memoryMb), 'optional'],
  ],
  pids: ({ processes }) => [['pids.max', String(processes)]],
  cpu: ({ cpus }) => (cpus ? [['cpu.cfs_quota_us', String(quota(cpus)), 'optional']] : []),
}

const version2 = ({ memoryMb, processes, cpus }: Limits): Setting[] => [
  ['memory.max', bytes(memoryMb)],
  ['memory.swap.max', '0', 'optional'],
  // A build whose compiler was killed cannot succeed, so the whole group is killed.
  ['memory.oom.group', '1', 'optional'],
  ['pids.max', String(processes)],
  ...(cpus ? [['cpu.max', `${quota(cpus)} ${PERIOD_US}`, 'optional'] satisfies Setting] : []),
]

/** Undefined if unavailable: not Linux, not delegated, or mounted read-only as in plain containers. */
export async function openControlGroups(name: string, self = '/proc/self'): Promise<ControlGroups | undefined> {
  const mounts = await readMounts(self).catch(() => [])
  const version = mounts.some(({ type, controllers }) => type === 'cgroup2' && controllers.includes('memory')) ? 2 : 1
  const hierarchies = await (version === 2 ? openVersion2(mounts, name) : openVersion1(mounts, name))
  if (hierarchies === undefined) return undefined
  const directories = hierarchies.map(({ directory }) => directory)
  return {
    version,
    directories,
    create: (run, limits) => createGroup(hierarchies, run, limits),
  }
}

type Mount = { type: 'cgroup' | 'cgroup2'; controllers: string[]; top: string; own: string }

/** Where each hierarchy is mounted, and this process's group in it. */
async function readMounts(self: string): Promise<Mount[]> {
  const memberships = (await readFile(`${self}/cgroup`, 'utf8')).trim().split('\n')
  const mounts: Mount[] = []
  for (const line of (await readFile(`${self}/mountinfo`, 'utf8')).trim().split('\n')) {
    const [left = '', right = ''] = line.split(' - ')
    const [, , , root = '/', top = ''] = left.split(' ')
    const [type, , options = ''] = right.split(' ')
    if (type !== 'cgroup' && type !== 'cgroup2') continue
    const controllers =
      type === 'cgroup'
        ? options.split(',')
        : (await readFile(join(top, 'cgroup.controllers'), 'utf8').catch(() => '')).trim().split(' ')
    const membership = memberships.find((text) =>
      type === 'cgroup2'
        ? text.startsWith('0::')
        : text
            .split(':')[1]
            ?.split(',')
            .some((controller) => controllers.includes(controller)),
    )
    const path = membership?.split(':').slice(2).join(':') ?? '/'
    // A container may only see a part of the hierarchy, mounted as its root.
    const below = path.startsWith(root === '/' ? '/' : `${root}/`) || path === root ? path.slice(root.length) : ''
    mounts.push({ type, controllers, top, own: join(top, root === '/' ? path : below) })
  }
  return mounts
}

/** Below this process's group, so that Berth's own limits also apply to the commands it runs. */
async function openVersion1(mounts: Mount[], name: string): Promise<Hierarchy[] | undefined> {
  const hierarchies: Hierarchy[] = []
  for (const [controller, settings] of Object.entries(VERSION_1)) {
    const mount = mounts.find(({ type, controllers }) => type === 'cgroup' && controllers.includes(controller))
    const directory = mount && join(mount.own, name)
    const made =
      directory &&
      (await mkdir(directory).then(
        () => true,
        () => false,
      ))
    if (made) hierarchies.push({ directory, settings })
    else if (controller !== 'cpu') {
      for (const { directory } of hierarchies) await rmdir(directory)
      return undefined
    }
  }
  return hierarchies
}

/**
 * In version 2, a group with processes can't limit groups below it. So this process moves to a group below its own if it
 * may. Otherwise this tries the parent (delegated by systemd with DelegateSubgroup=, or a service's slice) and the root.
 */
async function openVersion2(mounts: Mount[], name: string): Promise<Hierarchy[] | undefined> {
  const { own, top } = mounts.find(({ type }) => type === 'cgroup2')!
  await moveBelow(own).catch(() => {})
  for (const parent of new Set([own, own === top ? top : dirname(own), top])) {
    const directory = join(parent, name)
    try {
      await enableControllers(parent)
      await mkdir(directory)
    } catch {
      continue
    }
    try {
      await enableControllers(directory)
      return [{ directory, settings: version2 }]
    } catch {
      await rmdir(directory)
    }
  }
  return undefined
}

/** Only leaves a group that is ours alone: a service's, or a container's, where process 1 is our parent. */
async function moveBelow(own: string): Promise<void> {
  if (basename(own) === BELOW) return
  const pids = (await readFile(join(own, 'cgroup.procs'), 'utf8')).trim().split('\n').map(Number)
  if (!pids.includes(process.pid) || !pids.every((pid) => pid === process.pid || pid === 1)) return
  const below = join(own, BELOW)
  await mkdir(below, { recursive: true })
  for (const pid of pids) await writeFile(join(below, 'cgroup.procs'), String(pid))
}

async function enableControllers(directory: string): Promise<void> {
  const file = join(directory, 'cgroup.subtree_control')
  const enabled = (await readFile(file, 'utf8').catch(() => '')).trim().split(' ')
  if (!['memory', 'pids'].every((name) => enabled.includes(name))) await writeFile(file, '+memory +pids')
  if (!enabled.includes('cpu')) await writeFile(file, '+cpu').catch(() => {})
}

async function createGroup(hierarchies: Hierarchy[], name: string, limits: Limits): Promise<ControlGroup> {
  const directories = hierarchies.map(({ directory }) => join(directory, name))
  const group: ControlGroup = {
    entrances: directories.map((directory) => join(directory, 'cgroup.procs')),
    outOfMemory: () => outOfMemory(directories),
    remove: () => removeGroup(directories),
  }
  try {
    for (const [index, { settings }] of hierarchies.entries()) {
      await mkdir(directories[index]!)
      for (const [file, value, optional] of settings(limits)) {
        const written = writeFile(join(directories[index]!, file), value)
        await (optional ? written.catch(() => {}) : written)
      }
    }
  } catch (error) {
    await group.remove()
    throw new SandboxError(`The limits of ${name} could not be set: ${(error as Error).message}`)
  }
  return group
}

/**
 * The kernel counts each killed process in its group, whether the group, one above it, or the machine ran out of memory.
 * Version 2 also counts how often the group itself did. Version 1 only shows whether the group ever reached its limit,
 * possibly by cached files, and then we assume it was the group. (memory.failcnt stays 0 in Linux 6.18.)
 */
async function outOfMemory(directories: string[]): Promise<'group' | 'machine' | null> {
  const read = async (name: string) => {
    const files = directories.map((one) => readFile(join(one, name), 'utf8').catch(() => ''))
    return (await Promise.all(files)).join('')
  }
  const hasKilled = (text: string) => /^oom_kill [1-9]/m.test(text)
  const events = await read('memory.events')
  if (hasKilled(events)) return /^oom [1-9]/m.test(events) ? 'group' : 'machine'
  if (!hasKilled(await read('memory.oom_control'))) return null
  const [most, limit] = await Promise.all([read('memory.max_usage_in_bytes'), read('memory.limit_in_bytes')])
  return Number(most) > Number(limit) - HUGE_PAGE ? 'group' : 'machine'
}

async function removeGroup(directories: string[]): Promise<void> {
  const deadline = Date.now() + REMOVE_TIMEOUT_MS
  for (const directory of directories) {
    for (;;) {
      const error = await rmdir(directory).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => error,
      )
      if (error === undefined || error.code === 'ENOENT') break
      if (Date.now() > deadline) throw error
      const pids = await readFile(join(directory, 'cgroup.procs'), 'utf8').catch(() => '')
      for (const pid of pids.split('\n').map(Number)) if (pid > 0) killQuietly(pid)
      await delay(5)
    }
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process ended meanwhile.
  }
}
