// What holds the processes of a command together where no sandbox does, so that all of them end.
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'

export type Containment = {
  way: 'pid-namespace' | 'marker'
  /** How processes are held and which escape, for the log. */
  note: string
  start(argv: string[], place: { cwd: string; environment: Record<string, string> }): Contained
}

export type Contained = {
  child: ChildProcess & { stdout: Readable; stderr: Readable }
  /** SIGTERM to the command and its group. */
  terminate(): Promise<void>
  /** SIGKILL to all of it. */
  kill(): Promise<void>
  /** To be called after the exit of `child`; resolves when the last process is gone. */
  gone(): Promise<void>
  /** False when the child ended before the command was started. */
  started(): boolean
}

export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    // Nobody is there any more.
    return false
  }
}
