// The files of a folder: what is uploaded of it, with the hash of each.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { exitCodes, Failure, usage } from './failures.ts'
import { isIgnored, type Rule, readRules } from './ignore.ts'
import { inParallel } from './parallel.ts'

export type SourceFile = { path: string; sha256: string; size: number; mode?: number }

const ignoreFiles = ['.gitignore', '.berthignore']
const linkMode = 0o120000
const programMode = 0o755
// Small ones are read whole.
const streamedBytes = 1 << 20

export async function listFiles(root: string): Promise<string[]> {
  const stats = await lstat(root).catch(() => null)
  if (!stats) throw usage(`There is no folder ${root}.`)
  if (!stats.isDirectory() && !stats.isSymbolicLink()) throw usage(`${root} is not a folder.`)
  const found: string[] = []
  await walk('', [])
  return found.sort()

  async function walk(base: string, above: Rule[]): Promise<void> {
    const entries = await readdir(join(root, base), { withFileTypes: true })
    const rules = [...above]
    for (const name of ignoreFiles) {
      if (!entries.some((entry) => entry.name === name && entry.isFile())) continue
      rules.push(...readRules(await readFile(join(root, base, name), 'utf8'), base))
    }
    for (const entry of entries) {
      const path = `${base}${entry.name}`
      if (isIgnored(path, entry.name, entry.isDirectory(), rules)) continue
      if (entry.isDirectory()) await walk(`${path}/`, rules)
      // Sockets, pipes and devices have no content.
      else if (entry.isFile() || entry.isSymbolicLink()) found.push(path)
    }
  }
}

/** Hashes all of them; `progress` hears how many are done. */
export async function hashFiles(
  root: string,
  paths: string[],
  progress: (done: number) => void,
): Promise<SourceFile[]> {
  const files: SourceFile[] = new Array(paths.length)
  let done = 0
  await inParallel([...paths.keys()], 8, async (at) => {
    files[at] = await describe(root, paths[at]!)
    progress(++done)
  })
  return files
}

async function describe(root: string, path: string): Promise<SourceFile> {
  const full = join(root, path)
  const { size, mode, isLink } = await lstat(full).then((stats) => ({
    size: stats.size,
    mode: stats.mode,
    isLink: stats.isSymbolicLink(),
  }))
  if (isLink) {
    const target = Buffer.from(await readlink(full))
    return { path, sha256: sha256Of(target), size: target.length, mode: linkMode }
  }
  const program = mode & 0o111 ? { mode: programMode } : {}
  if (size <= streamedBytes) {
    const content = await readFile(full)
    return { path, sha256: sha256Of(content), size: content.length, ...program }
  }
  const hash = createHash('sha256')
  let read = 0
  for await (const chunk of createReadStream(full)) {
    hash.update(chunk)
    read += chunk.length
  }
  return { path, sha256: hash.digest('hex'), size: read, ...program }
}

const sha256Of = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

/** The content of a file that was described; throws if it is another one by now. */
export async function contentOf(root: string, { path, sha256, mode }: SourceFile): Promise<Buffer> {
  const full = join(root, path)
  const content = mode === linkMode ? Buffer.from(await readlink(full)) : await readFile(full)
  if (sha256Of(content) !== sha256) {
    throw new Failure(exitCodes.failed, `${path} was changed while it was uploaded.`, 'Deploy again.')
  }
  return content
}
