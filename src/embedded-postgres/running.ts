// Finds the PostgreSQL that another Berth process runs, for commands next to a running platform.
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { followPointer } from './home.ts'
import { isServer } from './processes.ts'

/** The URL of the server that runs in this directory; null if none does. */
export async function findRunningPostgres(directory: string): Promise<string | null> {
  const own = await realpath(directory).catch(() => directory)
  const cluster = join((await followPointer(own)) ?? own, 'cluster')
  const data = join(cluster, 'data')
  // Its lines: the process, the data directory, the start time, the port, …, and the state.
  const lock = (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const [pid, port, state] = [Number(lock[0]), Number(lock[3]), lock[7]?.trim()]
  if (!(pid > 0) || !(port > 0) || state !== 'ready' || !(await isServer(pid, data))) return null
  const password = await readFile(join(cluster, 'password'), 'utf8')
  return `postgresql://berth:${password}@127.0.0.1:${port}/postgres`
}
