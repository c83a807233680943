// Asks git about a repository: the commit of a ref, its default branch, its branches, and whether a commit exists.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnGit } from './git-process.ts'
import { type GitRemote, type Refusal, refusalIn } from './git-remote.ts'

/** `isBranch` is false for a tag or commit. `defaultBranch` is what HEAD names, or null if the host doesn't say. */
export type Resolved = Found & { defaultBranch: string | null }
type Found = { found: string; isBranch: boolean }

/** `names` are some of `count` branches, starting with the default branch. */
export type Branches = { defaultBranch: string | null; names: string[]; count: number }

export type Git = (
  args: string[],
  timeoutMs: number,
  remote?: GitRemote,
) => Promise<{ ok: boolean; stdout: string; said: string }>

const maxOutputBytes = 16 << 20
const maxErrorBytes = 4_000
const fullHash = /^[0-9a-f]{40}$/
const partialHash = /^[0-9a-f]{7,40}$/
const heads = 'refs/heads/'

/** The rules of git-check-ref-format, and no leading dash, so that a ref is never taken for an option. */
export function isRefName(ref: string): boolean {
  return (
    ref.length <= 255 &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: git forbids exactly these.
    /^(?![-/.@]$)(?!-)[^\x00-\x20\x7f~^:?*[\\]+$/.test(ref) &&
    !/\.\.|\/\/|@\{|\/$|\.$|\.lock(\/|$)|(^|\/)\.|^\//.test(ref)
  )
}

export function createGit(searchPath: string): Git {
  return async (args, timeoutMs, remote) => {
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), timeoutMs)
    const { protocols = 'file', settings = {}, environment = {} } = remote ?? {}
    const child = spawnGit({ args, searchPath, protocols, settings, environment, signal: ending.signal })
    child.stdin.end()
    let said = ''
    child.stderr.on('data', (chunk) => (said = (said + chunk).slice(-maxErrorBytes)))
    const chunks: Buffer[] = []
    let bytes = 0
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxOutputBytes) ending.abort()
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

/** The name of a branch; null if it is invalid, because a host may send anything. */
function branchIn(ref: string | undefined): string | null {
  const name = ref?.startsWith(heads) ? ref.slice(heads.length) : ''
  return isRefName(name) && name.isWellFormed() ? name : null
}

async function localDefaultBranch(path: string): Promise<string | null> {
  const head = await readFile(join(path, 'HEAD'), 'utf8').catch(() => '')
  return branchIn(/^ref: (\S+)\s*$/.exec(head)?.[1])
}

export async function resolveLocal(
  git: Git,
  path: string,
  ref: string,
  timeoutMs: number,
): Promise<Resolved | 'not_found'> {
  const defaultBranch = await localDefaultBranch(path)
  const found = await findLocal(git, path, ref === 'HEAD' ? (defaultBranch ?? ref) : ref, timeoutMs)
  return found === null ? 'not_found' : { ...found, defaultBranch }
}

async function findLocal(git: Git, path: string, ref: string, timeoutMs: number): Promise<Found | null> {
  // Reading the file saves the 4 ms of a git process. Tags and hashes are left to git.
  const loose = (await readFile(join(path, heads, ref), 'utf8').catch(() => '')).trim()
  if (fullHash.test(loose)) return { found: loose, isBranch: true }
  const packed = await readFile(join(path, 'packed-refs'), 'utf8').catch(() => '')
  const line = packed.split('\n').find((line) => line.endsWith(` ${heads}${ref}`))
  if (line && fullHash.test(line.slice(0, 40))) return { found: line.slice(0, 40), isBranch: true }
  const names = [`${heads}${ref}`, `refs/tags/${ref}`, ...(partialHash.test(ref) ? [ref] : [])]
  for (const name of names) {
    const result = await git(['-C', path, 'rev-parse', '--verify', '--quiet', `${name}^{commit}`], timeoutMs)
    const found = result.stdout.trim()
    if (result.ok && fullHash.test(found)) return { found, isBranch: name.startsWith(heads) }
  }
  return null
}

type Listing = { hashes: Map<string, string>; defaultBranch: string | null }

/** Refs with their hashes, in the host's order. `patterns` are those of ls-remote; none means all refs. */
async function list(git: Git, remote: GitRemote, patterns: string[], timeoutMs: number): Promise<Listing | Refusal> {
  const result = await git(['ls-remote', '--symref', '--', remote.url, ...patterns], timeoutMs, remote)
  if (!result.ok) return refusalIn(result.said, remote.hasAccess) ?? 'unreachable'
  const hashes = new Map<string, string>()
  let defaultBranch: string | null = null
  for (const line of result.stdout.split('\n')) {
    const [value = '', name = ''] = line.split('\t')
    if (value.startsWith('ref: ')) {
      if (name === 'HEAD') defaultBranch = branchIn(value.slice('ref: '.length))
    } else hashes.set(name, value)
  }
  return { hashes, defaultBranch }
}

export async function resolveRemote(
  git: Git,
  remote: GitRemote,
  ref: string,
  timeoutMs: number,
): Promise<Resolved | 'not_found' | Refusal> {
  const named = [`${heads}${ref}`, `refs/tags/${ref}`, `refs/tags/${ref}^{}`]
  const patterns = partialHash.test(ref) ? [] : ref === 'HEAD' ? ['HEAD'] : ['HEAD', ...named]
  const listing = await list(git, remote, patterns, timeoutMs)
  if (typeof listing === 'string') return listing
  const { hashes, defaultBranch } = listing
  const at = (found: string, isBranch = false): Resolved => ({ found, isBranch, defaultBranch })
  const branch = hashes.get(ref === 'HEAD' ? 'HEAD' : named[0]!)
  if (branch) return at(branch, true)
  const tag = hashes.get(named[2]!) ?? hashes.get(named[1]!)
  if (tag) return at(tag)
  if (fullHash.test(ref)) return at(ref) // Not the tip of a ref, so only a clone shows whether it exists.
  const tip = [...hashes.values()].find((hash) => partialHash.test(ref) && hash.startsWith(ref))
  return tip ? at(tip) : 'not_found'
}

const maxBranches = 10

function inOrder(all: string[], defaultBranch: string | null): Branches {
  const first = all.filter((name) => name === defaultBranch)
  const names = [...first, ...all.filter((name) => name !== defaultBranch)].slice(0, maxBranches)
  return { defaultBranch: first[0] ?? null, names, count: all.length }
}

const branchNames = (refs: Iterable<string>) => [...refs].map(branchIn).filter((name) => name !== null)

export async function localBranches(git: Git, path: string, timeoutMs: number): Promise<Branches | null> {
  const result = await git(['-C', path, 'for-each-ref', '--format=%(refname)', heads], timeoutMs)
  if (!result.ok) return null
  return inOrder(branchNames(result.stdout.split('\n')), await localDefaultBranch(path))
}

export async function remoteBranches(git: Git, remote: GitRemote, timeoutMs: number): Promise<Branches | null> {
  const listing = await list(git, remote, ['HEAD', `${heads}*`], timeoutMs)
  return typeof listing === 'string' ? null : inOrder(branchNames(listing.hashes.keys()), listing.defaultBranch)
}

export async function hasLocalCommit(git: Git, path: string, commit: string, timeoutMs: number): Promise<boolean> {
  return (await git(['-C', path, 'cat-file', '-e', `${commit}^{commit}`], timeoutMs)).ok
}

/**
 * Whether the host has a commit; null if it doesn't say. A commit that isn't the tip of a ref can only be found by fetching
 * it. That fetches one commit, without its files if the host supports filters.
 */
export async function hasRemoteCommit(
  git: Git,
  remote: GitRemote,
  commit: string,
  timeoutMs: number,
): Promise<boolean | null> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-commit-'))
  try {
    await git(['init', '-q', '--bare', '--template=', directory], timeoutMs)
    const fetch = ['fetch', '-q', '--depth=1', '--no-tags', '--filter=tree:0', '--', remote.url, commit]
    const { ok, said } = await git(['-C', directory, ...fetch], timeoutMs, remote)
    if (ok) return true
    return /\bnot our ref\b/.test(said) ? false : null
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
