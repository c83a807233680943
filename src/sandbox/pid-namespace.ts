// Holds a command in a PID namespace by util-linux: whatever it starts dies with the first process, and that with Berth.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { type Contained, type Containment, signal } from './containment.ts'
import { find } from './tools.ts'

const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin'
const STARTED_FD = 3
const PROBE_TIMEOUT_MS = 5000
const LOOK_TIMEOUT_MS = 2000

// The parent may have died before its death was subscribed to.
const GUARD = `[ "$PPID" = "$0" ] || exit 1; exec "$@"`

// The first process: waits for the command, takes in orphans, and is deaf to SIGTERM. What a shell says about a command
// that died by a signal is not the command's output; a subshell, because dash redirects its own stderr otherwise.
const FIRST = `echo >&${STARTED_FD}; exec 4>&2 2>/dev/null; (exec "$@" 2>&4 ${STARTED_FD}>&- 4>&-); exit $?`

/** Undefined where none can be made: not Linux, no util-linux, or a kernel or container that refuses. */
export async function openPidNamespaces(searchPath: string): Promise<Containment | undefined> {
  if (process.platform !== 'linux') return undefined
  const path = `${searchPath}:${SYSTEM_PATH}`
  const [setpriv, unshare, setsid] = await Promise.all(['setpriv', 'unshare', 'setsid'].map((name) => find(name, path)))
  if (setpriv === undefined || unshare === undefined || setsid === undefined) return undefined
  for (const options of waysToUnshare()) {
    const wrap = (argv: string[]) => [
      ...[setpriv, '--pdeathsig', 'KILL', '/bin/sh', '-c', GUARD, String(process.pid)],
      ...[unshare, ...options, '--pid', '--fork', '--kill-child', '--'],
      // A session of its own, so that the group that gets SIGTERM has neither unshare nor us in it.
      ...[setsid, '/bin/sh', '-c', FIRST, 'berth', ...argv],
    ]
    const containment: Containment = {
      way: 'pid-namespace',
      note: 'Processes are held in a PID namespace, so none outlives its command.',
      start: (argv, { cwd, environment }) => start(wrap(argv), cwd, environment),
    }
    if (await works(containment)) return containment
  }
  return undefined
}

function waysToUnshare(): string[][] {
  // Not root makes a user namespace first. Its own user stays itself (since util-linux 2.38), or looks like root.
  const users = [['--user', '--map-current-user'], ['--map-root-user']]
  const all = process.getuid?.() === 0 ? [[], ...users] : users
  // Containers that cover parts of /proc forbid a new one; the outer one then shows processes by other numbers.
  return [...all.map((user) => [...user, '--mount-proc']), ...all]
}

async function works(containment: Containment): Promise<boolean> {
  const { child, kill, started } = containment.start(['/bin/sh', '-c', 'exit 7'], { cwd: '/', environment: {} })
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

function start([program, ...rest]: string[], cwd: string, environment: Record<string, string>): Contained {
  const child = spawn(program!, rest, {
    cwd,
    env: environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  }) as unknown as Contained['child']
  let started = false
  const report = child.stdio[STARTED_FD] as Readable
  report
    .on('error', () => {})
    .on('data', () => {
      started = true
    })
  /** The outer number of the first process; unshare has no other child. Undefined when it has ended, or is hidden. */
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
    // Not unshare: the kernel lets the first process go only when all others are gone, and unshare waits for it.
    if (pid !== undefined) signal(pid, 'SIGKILL')
    else child.kill('SIGKILL')
  }
  return {
    child,
    kill,
    async terminate() {
      const pid = await first()
      // Without a group of its own it has not come to the command yet.
      if (pid === undefined || !signal(-pid, 'SIGTERM')) await kill()
    },
    gone: async () => {},
    started: () => started,
  }
}

/** Not every kernel keeps a list of children, so this looks at all processes; in one piece, for the grace is short. */
function childOf(parent: number): number | undefined {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      if (Number(/.*\) \S (\d+)/s.exec(stat)?.[1]) === parent) return Number(name)
    } catch {
      // It ended meanwhile.
    }
  }
  return undefined
}
