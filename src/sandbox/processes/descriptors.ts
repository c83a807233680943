// Hides descriptors that Berth inherited from the programs it starts.
import { type ChildProcess, type IOType, type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import type { Writable } from 'node:stream'

const CLOSE_ON_EXEC = 0o2000000

export type Stdio = (IOType | number)[]

/** Node opens its own descriptors close-on-exec, but doesn't find all inherited ones. */
export function inheritedDescriptors(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd > 2 && !isClosedOnExec(fd))
}

function isClosedOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0'
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0
  } catch {
    // The descriptor of the listing itself.
    return true
  }
}

/** Writes the text and ends the pipe. If the promise rejects, only ends it. */
export function feed(pipe: Writable, text: Promise<string>): void {
  // The pipe breaks if the program fails early, which its exit code reports.
  pipe.on('error', () => {})
  text.then(
    (text) => pipe.end(text),
    () => pipe.end(),
  )
}

/** Starts a program with only the descriptors in `stdio`, and with a minimal environment. */
export function spawnClean(
  argv: string[],
  stdio: Stdio,
  inherited: number[],
  more: Pick<SpawnOptions, 'detached'> = {},
): ChildProcess {
  const all = [...stdio]
  const covered = inherited.filter((fd) => fd >= all.length)
  const nothing = covered.length === 0 ? undefined : openSync('/dev/null', 'r')
  // Beyond the first three, Node doesn't open 'ignore', so only the covered ones are open.
  for (const fd of covered) {
    while (all.length < fd) all.push('ignore')
    all[fd] = nothing!
  }
  const [program, ...rest] = argv
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }
  const child = spawn(program!, rest, { cwd: '/', env, stdio: all, ...more })
  if (nothing !== undefined) closeSync(nothing)
  return child
}
