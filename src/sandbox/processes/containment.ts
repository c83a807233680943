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
  /** Sends SIGTERM to the command and its process group. */
  terminate(): Promise<void>
  /** Sends SIGKILL to all processes. */
  kill(): Promise<void>
  /** Call after `child` has exited. Resolves when the last process is gone. */
  gone(): Promise<void>
  /** False if the child exited before the command started. */
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
