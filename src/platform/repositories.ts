// Source repositories: the URL of `<owner>/<repository>`, and the commit that a ref names.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { spawnGit } from './git-process.ts'

export type Resolution = { found: string } | 'not_found' | 'unreachable'

export type Repositories = {
  /** What to clone from: a directory in the data directory, or a URL made from the template. */
  urlOf(repo: string): string
  /** The full hash that a branch, tag or commit names. Never takes longer than `timeoutMs`. */
  resolve(repo: string, ref: string, timeoutMs: number): Promise<Resolution>
}

const fullHash = /^[0-9a-f]{40}$/
const partialHash = /^[0-9a-f]{7,40}$/

/** The rules of git-check-ref-format, and no leading dash, so that a ref can never be read as an option. */
export function isRefName(ref: string): boolean {
  return (
    ref.length <= 255 &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: git forbids exactly these.
    /^(?![-/.@]$)(?!-)[^\x00-\x20\x7f~^:?*[\\]+$/.test(ref) &&
    !/\.\.|\/\/|@\{|\/$|\.$|\.lock(\/|$)|(^|\/)\.|^\//.test(ref)
  )
}

type Git = (args: string[], timeoutMs: number) => Promise<{ ok: boolean; stdout: string }>

const mostOutputBytes = 16 << 20

function createGit(searchPath: string): Git {
  return async (args, timeoutMs) => {
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), timeoutMs)
    const child = spawnGit({ args, searchPath, protocols: 'file:http:https', signal: ending.signal })
    child.stdin.end()
    child.stderr.resume()
    const chunks: Buffer[] = []
    let bytes = 0
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > mostOutputBytes) ending.abort()
      else chunks.push(chunk)
    })
    const code = await new Promise<number | null>((resolve) => {
      child.on('error', () => resolve(null))
      child.on('close', resolve)
    })
    clearTimeout(timer)
    return { ok: code === 0 && !ending.signal.aborted, stdout: Buffer.concat(chunks).toString() }
  }
}

/** `localRoot` is null in production, where only the template is used. */
export function createRepositories(urlTemplate: string, localRoot: string | null, searchPath: string): Repositories {
  const git = createGit(searchPath)

  function localPath(repo: string): string | null {
    if (localRoot === null) return null
    const path = join(localRoot, `${repo}.git`)
    return existsSync(path) ? path : null
  }

  return {
    urlOf: (repo) => localPath(repo) ?? urlTemplate.replace('{repo}', repo),
    async resolve(repo, ref, timeoutMs) {
      const local = localPath(repo)
      return local
        ? resolveLocal(git, local, ref, timeoutMs)
        : resolveRemote(git, urlTemplate.replace('{repo}', repo), ref, timeoutMs)
    },
  }
}

async function resolveLocal(git: Git, path: string, ref: string, timeoutMs: number): Promise<Resolution> {
  // Reading the branch saves the 4 ms that a git process takes; tags and hashes are left to git.
  const loose = (await readFile(join(path, 'refs/heads', ref), 'utf8').catch(() => '')).trim()
  if (fullHash.test(loose)) return { found: loose }
  const packed = await readFile(join(path, 'packed-refs'), 'utf8').catch(() => '')
  const line = packed.split('\n').find((line) => line.endsWith(` refs/heads/${ref}`))
  if (line && fullHash.test(line.slice(0, 40))) return { found: line.slice(0, 40) }
  const names = [`refs/heads/${ref}`, `refs/tags/${ref}`, ...(partialHash.test(ref) ? [ref] : [])]
  for (const name of names) {
    const result = await git(['-C', path, 'rev-parse', '--verify', '--quiet', `${name}^{commit}`], timeoutMs)
    if (result.ok && fullHash.test(result.stdout.trim())) return { found: result.stdout.trim() }
  }
  return 'not_found'
}

async function resolveRemote(git: Git, url: string, ref: string, timeoutMs: number): Promise<Resolution> {
  const patterns = partialHash.test(ref) ? [] : [`refs/heads/${ref}`, `refs/tags/${ref}`, `refs/tags/${ref}^{}`]
  const result = await git(['ls-remote', '--', url, ...patterns], timeoutMs)
  if (!result.ok) return 'unreachable'
  const hashes = new Map(
    result.stdout
      .split('\n')
      .map((line) => line.split('\t') as [string, string])
      .map(([hash, name]) => [name, hash]),
  )
  const named = hashes.get(`refs/heads/${ref}`) ?? hashes.get(`refs/tags/${ref}^{}`) ?? hashes.get(`refs/tags/${ref}`)
  if (named) return { found: named }
  if (fullHash.test(ref)) return { found: ref } // Not the tip of a ref: only the clone shows whether it exists.
  const tip = [...hashes.values()].find((hash) => partialHash.test(ref) && hash.startsWith(ref))
  return tip ? { found: tip } : 'not_found'
}
