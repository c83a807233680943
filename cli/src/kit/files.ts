// Lists and hashes the files of a folder to upload.
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import {
  createReadStream,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { exitCodes, Failure, usage } from './failures.ts'
import { isIgnored, isSecret, type Rule, readRules, secretFiles } from './ignore.ts'
import { fileOf } from './logins.ts'

export type SourceFile = { path: string; sha256: string; size: number; mode?: number }

const ignoreFiles = ['.gitignore', '.berthignore']
const linkMode = 0o120000
const programMode = 0o755
// The API's limit.
const maxFiles = 50_000
// Smaller files are read at once.
const maxWholeBytes = 1 << 20

/** The files to upload, and the files left out because they may contain secrets. */
export async function listFiles(root: string): Promise<{ paths: string[]; secrets: string[] }> {
  const stats = statSync(root, { throwIfNoEntry: false })
  if (!stats) throw usage(`There is no folder ${root}.`)
  if (!stats.isDirectory()) throw usage(`${root} is not a folder.`)
  const own = ownFiles()
  const found: string[] = []
  const secrets: string[] = []
  const pause = createPauses()
  await walk('', secretFiles)
  return { paths: found.sort(), secrets: secrets.sort() }

  async function walk(base: string, above: Rule[]): Promise<void> {
    await pause()
    const entries = readdirSync(join(root, base), { withFileTypes: true })
    const rules = [...above]
    for (const name of ignoreFiles) {
      if (!entries.some((entry) => entry.name === name && entry.isFile())) continue
      rules.push(...readRules(readFileSync(join(root, base, name), 'utf8'), base))
    }
    for (const entry of entries) {
      await pause()
      const path = `${base}${entry.name}`
      if (isIgnored(path, entry.name, entry.isDirectory(), rules)) {
        if (entry.isFile() && isSecret(path, rules)) secrets.push(path)
        continue
      }
      checkName(root, base, entry.name)
      if (entry.isDirectory()) await walk(`${path}/`, rules)
      // Sockets, pipes and devices have no content. Links are uploaded as links, wherever they point.
      else if (entry.isSymbolicLink()) found.push(path)
      else if (entry.isFile() && !(own.has(entry.name) && own.get(entry.name) === realpathSync(join(root, path))))
        found.push(path)
      if (found.length > maxFiles)
        throw usage(`${root} has more than ${maxFiles} files.`, "List what you don't need in .berthignore.")
    }
  }
}

/** Throws for names that the API refuses, and for names that aren't UTF-8, which Node decodes to nonexistent ones. */
function checkName(root: string, base: string, name: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the search is for these.
  const hasControls = /[\u0000-\u001f\u007f]/.test(name)
  if (!hasControls && !name.includes('\ufffd')) return
  const raw = readdirSync(join(root, base), 'buffer').find((one) => one.toString() === name && !isUtf8(one))
  if (!raw && !hasControls) return
  const shown = (raw ?? Buffer.from(name))
    .toString('latin1')
    .replace(/[^ -~]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
  const why = raw ? 'is not UTF-8' : 'has a control character'
  throw usage(`The name of ${base}${shown} ${why}.`, 'Rename the file, or list it in .berthignore.')
}

/** Files to leave out by name: this program, if CI downloaded it into the folder, and the stored tokens. */
function ownFiles(): Map<string, string> {
  const existing = [process.argv[1] ?? '', fileOf()].filter((path) => path !== '' && existsSync(path))
  return new Map(existing.map((path) => [basename(realpathSync(path)), realpathSync(path)]))
}

/** Synchronous reads are faster, but Ctrl-C needs turns of the event loop. */
function createPauses(): () => Promise<void> {
  let sinceMs = Date.now()
  return async () => {
    if (Date.now() - sinceMs < 50) return
    await new Promise<void>((resolve) => setImmediate(resolve))
    sinceMs = Date.now()
  }
}

/** `progress` receives the number of hashed files. */
export async function hashFiles(
  root: string,
  paths: string[],
  progress: (done: number) => void,
): Promise<SourceFile[]> {
  const files: SourceFile[] = []
  const pause = createPauses()
  for (const path of paths) {
    await pause()
    files.push(await hashFile(root, path))
    progress(files.length)
  }
  return files
}

async function hashFile(root: string, path: string): Promise<SourceFile> {
  const full = join(root, path)
  const { size, mode } = lstatSync(full)
  if ((mode & 0o170000) === linkMode) {
    const target = readlinkSync(full, 'buffer')
    return { path, sha256: sha256Of(target), size: target.length, mode: linkMode }
  }
  const program = mode & 0o111 ? { mode: programMode } : {}
  if (size <= maxWholeBytes) {
    const content = readFileSync(full)
    return { path, sha256: sha256Of(content), size: content.length, ...program }
  }
  const hash = createHash('sha256')
  let read = 0
  for await (const chunk of createReadStream(full, { highWaterMark: 1 << 20 })) {
    hash.update(chunk)
    read += chunk.length
  }
  return { path, sha256: hash.digest('hex'), size: read, ...program }
}

const sha256Of = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

/** The content of a hashed file; throws if it has changed since. */
export async function contentOf(root: string, { path, sha256, mode }: SourceFile): Promise<Buffer> {
  const full = join(root, path)
  const content = mode === linkMode ? readlinkSync(full, 'buffer') : readFileSync(full)
  if (sha256Of(content) !== sha256) {
    throw new Failure(exitCodes.failed, `${path} changed during the upload.`, 'Deploy again.')
  }
  return content
}
