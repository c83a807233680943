// Lower priority for the work on large zones, so that answers come first. On Linux a priority belongs to a thread.
import { readFileSync } from 'node:fs'
import { setPriority } from 'node:os'

const low = 10
const lowered = new Set<number>()

/** Lowers the thread that calls it; elsewhere than on Linux it would be the whole process. */
export function lowerThread(): void {
  if (process.platform === 'linux') lower(0)
}

/** Lowers the process of PostgreSQL that serves a connection, if it is on this machine and we may. */
export function lowerBackend(databaseUrl: string, pid: number): void {
  if (lowered.has(pid) || !isLocal(databaseUrl) || !isPostgres(pid)) return
  lowered.add(pid)
  lower(pid)
}

function lower(pid: number): void {
  try {
    setPriority(pid, low)
  } catch {
    // Not allowed here: it then competes as an equal.
  }
}

function isLocal(databaseUrl: string): boolean {
  const host = new URL(databaseUrl).hostname
  return ['', 'localhost', '127.0.0.1', '[::1]'].includes(host) || host.startsWith('%2F')
}

/** A database in a container is reached on loopback too, but its process ids are not ours. */
function isPostgres(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres: ')
  } catch {
    return false
  }
}
