// Distinguishes PostgreSQL servers and Berth processes from other processes with the same pid, and stops orphaned
// servers.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { link, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const FAST_SHUTDOWN_MS = 10_000
// The postmaster itself kills its children 5 s after SIGQUIT; beyond this something is stuck in the kernel.
const IMMEDIATE_SHUTDOWN_MS = 8_000
// No system assigns this pid, so PostgreSQL treats a lock file that names it as stale.
const NO_PID = 2 ** 31 - 1

type ProcessDescription = { startedAt: string; program: string; names(path: string): boolean }

// Linux is read from /proc because slim images have no ps; a zombie counts as gone.
async function describeProcess(pid: number): Promise<ProcessDescription | undefined> {
  try {
    if (process.platform === 'linux') {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (fields[0] === 'Z' || fields[0] === 'X') return undefined
      const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
      return { startedAt: fields[19]!, program: command[0]!, names: (path) => command.includes(path) }
    }
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'lstart=,command=', '-p', String(pid)], {
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    })
    const command = stdout.slice(24).trim()
    const [program = '', rest = ''] = command.split(/ (?=-D )/, 2)
    return { startedAt: stdout.slice(0, 24), program, names: (path) => rest.startsWith(`-D ${path} `) }
  } catch {
    return undefined
  }
}

export async function isServer(pid: number, data: string): Promise<boolean> {
  const found = await describeProcess(pid)
  return found !== undefined && basename(found.program) === 'postgres' && found.names(data)
}

/** Stops a server without a supervisor: by fast shutdown, then by immediate shutdown. */
export async function endServer(pid: number, data: string): Promise<void> {
  const startedMs = Date.now()
  while (await isServer(pid, data)) {
    const elapsedMs = Date.now() - startedMs
    if (elapsedMs > FAST_SHUTDOWN_MS + IMMEDIATE_SHUTDOWN_MS) throw new Error(`PostgreSQL process ${pid} does not end.`)
    try {
      // Repeated, because a starting server may not handle signals yet.
      process.kill(pid, elapsedMs > FAST_SHUTDOWN_MS ? 'SIGQUIT' : 'SIGINT')
    } catch {
      return
    }
    await delay(50)
  }
}

/** Stops an orphaned server in a data directory whose last owner is known to be dead. */
export async function endOrphan(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid')
  const read = async () => {
    const text = await readFile(file, 'utf8').catch(() => undefined)
    return { text, pid: Number.parseInt(text ?? '', 10) }
  }
  let lock = await read()
  if (lock.text !== undefined && !(lock.pid > 0)) {
    // Empty after a power loss, or just being written by a server that is about to exit.
    await delay(200)
    lock = await read()
    if (!(lock.pid > 0)) await rm(file, { force: true })
  }
  if (lock.text === undefined || !(lock.pid > 0)) return
  if (await isServer(lock.pid, data)) return endServer(lock.pid, data)
  // The pid may now belong to another process, and PostgreSQL would refuse to start. Only the pid is replaced: the
  // shared memory key further down still protects against backends that outlive a killed postmaster.
  const handle = await open(file, constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW)
  await handle.writeFile(lock.text.replace(/^\d+/, String(NO_PID)))
  await handle.close()
}

/** Another live process has claimed the directory. */
export class DirectoryInUse extends Error {}

/** Marks a directory as used by this process; the claim of a dead process is taken over. */
export async function claim(directory: string): Promise<() => Promise<void>> {
  const file = join(directory, 'owner')
  const draft = `${file}.${randomUUID()}`
  // A pid alone is not enough: in a restarted container Berth gets the same pid as before.
  const identity = `${process.pid} ${(await describeProcess(process.pid))?.startedAt}`
  await writeFile(draft, identity, { mode: 0o644, flag: 'wx' }).catch((cause: Error) => {
    throw new Error(`The database directory cannot be used: ${cause.message}.`, { cause })
  })
  try {
    while (!(await linkIfFree(draft, file))) {
      const held = await readFile(file, 'utf8').catch(() => '')
      const pid = Number.parseInt(held, 10)
      if (pid > 0 && held === `${pid} ${(await describeProcess(pid))?.startedAt}`) {
        throw new DirectoryInUse(`The database in ${directory} is already in use by process ${pid}.`)
      }
      const taken = `${draft}.taken`
      await rename(file, taken).catch(() => undefined)
      // Another process may have replaced the dead claim between our read and our rename: restore it.
      if ((await readFile(taken, 'utf8').catch(() => held)) !== held) await linkIfFree(taken, file)
      await rm(taken, { force: true })
    }
  } finally {
    await rm(draft, { force: true })
  }
  return () => rm(file, { force: true })
}

async function linkIfFree(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
