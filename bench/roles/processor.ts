// The CPU time of processes, including their exited children.
import { readFileSync } from 'node:fs'
import { descendants } from '../soak/memory.ts'

// The unit of /proc/<pid>/stat is a hundredth of a second on every Linux.
const tickMs = 10

export function processMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // utime, stime, cutime and cstime are the fields 14 to 17; the first one here is the third.
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * tickMs
}

/** All PostgreSQL processes of this benchmark's database. */
export function postgresMs(): number {
  const own = descendants(process.pid).filter(({ name }) => name === 'postgres')
  return own.reduce((sum, { pid }) => sum + processMs(pid), 0)
}
