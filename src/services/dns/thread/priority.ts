// Lowers the priority of work on large zones, so responses come first. On Linux, each thread has its own priority.
import { readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

const low = 10
const lowered = new Set<number>()

/** Lowers the calling thread, on Linux only; elsewhere it would lower the whole process. */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') lower(0)
}

/** Lowers the PostgreSQL process of a connection, if it runs on this machine and we are allowed to. */
export function lowerBackendPriority(databaseUrl: string, pid: number): void {
  if (lowered.has(pid) || !isLocal(databaseUrl) || !isPostgres(pid)) return
  lowered.add(pid)
  lower(pid)
}

function lower(pid: number): void {
  try {
    setPriority(pid, low)
  } catch {
    // Without permission, it keeps its priority.
  }
}

function isLocal(databaseUrl: string): boolean {
  const host = new URL(databaseUrl).hostname
  return ['', 'localhost', '127.0.0.1', '[::1]'].includes(host) || host.startsWith('%2F')
}

/** Guards against process ids of a database in a container, which also listens on loopback. */
function isPostgres(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres: ')
  } catch {
    return false
  }
}
