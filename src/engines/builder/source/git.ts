// Runs git on the host: only in bare repositories, without prompts, hooks or unexpected protocols.
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
  /** Whether the repository is on this machine instead of remote. */
  local: boolean
}

/** Contains the access to the host, so only processes that talk to it get this. */
export type RemoteOptions = Partial<Pick<GitRemote, 'protocols' | 'settings' | 'environment'>>

/** Like `git init --bare`, but without a process and sample hooks. */
export async function makeBareRepository(directory: string): Promise<void> {
  await Promise.all(['objects', 'refs'].map((name) => mkdir(join(directory, name))))
  await writeFile(join(directory, 'config'), '[core]\n\trepositoryformatversion = 0\n\tbare = true\n')
  await writeFile(join(directory, 'HEAD'), 'ref: refs/heads/main\n')
}

export function startGit(
  args: string[],
  { directory, searchPath, signal, local }: GitOptions,
  more: RemoteOptions = {},
) {
  const child = spawnGit({
    args: ['-C', directory, ...args],
    searchPath,
    protocols: local ? 'file' : (more.protocols ?? 'http:https'),
    // The repository only exists during one build.
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
 * Runs git with its output in the log. Rejects if the disk was full, which can't be seen later because git frees the
 * space. Lines that start with `remote:` are untrusted.
 */
export async function runGit(
  args: string[],
  options: GitOptions,
  log: BuildLog,
  more: RemoteOptions = {},
): Promise<{ ok: boolean; lastOutput: string }> {
  const { child, succeeded } = startGit(args, options, more)
  child.stdin.end()
  child.stdout.on('data', (chunk) => log.output('stdout', chunk))
  let lastOutput = ''
  child.stderr.on('data', (chunk) => {
    lastOutput = (lastOutput + chunk).slice(-4_000)
    log.output('stderr', chunk)
  })
  const ok = await succeeded
  log.endCommand()
  if (!ok && /^(?!remote:).*No space left on device/m.test(lastOutput))
    throw new DiskFull('git found no room on the disk')
  return { ok, lastOutput }
}

/** Yields a command's output split at NUL. Throws if the command fails or a record is longer than `maxBytes`. */
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
  /** Yields the content of blobs in order. Each must be read before the next. */
  read(blobs: Iterable<{ hash: string; size: number }>): AsyncGenerator<FileContent>
  close(): void
}

const newline = 0x0a
const maxAhead = 64

/** Uses one process for all objects, because starting git costs more than reading most files. */
export function openObjects(options: GitOptions): ObjectReader {
  const { child } = startGit(['cat-file', '--batch'], options)
  child.stderr.resume()
  const reader = new ByteReader(child.stdout)
  return {
    async *read(blobs) {
      const pending: { hash: string; size: number }[] = []
      const queue = blobs[Symbol.iterator]()
      const request = () => {
        for (let next = queue.next(); !next.done; next = queue.next()) {
          child.stdin.write(`${next.value.hash}\n`)
          if (pending.push(next.value) >= maxAhead) return
        }
      }
      request()
      for (let blob = pending.shift(); blob; blob = pending.shift()) {
        if (pending.length < maxAhead / 2) request()
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
