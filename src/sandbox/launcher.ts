// Starts bubblewrap so that limits, user and mounts are in place before anything untrusted runs.
import type { ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { type Stdio, spawnClean } from './descriptors.ts'
import { PLAN_FD } from './forwarder.ts'
import type { MountPlan } from './mounts.ts'

export type Launch = {
  bwrap: string
  argv: string[]
  /** Options for bubblewrap; they may hold secrets, so they are not put where `ps` shows them. */
  options: string[]
  mounts: MountPlan
  /** Set when this process is root. */
  drop: { uid: number; gid: number; stage: string } | null
  /** A command that starts another in the network it is to have; empty: bubblewrap makes that. */
  enter: string[]
  /** Control groups to enter. */
  entrances: string[]
  /** Settings of prlimit for all of it, bubblewrap included. */
  resourceLimits: string[]
  /**
   * For the forwarder, which waits for it and ends if it is rejected; a listener only with a plan, whose descriptor is
   * the one before.
   */
  plan: Promise<string> | null
  listener: number | null
  /** Descriptors to cover. */
  inherited: number[]
  /** File with the filter of system calls. */
  seccomp: string | null
}

const STATUS_FD = 3
const OPTIONS_FD = 4
// Opened by the shell itself, over whatever was there; the highest that a plain shell can name.
const SECCOMP_FD = 9

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A shell does the privileged steps and then becomes bubblewrap, so its pid is bubblewrap's. */
function script(launch: Launch): string {
  const { drop, mounts } = launch
  const lines = ['set -e']
  if (drop !== null) {
    // In a mount namespace of its own: nothing of this is seen by the host, and it ends with the run.
    lines.push(`mount -t tmpfs -o mode=0711 berth ${quote(drop.stage)}`, `cd ${quote(drop.stage)}`)
    for (const [index, path] of mounts.staged.entries()) {
      const from = quote(path)
      lines.push(`if [ -d ${from} ]; then mkdir ${index}; else : > ${index}; fi`, `mount --bind -- ${from} ${index}`)
    }
    lines.push('cd /')
  }
  for (const file of launch.entrances) lines.push(`echo 0 > ${quote(file)}`)
  // When the whole machine runs out of memory, it is the build that goes, not the server.
  lines.push('echo 900 > /proc/self/oom_score_adj || :')
  const user = drop === null ? '' : `--reuid ${drop.uid} --regid ${drop.gid} --clear-groups`
  // The parent may have died before its death was subscribed to: bubblewrap itself does not look.
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
  /** Of the first process in the sandbox as the host sees it; its death is the death of all. */
  init(): number | undefined
  /** Of the command; undefined when it was never started or did not end by itself. */
  exitCode(): number | undefined
}

export function launch(launch: Launch): Launched {
  const shell = ['/bin/sh', '-c', script(launch), 'berth', ...launch.argv]
  const argv = launch.drop === null ? shell : ['unshare', '--mount', '--propagation', 'private', '--', ...shell]
  const stdio: Stdio = ['ignore', 'pipe', 'pipe', 'pipe', 'pipe']
  if (launch.plan !== null) stdio.push('pipe')
  if (launch.listener !== null) stdio.push(launch.listener)
  // Ctrl-C in the terminal is for Berth, which then ends its sandboxes in order.
  const child = spawnClean([...launch.enter, ...argv], stdio, launch.inherited, { detached: true }) as Launched['child']
  let status = ''
  ;(child.stdio[STATUS_FD] as Readable).setEncoding('utf8').on('data', (text: string) => {
    status += text
  })
  feed(child.stdio[OPTIONS_FD] as Writable, Promise.resolve(launch.options.join('\0')))
  if (launch.plan !== null) feed((child.stdio as unknown[])[PLAN_FD] as Writable, launch.plan)
  const read = (name: string) => {
    const digits = new RegExp(`"${name}": (\\d+)`).exec(status)?.[1]
    return digits === undefined ? undefined : Number(digits)
  }
  return { child, init: () => read('child-pid'), exitCode: () => read('exit-code') }
}

function feed(pipe: Writable, text: Promise<string>): void {
  // It breaks when the launcher fails early, which its exit tells.
  pipe.on('error', () => {})
  text.then(
    (text) => pipe.end(text),
    () => pipe.end(),
  )
}
