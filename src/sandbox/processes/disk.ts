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
// Walking a large node_modules takes 0.1 to 0.3 s of CPU time, so it happens only if the limit may be reached, and
// otherwise less and less often: a server that writes nothing may run for months.
const WALK_EVERY_MS = { first: 5000, last: 300_000 }
const REST_PER_WALK = 5
// If walking a tree takes longer, only the file system's usage counts.
const WALK_TIMEOUT_MS = 120_000
// An empty file uses an inode and a directory entry, which du counts as zero bytes.
const INODE_KB = 1

/** Counts the whole tree, but only the growth of caches, which contain data from earlier builds. */
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

  /** The file system's usage is cheap to read. Until it grows by the remaining amount, the limit can't be reached. */
  async function tick(): Promise<void> {
    const grownKb = (await takenOf(tree)) - takenKb
    const now = Date.now()
    const due = now >= dueAt || (now >= restUntil && grownKb > (limitKb - usedKb) / 2)
    if (due && (await walk()) && !stopped) return onExceeded()
    if (!stopped) timer = setTimeout(() => void tick().catch(() => {}), TICK_MS).unref()
  }

  // Measures non-empty caches before the run adds to them. Otherwise this can wait, because most runs are short.
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

/** Prints kilobytes, then inodes, one line per directory. */
export type Du = (directories: string[]) => Promise<{ stdout: string; stderr: string }>

// One shell for both counts. Follows no links and stays on one file system.
const DU_SCRIPT = 'nice du -s -x -k "$@"; nice du -s -x --inodes "$@"'

/** Uses a separate process, because walking would block the event loop and its thread pool. */
function startDu(program: string, argv: string[]): ReturnType<Du> {
  const options = {
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    maxBuffer: 1024 * 1024,
    timeout: WALK_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  } as const
  return new Promise((resolve) => {
    // The exit code is ignored, because files may vanish during the walk.
    execFile(program, argv, options, (_error, stdout, stderr) => resolve({ stdout, stderr }))
  })
}

const runDu: Du = (directories) => startDu('/bin/sh', ['-c', DU_SCRIPT, 'du', ...directories])

/** Runs du in bubblewrap, which only sees the measured directories and can't change them. */
export function duIn(bwrap: string, system: string[], root: boolean): Du {
  const apart = ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try']
  // Root stays root, because commands may make directories unreadable to others.
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
    // Without root, commands can hide files in unreadable directories.
    hidden: stderr.includes('Permission denied'),
  }
}
