// How a command without a sandbox is held together, so that all of its processes end: the best way that works here.
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { openMarkers } from './marker.ts'
import { openPidNamespaces } from './pid-namespace.ts'

export type Containment = {
  way: 'pid-namespace' | 'marker'
  /** What it cannot end; null when nothing escapes. */
  gap: string | null
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

export async function openContainment(searchPath: string, way?: Containment['way']): Promise<Containment> {
  const namespaces = way === 'marker' ? undefined : await openPidNamespaces(searchPath)
  if (way === 'pid-namespace' && namespaces === undefined) throw new Error('No PID namespace can be made here.')
  return namespaces ?? openMarkers()
}

export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    // Nobody is there any more.
    return false
  }
}
