// The source of a deployment without git: imports its files as one commit into a repository of its own.
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { type Artifacts, MissingObject, StoreUnavailable } from '../../../platform/artifacts/artifacts.ts'
import { killGroup } from '../../../platform/git/git-process.ts'
import type { UploadedFile } from '../../../services/deployments/index.ts'
import { BuildFailure } from '../explain/failure.ts'
import type { Source, TreeEntry } from '../tree/source-tree.ts'
import { type GitOptions, makeBareRepository, startGit } from './git.ts'
import { listTree, sourceOf } from './source.ts'

const ref = 'refs/heads/main'
const maxOutputLength = 2_000

/** The files are gone: never completed, or deleted before a backup was restored. */
export class UploadLost extends BuildFailure {
  constructor() {
    super('upload_incomplete', 'The uploaded files are no longer stored. Deploy them again.')
  }
}

/** Returns the hashes whose content is missing or damaged beyond repair. */
export async function findLost(
  artifacts: Artifacts,
  files: readonly UploadedFile[],
  signal: AbortSignal,
): Promise<string[]> {
  const lost: string[] = []
  for (const hash of new Set(files.map(({ sha256 }) => sha256))) {
    signal.throwIfAborted()
    if (!(await artifacts.repair(hash))) lost.push(hash)
  }
  return lost
}

/** Quotes a path for `git fast-import`, with octal escapes for everything but plain ASCII. */
export function quoted(path: string): string {
  const octal = (byte: number) => `\\${byte.toString(8).padStart(3, '0')}`
  const plain = (byte: number) => byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c
  return `"${[...Buffer.from(path)].map((byte) => (plain(byte) ? String.fromCharCode(byte) : octal(byte))).join('')}"`
}

export async function openUploadedSource(
  artifacts: Artifacts,
  files: readonly UploadedFile[],
  options: Omit<GitOptions, 'local'>,
): Promise<Source> {
  const git: GitOptions = { ...options, local: true }
  await makeBareRepository(git.directory)
  const commit = await importFiles(artifacts, files, git)
  const entries = new Map<string, TreeEntry>()
  await listTree(git, { path: '', commit }, entries)
  return sourceOf(git, commit, entries)
}

/** Returns the commit's hash. */
async function importFiles(artifacts: Artifacts, files: readonly UploadedFile[], git: GitOptions): Promise<string> {
  // The repository only lives as long as the build, so compression isn't worth its cost.
  const settings = { 'core.compression': '0', 'core.looseCompression': '0', 'pack.compression': '0' }
  const { child, succeeded } = startGit(['fast-import', '--quiet', '--done', '--depth=0'], git, { settings })
  let errorOutput = ''
  child.stderr.on('data', (chunk) => {
    errorOutput = (errorOutput + chunk).slice(-maxOutputLength)
  })
  let printed = ''
  child.stdout.on('data', (chunk) => {
    printed = (printed + chunk).slice(-maxOutputLength)
  })
  // The exit code reports failed writes.
  child.stdin.on('error', () => {})
  try {
    await writeCommit(child.stdin, artifacts, files, git.signal)
    child.stdin.end(`get-mark :1\ndone\n`)
    const isDone = await succeeded
    git.signal.throwIfAborted()
    const commit = /^[0-9a-f]{40,64}$/m.exec(printed)?.[0]
    if (!isDone || !commit) throw new Error(`git fast-import failed: ${errorOutput}`)
    return commit
  } finally {
    killGroup(child.pid)
  }
}

async function writeCommit(
  stream: Writable,
  artifacts: Artifacts,
  files: readonly UploadedFile[],
  signal: AbortSignal,
): Promise<void> {
  const write = async (bytes: string | Buffer) => {
    if (!stream.write(bytes) && !stream.destroyed) await Promise.race([once(stream, 'drain'), once(stream, 'close')])
  }
  await write(`commit ${ref}\nmark :1\ncommitter Berth <berth@localhost> 0 +0000\ndata 0\n\n`)
  for (const { path, sha256, size, mode } of files) {
    signal.throwIfAborted()
    await write(`M ${mode.toString(8)} inline ${quoted(path)}\ndata ${size}\n`)
    if (size <= artifacts.maxBufferedBytes) await write(await loadUploaded(artifacts, sha256, size))
    else for await (const chunk of streamUploaded(artifacts, sha256, size)) await write(chunk)
    await write('\n')
  }
}

/** Loads content that fits into memory. */
export async function loadUploaded(artifacts: Artifacts, sha256: string, size: number): Promise<Buffer> {
  const content = await artifacts.load(sha256).catch((error) => throwLost(artifacts, sha256, error))
  if (content.length !== size) throw new UploadLost()
  return content
}

export async function* streamUploaded(artifacts: Artifacts, sha256: string, size: number): AsyncGenerator<Buffer> {
  const file = await artifacts.open(sha256).catch((error) => throwLost(artifacts, sha256, error))
  let left = size
  for await (const chunk of file.createReadStream({ highWaterMark: 1 << 20 })) {
    left -= chunk.length
    if (left < 0) break
    yield chunk
  }
  if (left !== 0) throw new UploadLost()
}

/**
 * An unavailable store postpones the build, while missing content fails it. Lookups are cached for some seconds, so
 * content may have been uploaded again since.
 */
async function throwLost(artifacts: Artifacts, sha256: string, error: NodeJS.ErrnoException): Promise<never> {
  const isGone = error instanceof MissingObject || error.code === 'ENOENT' || /missing or damaged/.test(error.message)
  if (!isGone) throw error
  if (await artifacts.isWhole(sha256)) throw new StoreUnavailable('An uploaded file was not found, and is there now.')
  throw new UploadLost()
}
