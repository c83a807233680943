// Tracks all processes of a command that runs without a sandbox, so that all of them can be ended.
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'

export type Containment = {
  way: 'pid-namespace' | 'marker'
  /** How processes are tracked and which can escape, for the log. */
  note: string
  start(argv: string[], place: Place): Contained
}

export type Place = { cwd: string; environment: Record<string, string>; stdin: 'ignore' | 'pipe' }

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
    // The process has ended.
    return false
  }
}
