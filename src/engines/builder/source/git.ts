// Git as the builder runs it on the host: bare repositories only, without prompts, hooks or foreign protocols.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ByteReader } from '../../../platform/files/byte-reader.ts'
import { killGroup, spawnGit } from '../../../platform/git/git-process.ts'
import type { GitRemote } from '../../../platform/git/git-remote.ts'
import type { BuildLog } from '../explain/log.ts'
import { DiskFull } from '../run/disk.ts'
import type { FileContent } from '../tree/entries.ts'

export type GitOptions = {
  /** The bare repository; no tree is ever checked out on the host. */
  directory: string
  searchPath: string
  signal: AbortSignal
  /** A repository on this machine instead of one over HTTP or SSH. */
  local: boolean
}

/** What the processes that talk to the host get, and no other one: the access to it is in there. */
export type Talking = Partial<Pick<GitRemote, 'protocols' | 'settings' | 'environment'>>

/** The result of `git init --bare` without starting a process, and without sample hooks. */
export async function makeBareRepository(directory: string): Promise<void> {
  await Promise.all(['objects', 'refs'].map((name) => mkdir(join(directory, name))))
  await writeFile(join(directory, 'config'), '[core]\n\trepositoryformatversion = 0\n\tbare = true\n')
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/main\n')
}

export function startGit(args: string[], { directory, searchPath, signal, local }: GitOptions, more: Talking = {}) {
  const child = spawnGit({
    args: ['-C', directory, ...args],
    searchPath,
    protocols: local ? 'file' : (more.protocols ?? 'http:https'),
    // The repository exists for one build only.
    settings: { 'gc.auto': '0', 'maintenance.auto': 'false', ...more.settings },
    environment: more.environment ?? {},
    signal,
  })
  const succeeded = new Promise<boolean>((resolve) => {
    child.on('error', () => resolve(false))
    child.on('close', (code) => resolve(code === 0))
  })
  return { child, succeeded }
}

/**
 * Whether git succeeded, and what it said last; its output goes into the log. Rejects if the disk is full: what git could not write is gone by
 * the time it ends, and the space is free again. Lines of the remote end, which anybody may write, begin with its name.
 */
export async function runGit(
  args: string[],
  options: GitOptions,
  log: BuildLog,
  more: Talking = {},
): Promise<{ ok: boolean; said: string }> {
  const { child, succeeded } = startGit(args, options, more)
  child.stdin.end()
  child.stdout.on('data', (chunk) => log.output('stdout', chunk))
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-4_000)
    log.output('stderr', chunk)
  })
  const ok = await succeeded
  log.endCommand()
  if (!ok && /^(?!remote:).*No space left on device/m.test(said)) throw new DiskFull('git found no room on the disk')
  return { ok, said }
}

/** The output of a command, split at NUL; throws if it failed or a record is longer than `maxBytes`. */
export async function* readRecords(args: string[], options: GitOptions, maxBytes: number): AsyncGenerator<Buffer> {
  const { child, succeeded } = startGit(args, options)
  child.stdin.end()
  child.stderr.resume()
  try {
    const reader = new ByteReader(child.stdout)
    for (let record = await reader.until(0, maxBytes); record; record = await reader.until(0, maxBytes)) yield record
    options.signal.throwIfAborted()
    if (!(await succeeded)) throw new Error(`git ${args[0]} failed`)
  } finally {
    killGroup(child.pid)
  }
}

export type ObjectReader = {
  /** Content of blobs in the given order; each must be read before the next. */
  read(blobs: Iterable<{ hash: string; size: number }>): AsyncGenerator<FileContent>
  close(): void
}

const newline = 0x0a
const askedAhead = 64

/** One process for all of them: starting git costs more than reading most files. */
export function openObjects(options: GitOptions): ObjectReader {
  const { child } = startGit(['cat-file', '--batch'], options)
  child.stderr.resume()
  const reader = new ByteReader(child.stdout)
  return {
    async *read(blobs) {
      const asked: { hash: string; size: number }[] = []
      const queue = blobs[Symbol.iterator]()
      const ask = () => {
        for (let next = queue.next(); !next.done; next = queue.next()) {
          child.stdin.write(`${next.value.hash}\n`)
          if (asked.push(next.value) >= askedAhead) return
        }
      }
      ask()
      for (let blob = asked.shift(); blob; blob = asked.shift()) {
        if (asked.length < askedAhead / 2) ask()
        const header = await reader.until(newline, 200)
        const { hash, size } = blob
        if (header?.toString('latin1') !== `${hash} blob ${size}`) throw new Error(`git does not find the blob ${hash}`)
        yield { whole: () => reader.take(size), stream: () => reader.stream(size) }
        await reader.take(1)
      }
    },
    close: () => killGroup(child.pid),
  }
}
