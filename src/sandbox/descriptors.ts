// Finds descriptors that whoever started Berth left open, and keeps them from the programs that we start.
import { type ChildProcess, type IOType, type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'

const CLOSE_ON_EXEC = 0o2000000

export type Stdio = (IOType | number)[]

/** Node opens its own so that they are closed, but does not look far for inherited ones. */
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

/** Starts a program that gets no descriptor but those in `stdio`, and only what is safe of our environment. */
export function spawnClean(
  argv: string[],
  stdio: Stdio,
  inherited: number[],
  more: Pick<SpawnOptions, 'detached'> = {},
): ChildProcess {
  const all = [...stdio]
  const covered = inherited.filter((fd) => fd >= all.length)
  const nothing = covered.length === 0 ? undefined : openSync('/dev/null', 'r')
  // What is ignored beyond the first three is left alone, so only the covered ones are there at all.
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
