// The source of a deployment without git: its files are written into a repository of its own, as one commit.
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
const maxSaid = 2_000

/** The files are gone: unfinished when they were given up, or from before a restored backup. */
export class NotKept extends BuildFailure {
  constructor() {
    super('upload_incomplete', 'The uploaded files are no longer stored. Deploy them again.')
  }
}

/** Which of the contents the store does not have, or not as they were, and cannot bring back. */
export async function lostOf(
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

/** A path as `git fast-import` reads it: in quotes, with what is not plain ASCII as octal numbers. */
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

/** Returns the hash of the commit. */
async function importFiles(artifacts: Artifacts, files: readonly UploadedFile[], git: GitOptions): Promise<string> {
  // It lives as long as the build: neither time nor processor is spent on making it small.
  const settings = { 'core.compression': '0', 'core.looseCompression': '0', 'pack.compression': '0' }
  const { child, succeeded } = startGit(['fast-import', '--quiet', '--done', '--depth=0'], git, { settings })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-maxSaid)
  })
  let printed = ''
  child.stdout.on('data', (chunk) => {
    printed = (printed + chunk).slice(-maxSaid)
  })
  // What it could not read is known by how it ends.
  child.stdin.on('error', () => {})
  try {
    await writeCommit(child.stdin, artifacts, files, git.signal)
    child.stdin.end(`get-mark :1\ndone\n`)
    const isDone = await succeeded
    git.signal.throwIfAborted()
    const commit = /^[0-9a-f]{40,64}$/m.exec(printed)?.[0]
    if (!isDone || !commit) throw new Error(`git fast-import failed: ${said}`)
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

/** Content that fits into memory. */
export async function loadUploaded(artifacts: Artifacts, sha256: string, size: number): Promise<Buffer> {
  const content = await artifacts.load(sha256).catch((error) => lost(artifacts, sha256, error))
  if (content.length !== size) throw new NotKept()
  return content
}

export async function* streamUploaded(artifacts: Artifacts, sha256: string, size: number): AsyncGenerator<Buffer> {
  const file = await artifacts.open(sha256).catch((error) => lost(artifacts, sha256, error))
  let left = size
  for await (const chunk of file.createReadStream({ highWaterMark: 1 << 20 })) {
    left -= chunk.length
    if (left < 0) break
    yield chunk
  }
  if (left !== 0) throw new NotKept()
}

/**
 * A store that cannot be used puts the build back; content that it does not have ends it. A process remembers for some
 * seconds what it did not find: what was sent again since is there.
 */
async function lost(artifacts: Artifacts, sha256: string, error: NodeJS.ErrnoException): Promise<never> {
  const isGone = error instanceof MissingObject || error.code === 'ENOENT' || /missing or damaged/.test(error.message)
  if (!isGone) throw error
  if (await artifacts.isWhole(sha256)) throw new StoreUnavailable('An uploaded file was not found, and is there now.')
  throw new NotKept()
}
