// Watches how much a run writes, since plain directories have no quota of their own.
import { execFile } from 'node:child_process'
import { statfs } from 'node:fs/promises'
import { clearTimeout, setTimeout } from 'node:timers'

export type DiskWatch = {
  /** Measures now. */
  exceeded(): Promise<boolean>
  stop(): void
}

const TICK_MS = 200
// A walk of a large node_modules takes 0.1-0.3 s of a core, so it is made when it could matter, and otherwise ever more
// rarely: a server that writes nothing runs for months.
const WALK_EVERY_MS = { first: 5000, last: 300_000 }
const REST_PER_WALK = 5
// A tree that cannot be walked in this time is measured by the file system's own count alone.
const WALK_TIMEOUT_MS = 120_000
// An empty file is no bytes for du, but an inode and an entry in its directory.
const INODE_KB = 1

/** The tree counts as a whole, the caches by what they grow: they are full already when a project builds again. */
export function watchDisk(
  paths: { tree: string; caches: string[] },
  limitMb: number,
  onExceeded: () => void,
  du: Du = runDu,
): DiskWatch {
  const limitKb = limitMb * 1024
  let baseKb: number | undefined
  let usedKb = 0
  let hidden = false
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  let everyMs = WALK_EVERY_MS.first
  let restUntil = 0
  let dueAt = 0
  let takenKb = 0

  async function walk(): Promise<boolean> {
    const started = Date.now()
    takenKb = await takenOf(paths.tree)
    const found = await measure(du, [paths.tree, ...paths.caches])
    const caches = found.kb.slice(1).reduce((sum, kb) => sum + kb, 0)
    baseKb ??= caches
    const before = usedKb
    usedKb = (found.kb[0] ?? 0) + caches - baseKb
    everyMs = usedKb === before ? Math.min(2 * everyMs, WALK_EVERY_MS.last) : WALK_EVERY_MS.first
    hidden ||= found.hidden
    const now = Date.now()
    restUntil = now + REST_PER_WALK * (now - started)
    dueAt = Math.max(restUntil, now + everyMs)
    return hidden || usedKb > limitKb
  }

  /** The file system's own count costs nothing: while it has not grown by what is left, the limit is not reached. */
  async function tick(): Promise<void> {
    const grownKb = (await takenOf(paths.tree)) - takenKb
    const now = Date.now()
    const due = now >= dueAt || (now >= restUntil && grownKb > (limitKb - usedKb) / 2)
    if (due && (await walk()) && !stopped) return onExceeded()
    if (!stopped) timer = setTimeout(() => void tick().catch(() => {}), TICK_MS).unref()
  }

  void tick().catch(() => {})
  return {
    exceeded: () => walk().catch(() => false),
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

async function takenOf(path: string): Promise<number> {
  const { blocks, bfree, bsize, files, ffree } = await statfs(path)
  return ((blocks - bfree) * bsize) / 1024 + (files - ffree) * INODE_KB
}

/** Kilobytes, then inodes of each directory, a line each; what it complains of is in `stderr`. */
export type Du = (directories: string[]) => Promise<{ stdout: string; stderr: string }>

// One shell for both counts. It follows no link, and stays on the file system it begins on.
const DU_SCRIPT = 'nice du -s -x -k "$@"; nice du -s -x --inodes "$@"'

/** By du, in a process of its own: the walk would hold up the event loop and its thread pool. */
function startDu(program: string, argv: string[]): ReturnType<Du> {
  const options = {
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    maxBuffer: 1024 * 1024,
    timeout: WALK_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  } as const
  return new Promise((resolve) => {
    // Files vanish during the walk, so its exit code says nothing.
    execFile(program, argv, options, (_error, stdout, stderr) => resolve({ stdout, stderr }))
  })
}

const runDu: Du = (directories) => startDu('/bin/sh', ['-c', DU_SCRIPT, 'du', ...directories])

/** By bubblewrap: the walk over what a command wrote sees nothing of the host but that, and can change none of it. */
export function duIn(bwrap: string, system: string[], root: boolean): Du {
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

async function measure(du: Du, paths: string[]): Promise<{ kb: number[]; hidden: boolean }> {
  const { stdout, stderr } = await du(paths)
  const numbers = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => Number.parseInt(line, 10))
  return {
    kb: paths.map((_, index) => (numbers[index] ?? 0) + (numbers[paths.length + index] ?? 0) * INODE_KB),
    // Without root, a directory that its owner closed to himself would hide what is in it.
    hidden: stderr.includes('Permission denied'),
  }
}
