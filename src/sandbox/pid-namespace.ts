// Runs a command in a PID namespace with util-linux, so that all its processes die with the first, and that with Berth.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { type Contained, type Containment, type Place, signal } from './processes/containment.ts'
import { find } from './programs/tools.ts'

const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin'
const STARTED_FD = 3
const PROBE_TIMEOUT_MS = 5000
const LOOK_TIMEOUT_MS = 2000

// The parent may have died before PDEATHSIG was set.
const GUARD = `[ "$PPID" = "$0" ] || exit 1; exec "$@"`

// The first process waits for the command, adopts orphans and ignores SIGTERM. It discards the shell's message about a
// killed command. The subshell is needed because dash would otherwise redirect its own stderr.
const FIRST = `echo >&${STARTED_FD}; exec 4>&2 2>/dev/null; (exec "$@" 2>&4 ${STARTED_FD}>&- 4>&-); exit $?`

/** Undefined if unavailable: not Linux, no util-linux, or refused by the kernel or the container. */
export async function openPidNamespaces(searchPath: string): Promise<Containment | undefined> {
  if (process.platform !== 'linux') return undefined
  const path = `${searchPath}:${SYSTEM_PATH}`
  const [setpriv, unshare, setsid] = await Promise.all(['setpriv', 'unshare', 'setsid'].map((name) => find(name, path)))
  if (setpriv === undefined || unshare === undefined || setsid === undefined) return undefined
  for (const options of waysToUnshare()) {
    const wrap = (argv: string[]) => [
      ...[setpriv, '--pdeathsig', 'KILL', '/bin/sh', '-c', GUARD, String(process.pid)],
      ...[unshare, ...options, '--pid', '--fork', '--kill-child', '--'],
      // A new session, so that the process group for SIGTERM contains neither unshare nor Berth.
      ...[setsid, '/bin/sh', '-c', FIRST, 'berth', ...argv],
    ]
    const containment: Containment = {
      way: 'pid-namespace',
      note: 'Processes are held in a PID namespace, so none outlives its command.',
      start: (argv, place) => start(wrap(argv), place),
    }
    if (await works(containment)) return containment
  }
  return undefined
}

function waysToUnshare(): string[][] {
  // Without root, it needs a user namespace, which keeps the user (since util-linux 2.38) or maps it to root.
  const users = [['--user', '--map-current-user'], ['--map-root-user']]
  const all = process.getuid?.() === 0 ? [[], ...users] : users
  // Containers that mask parts of /proc forbid mounting it again. The outer /proc then shows other pids.
  return [...all.map((user) => [...user, '--mount-proc']), ...all]
}

async function works(containment: Containment): Promise<boolean> {
  const { child, kill, started } = containment.start(['/bin/sh', '-c', 'exit 7'], {
    cwd: '/',
    environment: {},
    stdin: 'ignore',
  })
  const late = setTimeout(kill, PROBE_TIMEOUT_MS)
  try {
    child.stdout.resume()
    child.stderr.resume()
    const [code] = (await once(child, 'close')) as [number | null]
    return code === 7 && started()
  } catch {
    return false
  } finally {
    clearTimeout(late)
  }
}

function start([program, ...rest]: string[], { cwd, environment, stdin }: Place): Contained {
  const child = spawn(program!, rest, {
    cwd,
    env: environment,
    detached: true,
    stdio: [stdin, 'pipe', 'pipe', 'pipe'],
  }) as unknown as Contained['child']
  let started = false
  const report = child.stdio[STARTED_FD] as Readable
  report
    .on('error', () => {})
    .on('data', () => {
      started = true
    })
  /** Outer pid of the first process, unshare's only child. Undefined if it has exited or is hidden. */
  const first = async () => {
    const endMs = performance.now() + LOOK_TIMEOUT_MS
    while (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      if (performance.now() > endMs) break
      const pid = childOf(child.pid)
      if (pid !== undefined) return pid
      await delay(2)
    }
    return undefined
  }
  const kill = async () => {
    const pid = await first()
    // Not unshare itself, which waits for the first process, whom the kernel reaps last.
    if (pid !== undefined) signal(pid, 'SIGKILL')
    else child.kill('SIGKILL')
  }
  return {
    child,
    kill,
    async terminate() {
      const pid = await first()
      // Without its own group, the command hasn't started yet.
      if (pid === undefined || !signal(-pid, 'SIGTERM')) await kill()
    },
    gone: async () => {},
    started: () => started,
  }
}

/** Scans all processes, because not every kernel lists children. Synchronous, because the grace period is short. */
function childOf(parent: number): number | undefined {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      if (Number(/.*\) \S (\d+)/s.exec(stat)?.[1]) === parent) return Number(name)
    } catch {
      // The process ended meanwhile.
    }
  }
  return undefined
}
