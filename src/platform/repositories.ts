// Source repositories: how one is reached, and the commit that a ref names.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createReach, type Reach } from './checked-lookup.ts'
import { spawnGit } from './git-process.ts'
import {
  type GitRemote,
  openRemote,
  type Refusal,
  RemoteRefused,
  type RepositoryAccess,
  refusalIn,
} from './git-remote.ts'
import { type RepositoryAddress, readAddress } from './repository-address.ts'

export type Resolution = { found: string } | 'not_found' | Refusal

export type Repositories = {
  /** Where a repository is, by its own address or the template; null if the operator wrote that in a form of their own. */
  addressOf(repo: string): RepositoryAddress | null
  /** What to clone from. Throws `RemoteRefused`. */
  open(repo: string, access: RepositoryAccess | null): Promise<GitRemote>
  /** The full hash that a branch, tag or commit names. Never takes longer than `timeoutMs`. */
  resolve(repo: string, ref: string, timeoutMs: number, access?: RepositoryAccess | null): Promise<Resolution>
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

type Git = (
  args: string[],
  timeoutMs: number,
  remote?: GitRemote,
) => Promise<{ ok: boolean; stdout: string; said: string }>

const mostOutputBytes = 16 << 20
const mostErrorBytes = 4_000

function createGit(searchPath: string): Git {
  return async (args, timeoutMs, remote) => {
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), timeoutMs)
    const { protocols = 'file', settings = {}, environment = {} } = remote ?? {}
    const child = spawnGit({ args, searchPath, protocols, settings, environment, signal: ending.signal })
    child.stdin.end()
    let said = ''
    child.stderr.on('data', (chunk) => (said = (said + chunk).slice(-mostErrorBytes)))
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
    return { ok: code === 0 && !ending.signal.aborted, stdout: Buffer.concat(chunks).toString(), said }
  }
}

const publicOnly = createReach({ webhookAllowPrivate: false, dnsResolvers: [] })

/** `localRoot` is null in production, where only the template is used. `reach` is for hosts that customers name. */
export function createRepositories(
  urlTemplate: string,
  localRoot: string | null,
  searchPath: string,
  reach: Reach = publicOnly,
): Repositories {
  const git = createGit(searchPath)

  function localPath(repo: string): string | null {
    if (localRoot === null || readAddress(repo)) return null
    const path = join(localRoot, `${repo}.git`)
    return existsSync(path) ? path : null
  }

  async function open(repo: string, access: RepositoryAccess | null): Promise<GitRemote> {
    const local = localPath(repo)
    const named = readAddress(repo)
    const url = local ?? urlTemplate.replace('{repo}', repo)
    const address = named ?? templateAddress(url)
    if (address) return openRemote({ address, own: !named, access, reach })
    const protocols = local ? 'file' : 'http:https'
    return { url, protocols, settings: {}, environment: {}, own: true, hasAccess: false, async close() {} }
  }

  async function resolveOver(repo: string, ref: string, timeoutMs: number, access: RepositoryAccess | null) {
    const remote = await open(repo, access)
    try {
      return await resolveRemote(git, remote, ref, timeoutMs)
    } finally {
      await remote.close()
    }
  }

  return {
    addressOf: (repo) => readAddress(repo) ?? templateAddress(urlTemplate.replace('{repo}', repo)),
    open,
    async resolve(repo, ref, timeoutMs, access = null) {
      const local = localPath(repo)
      if (local) return resolveLocal(git, local, ref, timeoutMs)
      return resolveOver(repo, ref, timeoutMs, access).catch((error) => {
        if (error instanceof RemoteRefused) return error.refusal
        throw error
      })
    },
  }
}

/** The operator may write what no customer may; an address of such a form is cloned without any access. */
function templateAddress(url: string): RepositoryAddress | null {
  return url.startsWith('/') ? null : readAddress(url)
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

async function resolveRemote(git: Git, remote: GitRemote, ref: string, timeoutMs: number): Promise<Resolution> {
  const patterns = partialHash.test(ref) ? [] : [`refs/heads/${ref}`, `refs/tags/${ref}`, `refs/tags/${ref}^{}`]
  const result = await git(['ls-remote', '--', remote.url, ...patterns], timeoutMs, remote)
  if (!result.ok) return refusalIn(result.said, remote.hasAccess) ?? 'unreachable'
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
