// Starts bubblewrap so that limits, user and mounts are in place before anything untrusted runs.
import type { ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import type { MountPlan } from './mounts.ts'
import { feed, type Stdio, spawnClean } from './processes/descriptors.ts'
import { PLAN_FD } from './processes/forwarder.ts'

export type Launch = {
  bwrap: string
  argv: string[]
  /** Options for bubblewrap. They may contain secrets, so they are passed where `ps` doesn't show them. */
  options: string[]
  mounts: MountPlan
  /** Set when this process is root. */
  drop: { uid: number; gid: number; stage: string } | null
  /** Command prefix that enters the network namespace; empty if bubblewrap creates one. */
  enter: string[]
  /** Control groups to enter. */
  entrances: string[]
  /** Options of prlimit for all processes, including bubblewrap. */
  resourceLimits: string[]
  /**
   * The forwarder waits for its plan and exits if it rejects. A listener requires a plan, whose descriptor comes before
   * the listener's.
   */
  plan: Promise<string> | null
  /** The command's standard input. */
  input: Promise<string> | null
  listener: number | null
  /** Inherited descriptors to hide. */
  inherited: number[]
  /** File with the filter of system calls. */
  seccomp: string | null
}

const STATUS_FD = 3
const OPTIONS_FD = 4
// Opened by the shell, replacing any inherited one; the highest number that a POSIX shell supports.
const SECCOMP_FD = 9

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A shell does the privileged steps and then becomes bubblewrap, keeping its pid. */
function script(launch: Launch): string {
  const { drop, mounts } = launch
  const lines = ['set -e']
  if (drop !== null) {
    // In its own mount namespace: invisible to the host, and removed when the run ends.
    lines.push(`mount -t tmpfs -o mode=0711 berth ${quote(drop.stage)}`, `cd ${quote(drop.stage)}`)
    for (const [index, path] of mounts.staged.entries()) {
      const from = quote(path)
      lines.push(`if [ -d ${from} ]; then mkdir ${index}; else : > ${index}; fi`, `mount --bind -- ${from} ${index}`)
    }
    lines.push('cd /')
  }
  for (const file of launch.entrances) lines.push(`echo 0 > ${quote(file)}`)
  // If the whole machine runs out of memory, the kernel kills the build, not Berth.
  lines.push('echo 900 > /proc/self/oom_score_adj || :')
  const user = drop === null ? '' : `--reuid ${drop.uid} --regid ${drop.gid} --clear-groups`
  // The parent may have died before PDEATHSIG was set, which bubblewrap itself doesn't check.
  const guard = `[ "$PPID" = ${process.pid} ] || exit 1; exec "$@"`
  if (launch.seccomp !== null) lines.push(`exec ${SECCOMP_FD}< ${quote(launch.seccomp)}`)
  const filter = launch.seccomp === null ? '' : `--seccomp ${SECCOMP_FD}`
  lines.push(
    `exec prlimit ${launch.resourceLimits.join(' ')} \\`,
    `  setpriv ${user} --pdeathsig KILL /bin/sh -c ${quote(guard)} berth \\`,
    `  ${quote(launch.bwrap)} --args ${OPTIONS_FD} --json-status-fd ${STATUS_FD} ${filter} -- "$@"`,
  )
  return lines.join('\n')
}

export type Launched = {
  child: ChildProcess & { stdout: Readable; stderr: Readable }
  /** Host pid of the sandbox's first process, whose death ends all others. */
  init(): number | undefined
  /** Resolves with that pid, a child of `child`; undefined if bubblewrap exits first. */
  started: Promise<number | undefined>
  /** Exit code of the command; undefined if it never started or didn't exit on its own. */
  exitCode(): number | undefined
}

export function launch(launch: Launch): Launched {
  const shell = ['/bin/sh', '-c', script(launch), 'berth', ...launch.argv]
  const argv = launch.drop === null ? shell : ['unshare', '--mount', '--propagation', 'private', '--', ...shell]
  const stdio: Stdio = [launch.input === null ? 'ignore' : 'pipe', 'pipe', 'pipe', 'pipe', 'pipe']
  if (launch.plan !== null) stdio.push('pipe')
  if (launch.listener !== null) stdio.push(launch.listener)
  // Detached, so that Ctrl-C in the terminal only reaches Berth, which then stops its sandboxes.
  const child = spawnClean([...launch.enter, ...argv], stdio, launch.inherited, { detached: true }) as Launched['child']
  let status = ''
  const { promise: started, resolve: start } = Promise.withResolvers<number | undefined>()
  ;(child.stdio[STATUS_FD] as Readable).setEncoding('utf8').on('data', (text: string) => {
    status += text
    if (init() !== undefined) start(init())
  })
  child.once('close', () => start(undefined)).once('error', () => start(undefined))
  if (launch.input !== null) feed(child.stdin!, launch.input)
  feed(child.stdio[OPTIONS_FD] as Writable, Promise.resolve(launch.options.join('\0')))
  if (launch.plan !== null) feed((child.stdio as unknown[])[PLAN_FD] as Writable, launch.plan)
  const read = (name: string) => {
    const digits = new RegExp(`"${name}": (\\d+)(?=\\D)`).exec(status)?.[1]
    return digits === undefined ? undefined : Number(digits)
  }
  const init = () => read('child-pid')
  return { child, init, started, exitCode: () => read('exit-code') }
}
