// Watches how much a run writes, because plain directories have no quota.
import { execFile } from 'node:child_process'
import { statfs } from 'node:fs/promises'
import { clearTimeout, setTimeout } from 'node:timers'
import type { Cache } from './command.ts'

export type DiskWatch = {
  /** Measures now. */
  exceeded(): Promise<boolean>
  stop(): void
}

const TICK_MS = 200
// A walk of a large node_modules takes 0.1-0.3 s of a core, so it is made only if the limit may be reached, and
// otherwise less and less often: a server that writes nothing runs for months.
const WALK_EVERY_MS = { first: 5000, last: 300_000 }
const REST_PER_WALK = 5
// A tree that cannot be walked in this time is measured only by the file system's usage.
const WALK_TIMEOUT_MS = 120_000
// du counts no bytes for an empty file, but it takes an inode and a directory entry.
const INODE_KB = 1

/** The tree counts in full, caches only by their growth: they are not empty when a project builds again. */
export function watchDisk(
  { tree, caches }: { tree: string; caches: readonly Pick<Cache, 'host' | 'empty'>[] },
  limitMb: number,
  onExceeded: () => void,
  du: Du = runDu,
): DiskWatch {
  const limitKb = limitMb * 1024
  const paths = [tree, ...caches.map(({ host }) => host)]
  let baseKb = caches.every(({ empty }) => empty) ? 0 : undefined
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
    takenKb = await takenOf(tree)
    const found = await measure(du, paths)
    const cachesKb = found.kb.slice(1).reduce((sum, kb) => sum + kb, 0)
    baseKb ??= cachesKb
    const before = usedKb
    usedKb = (found.kb[0] ?? 0) + cachesKb - baseKb
    everyMs = usedKb === before ? Math.min(2 * everyMs, WALK_EVERY_MS.last) : WALK_EVERY_MS.first
    hidden ||= found.hidden
    const now = Date.now()
    restUntil = now + REST_PER_WALK * (now - started)
    dueAt = Math.max(restUntil, now + everyMs)
    return hidden || usedKb > limitKb
  }

  /** The file system's usage is cheap to read: until it grows by what is left, the limit cannot be reached. */
  async function tick(): Promise<void> {
    const grownKb = (await takenOf(tree)) - takenKb
    const now = Date.now()
    const due = now >= dueAt || (now >= restUntil && grownKb > (limitKb - usedKb) / 2)
    if (due && (await walk()) && !stopped) return onExceeded()
    if (!stopped) timer = setTimeout(() => void tick().catch(() => {}), TICK_MS).unref()
  }

  // Caches that are not empty are measured before the run adds to them. Otherwise this can wait: most runs are short.
  if (baseKb === undefined) void tick().catch(() => {})
  else timer = setTimeout(() => void tick().catch(() => {}), TICK_MS).unref()
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

/** Kilobytes, then inodes of each directory, a line each; errors are in `stderr`. */
export type Du = (directories: string[]) => Promise<{ stdout: string; stderr: string }>

// One shell for both counts. It follows no link, and stays on the file system it begins on.
const DU_SCRIPT = 'nice du -s -x -k "$@"; nice du -s -x --inodes "$@"'

/** By du, in a separate process: the walk would block the event loop and its thread pool. */
function startDu(program: string, argv: string[]): ReturnType<Du> {
  const options = {
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    maxBuffer: 1024 * 1024,
    timeout: WALK_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  } as const
  return new Promise((resolve) => {
    // Files may vanish during the walk, so the exit code is ignored.
    execFile(program, argv, options, (_error, stdout, stderr) => resolve({ stdout, stderr }))
  })
}

const runDu: Du = (directories) => startDu('/bin/sh', ['-c', DU_SCRIPT, 'du', ...directories])

/** By du in bubblewrap: the walk sees only the measured directories of the host, and cannot change them. */
export function duIn(bwrap: string, system: string[], root: boolean): Du {
  const apart = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try']
  // Root stays root, because a command may have made a directory unreadable to others.
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
    // Without root, a command can hide files in a directory that it made unreadable.
    hidden: stderr.includes('Permission denied'),
  }
}
