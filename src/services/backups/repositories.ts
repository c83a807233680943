// The git repositories of the data directory, as bundles: git ensures that each one is consistent and complete.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TreeEntry } from '../../platform/artifacts/trees.ts'
import { BadArchive } from '../../platform/files/tar.ts'
import { spawnGit } from '../../platform/git/git-process.ts'
import type { RecordIncomplete } from './files.ts'
import { inPieces } from './tables.ts'

const part = '(?![.-])[A-Za-z0-9._-]+'
const repositoryPath = new RegExp(`^repos/(${part}/${part}\\.git)/(HEAD|\\d{6,})$`)
const branch = /^refs\/heads\/[^\s~^:?*[\\]+$/

/** The repository to which an entry belongs, as `<owner>/<name>.git`. */
export function repositoryOf(path: string): string | undefined {
  return repositoryPath.exec(path)?.[1]
}

/** Yields `HEAD` and the pieces of the bundle, or only `HEAD` of an empty repository. Skips settings and hooks. */
export async function* readRepositories(
  root: string,
  searchPath: string,
  recordIncomplete: RecordIncomplete,
): AsyncGenerator<TreeEntry> {
  for (const repository of await findRepositories(root)) {
    const git = runGit(searchPath, join(root, repository))
    const path = `repos/${repository}`
    try {
      const head = Buffer.from(await textOf(git('symbolic-ref', 'HEAD')))
      yield { kind: 'file', path: `${path}/HEAD`, mode: 0o600, size: head.length, content: [head] }
      if ((await textOf(git('for-each-ref', '--count=1'))) === '') continue
      let piece = 0
      for await (const content of inPieces(git('bundle', 'create', '-', '--all'))) {
        const size = content.reduce((sum, { length }) => sum + length, 0)
        yield { kind: 'file', path: `${path}/${String(piece++).padStart(6, '0')}`, mode: 0o600, size, content }
      }
    } catch (error) {
      if (!(error instanceof GitFailure)) throw error
      recordIncomplete(`the repository ${repository}`, error.message)
    }
  }
}

async function findRepositories(root: string): Promise<string[]> {
  const found: string[] = []
  const subdirectories = async (path: string) =>
    (await readdir(path, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  for (const owner of await subdirectories(root).catch(() => [])) {
    for (const { name } of await subdirectories(join(root, owner.name))) {
      if (repositoryOf(`repos/${owner.name}/${name}/HEAD`)) found.push(`${owner.name}/${name}`)
    }
  }
  return found.sort()
}

/** Creates a repository from the entries of `readRepositories`. Returns false if git refuses the bundle. */
export async function writeRepository(
  root: string,
  searchPath: string,
  repository: string,
  entries: AsyncIterable<{ path: string; content: AsyncIterable<Buffer> }>,
): Promise<boolean> {
  const directory = join(root, repository)
  const bundle = `${directory}.bundle`
  const git = runGit(searchPath, directory)
  await mkdir(dirname(directory), { recursive: true })
  let head = ''
  let pieces = 0
  for await (const { path, content } of entries) {
    if (!path.endsWith('/HEAD')) await writeFile(bundle, content, { flag: pieces++ === 0 ? 'wx' : 'a', mode: 0o600 })
    else for await (const chunk of content) head += chunk.toString()
  }
  if (!branch.test(head.trim())) throw new BadArchive(`The archive has no branch for ${repository}.`)
  await mkdir(directory)
  try {
    await textOf(git('init', '-q', '--bare', '.'))
    await textOf(git('symbolic-ref', 'HEAD', head.trim()))
    if (pieces > 0) await textOf(git('fetch', '-q', '--no-write-fetch-head', bundle, '+refs/*:refs/*'))
    return true
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    return false
  } finally {
    await rm(bundle, { force: true })
  }
}

class GitFailure extends Error {}

/** Yields the output of git, then throws if git failed. */
function runGit(searchPath: string, directory: string) {
  return async function* (...args: string[]): AsyncGenerator<Buffer> {
    const abort = new AbortController()
    const child = spawnGit({ args: ['-C', directory, ...args], searchPath, protocols: 'file', signal: abort.signal })
    child.stdin.end()
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = `${stderr}${chunk}`.slice(0, 500)
    })
    const closed = new Promise<number | null>((resolve) => {
      child.on('error', () => resolve(null))
      child.on('close', resolve)
    })
    try {
      yield* child.stdout
      const code = await closed
      if (code !== 0) throw new GitFailure(`git ${args[0]} failed: ${stderr.trim().split('\n')[0] || code}`)
    } finally {
      abort.abort()
    }
  }
}

async function textOf(output: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const chunk of output) text += chunk.toString()
  return text.trim()
}
