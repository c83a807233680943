// Programs from npm packages for sandboxes, such as another Node or pnpm: fetched once and shared read-only.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { access, mkdir, readdir, rename, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { syncFileSystems, syncTree } from '../../platform/files/durable.ts'
import { removeTree } from '../../platform/files/remove-tree.ts'
import type { MountedProgram } from '../processes/command.ts'

export type Program = {
  /** Name of the npm package. Never set by a customer. */
  package: string
  /** An exact version. */
  version: string
  /** Programs and their paths in the package. Default: the package's own `bin`. */
  bin?: Record<string, string>
  /** Chosen by the platform, so it is never removed to make room. */
  pinned?: boolean
}

export type Programs = {
  /** Fetches the program if needed. Rejects with ProgramUnavailable. */
  open(program: Program): Promise<MountedProgram>
}

/** The message is for the project's owner. */
export class ProgramUnavailable extends Error {
  override name = 'ProgramUnavailable'
}

export type ProgramsOptions = {
  /** Written only by processes of this installation. */
  directory: string
  /** The maximum total size of unpinned programs. */
  maxMb: number
  /** Programs used within this time may still be mounted by another process, so they stay. */
  keepMs: number
  /** Default: the registry of this machine's npm. */
  registry?: string
}

const run = promisify(execFile)
const exactVersion = /^\d{1,5}\.\d{1,5}\.\d{1,5}(-[0-9A-Za-z.-]{1,60})?$/
const fetchMs = 180_000
const aside = '.new-'
const pinMark = '.pinned'

/** Whether the text is one exact version, and nothing that npm would read as a URL. */
export const isExactVersion = (text: string) => exactVersion.test(text)

export function openPrograms({ directory, maxMb, keepMs, registry }: ProgramsOptions): Programs {
  const opening = new Map<string, Promise<MountedProgram>>()

  async function find(program: Program, name: string): Promise<MountedProgram> {
    const host = join(directory, name)
    if (!(await exists(host))) {
      if (!program.pinned) await makeRoom(program)
      await fetch(program, host)
    }
    const now = new Date()
    await utimes(host, now, now)
    return { host, inside: `/opt/programs/${name}`, bin: program.bin ? 'bin' : 'node_modules/.bin' }
  }

  /** Runs no package scripts. npm verifies the registry's checksums. */
  async function fetch(program: Program, host: string): Promise<void> {
    const place = join(directory, `${aside}${randomBytes(6).toString('hex')}`)
    await mkdir(place, { recursive: true, mode: 0o755 })
    try {
      await writeFile(join(place, 'package.json'), '{ "private": true }\n')
      await install(program, place)
      await removeTree(join(place, '.cache'))
      for (const [name, path] of Object.entries(program.bin ?? {})) {
        await mkdir(join(place, 'bin'), { recursive: true, mode: 0o755 })
        await symlink(join('../node_modules', program.package, path), join(place, 'bin', name))
      }
      if (program.pinned) await writeFile(join(place, pinMark), '')
      if (!(await syncFileSystems([place]))) await syncTree(place)
      await rename(place, host).catch(async (error) => {
        // Another process was faster.
        if (!(await exists(host))) throw error
      })
    } finally {
      await removeTree(place)
    }
  }

  async function install(program: Program, place: string): Promise<void> {
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--no-update-notifier']
    const patience = ['--fetch-retries=2', '--fetch-retry-mintimeout=500', '--fetch-retry-maxtimeout=2000']
    const where = ['--prefix', place, '--cache', join(place, '.cache'), ...(registry ? ['--registry', registry] : [])]
    const what = ['--save-exact', '--loglevel=error', '--', `${program.package}@${program.version}`]
    // Sandboxed commands run as another user, who must be able to read the files regardless of this process's umask.
    const shell = ['-c', 'umask 022 && exec npm "$@"', 'npm', 'install', ...options, ...patience, ...where, ...what]
    await run('/bin/sh', shell, { cwd: place, timeout: fetchMs, maxBuffer: 1 << 20 }).catch((error) => {
      const isUnknown = /\b(E404|ETARGET|EBADPLATFORM)\b/.test(String(error.stderr))
      const why = isUnknown ? 'has no such version' : 'could not be reached'
      throw new ProgramUnavailable(`${program.package} ${program.version} could not be fetched: the registry ${why}.`, {
        cause: error,
      })
    })
  }

  /** Removes the least recently used programs, and remains of dead processes. */
  async function makeRoom(wanted: Program): Promise<void> {
    const beforeMs = Date.now() - keepMs
    const found: { place: string; usedMs: number; kb: number }[] = []
    for (const name of await readdir(directory).catch(() => [])) {
      const place = join(directory, name)
      const usedMs = (await stat(place).catch(() => null))?.mtimeMs
      if (usedMs === undefined || (await exists(join(place, pinMark)))) continue
      if (!name.startsWith(aside)) found.push({ place, usedMs, kb: await kilobytes(place) })
      else if (usedMs < beforeMs) await removeTree(place)
    }
    found.sort((a, b) => a.usedMs - b.usedMs)
    let kb = found.reduce((sum, one) => sum + one.kb, 0)
    for (const one of found) {
      if (kb < maxMb * 1024 || one.usedMs >= beforeMs) break
      await clear(one.place)
      kb -= one.kb
    }
    if (kb < maxMb * 1024) return
    throw new ProgramUnavailable(
      `There is no room for ${wanted.package} ${wanted.version}: too many versions are in use. Try again later.`,
    )
  }

  /** Renames the program first, so that nobody finds half of it. */
  async function clear(place: string): Promise<void> {
    const gone = join(directory, `${aside}${randomBytes(6).toString('hex')}`)
    await rename(place, gone).catch(() => {})
    await removeTree(gone)
  }

  return {
    open(program) {
      if (!isExactVersion(program.version)) {
        return Promise.reject(new ProgramUnavailable(`${program.package} has no version of this name.`))
      }
      const name = `${program.package.replaceAll(/[@/]/g, '+').replace(/^\+/, '')}@${program.version}`
      const known = opening.get(name)
      if (known) return known
      const opened = find(program, name).finally(() => opening.delete(name))
      opening.set(name, opened)
      return opened
    },
  }
}

async function kilobytes(place: string): Promise<number> {
  const { stdout } = await run('du', ['-s', '-k', '--', place]).catch(() => ({ stdout: '0' }))
  return Number.parseInt(stdout, 10) || 0
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )
