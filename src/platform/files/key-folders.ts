// Folders for keys that a program reads from a file. If a process is killed, another one removes its folders.
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const prefix = 'berth-ssh-'
// No fetch takes this long, so an older folder is unused even if its process id is in use again.
const maxMs = 24 * 3600_000

/** Named after this process, so that others can check whether it still runs. */
export const createKeyFolder = () => mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`))

/** Removes the folders of processes that no longer run. */
export async function sweepKeyFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const [, pid] = new RegExp(`^${prefix}(\\d{1,10})-\\w+$`).exec(name) ?? []
    if (pid === undefined) continue
    const path = join(tmpdir(), name)
    const madeMs = (await stat(path).catch(() => null))?.mtimeMs
    if (madeMs !== undefined && !mayBeUsed(Number(pid), madeMs)) await rm(path, { recursive: true, force: true })
  }
}

function mayBeUsed(pid: number, madeMs: number): boolean {
  if (Date.now() - madeMs > maxMs) return false
  // In a container, the next process often gets the same id.
  if (pid === process.pid) return madeMs >= performance.timeOrigin
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
