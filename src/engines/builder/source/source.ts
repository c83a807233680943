// Opens a commit and its submodules, fetched into a bare repository and read as objects.
import type { Resolved } from '../../../platform/git/git-refs.ts'
import {
  type GitRemote,
  isUnreachable,
  type Refusal,
  type RepositoryAccess,
  refusalIn,
} from '../../../platform/git/git-remote.ts'
import { hostOf, isRefName, type Repositories } from '../../../platform/git/repositories.ts'
import { describeMissingRef } from '../../../services/deployments/index.ts'
import { BuildFailure, HostUnreachable } from '../explain/failure.ts'
import type { BuildLog } from '../explain/log.ts'
import { asText, type Source, type TreeEntry } from '../tree/source-tree.ts'
import { type GitOptions, makeBareRepository, openObjects, readRecords, runGit } from './git.ts'
import { fetchLfs } from './lfs.ts'
import { submoduleUrl, submoduleUrls } from './submodules.ts'

export type SourceOptions = {
  url: string
  /** Submodules are cloned from the same host. */
  urlTemplate: string
  /** How to access the host. Default: anonymously. */
  remote?: Pick<GitRemote, 'protocols' | 'settings' | 'environment' | 'own' | 'hasAccess'>
  commit: string
  /** A ref that contains the commit if no branch does, such as refs/pull/7/head. */
  ref?: string | undefined
  /** Whether the commit comes from a fork. */
  untrusted?: boolean
  /** Created by `openSource`. */
  directory: string
  searchPath: string
  signal: AbortSignal
}

const resolveTimeoutMs = 10_000
const maxEntries = 200_000
const maxRecordLength = 8_192
const maxMessageLength = 200
// A few small objects can describe a tree of any size.
const maxNameBytes = 64 << 20
const maxSubmodules = 50

/** The failure for a host that refuses access. */
export function refusalFailure(repo: string, refusal: Exclude<Refusal, 'unreachable'>): BuildFailure {
  switch (refusal) {
    case 'denied':
      return new BuildFailure(
        'repository_access_denied',
        `${repo} does not exist, or we cannot read it. For a private repository, create a deploy key or store a token with ` +
          'PUT /projects/{project}/repository-access, and add the key at the repository host.',
      )
    case 'host_key_changed':
      return new BuildFailure(
        'host_key_changed',
        `The host of ${repo} presents a different host key than before. Check whether its operator changed it; if so, ` +
          'set `hostKeys` with PUT /projects/{project}/repository-access.',
      )
    case 'address_refused':
      return new BuildFailure('repository_access_denied', `The host of ${repo} has no public address.`)
  }
}

export async function resolveCommit(
  repositories: Repositories,
  { repo, ref }: { repo: string; ref: string },
  access: RepositoryAccess | null,
): Promise<Resolved> {
  const resolution = isRefName(ref) ? await repositories.resolve(repo, ref, resolveTimeoutMs, access) : 'not_found'
  if (typeof resolution === 'object') return resolution
  if (resolution === 'unreachable') throw new HostUnreachable(hostOf(repositories, repo))
  if (resolution !== 'not_found') throw refusalFailure(repo, resolution)
  const branches = await repositories.branches(repo, resolveTimeoutMs, access)
  throw new BuildFailure('ref_not_found', describeMissingRef(repo, ref, branches))
}

export async function openSource(options: SourceOptions, log: BuildLog): Promise<Source> {
  const { url, commit, ref, directory, searchPath, signal, remote } = options
  const git: GitOptions = { directory, searchPath, signal, local: url.startsWith('/') }
  await makeBareRepository(directory)
  await fetchCommit(git, { url, commit, ref, remote }, log)
  // Starts its process while the tree is listed.
  const entries = new Map<string, TreeEntry>()
  const source = sourceOf(git, commit, entries)
  try {
    const [submodules, message] = await Promise.all([listAll(options, git, entries, log), messageOf(git, commit)])
    Object.assign(source, { submodules, message })
    source.usesLfs = await fetchLfs(source, git, { ...remote, url }, log)
    return source
  } catch (error) {
    source.close()
    throw error
  }
}

/** A source for a commit in the repository. `entries` may be filled later. */
export function sourceOf(git: GitOptions, commit: string, entries: Map<string, TreeEntry>): Source {
  const objects = openObjects(git)
  return {
    directory: git.directory,
    commit,
    message: '',
    entries,
    submodules: [],
    usesLfs: false,
    async text(path, maxBytes) {
      const entry = entries.get(path)
      if (entry?.kind !== 'file' || entry.size > maxBytes) return null
      let text: string | null = null
      for await (const content of objects.read([entry])) text = (await content.whole()).toString()
      return text
    },
    read: (wanted) => objects.read(wanted),
    close: () => objects.close(),
  }
}

/** The untrusted subject of the commit, shortened and without control characters. */
async function messageOf(git: GitOptions, commit: string): Promise<string> {
  try {
    for await (const record of readRecords(['log', '-1', '-z', '--format=%s', commit], git, maxRecordLength)) {
      const line = record
        .toString()
        .replace(/\p{Cc}+/gu, ' ')
        .trim()
      return [...line].slice(0, maxMessageLength).join('')
    }
  } catch {
    // The message is optional.
  }
  return ''
}

/** Adds the files of the commit and, recursively, of its submodules, which it fetches. */
async function listAll(
  { url, commit, urlTemplate, remote, untrusted }: SourceOptions,
  git: GitOptions,
  entries: Map<string, TreeEntry>,
  log: BuildLog,
): Promise<Source['submodules']> {
  const submodules: Source['submodules'] = []
  const queue = [{ url, commit, path: '' }]
  for (let module = queue.shift(); module; module = queue.shift()) {
    const prefix = module.path === '' ? '' : `${module.path}/`
    const links = await listTree(git, module, entries)
    if (links.length === 0) continue
    if (untrusted && remote?.hasAccess) throw submodulesOfFork()
    const urls = await submoduleUrls(git, module.commit)
    for (const { path: linkPath, commit } of links) {
      const path = prefix + linkPath
      const shown = asText(path)
      if (Buffer.from(shown).toString('latin1') !== path) {
        throw new BuildFailure('clone_failed', `The submodule ${shown} cannot be cloned: its path is not UTF-8.`)
      }
      const found = submoduleUrl(urls.get(linkPath), shown, module.url, urlTemplate)
      if (submodules.length >= maxSubmodules) throw tooMany(`${maxSubmodules} submodules`)
      log.system(`Cloning submodule ${shown} at ${commit.slice(0, 7)}`)
      await fetchCommit({ ...git, local: false }, { url: found, commit, remote, what: `submodule ${shown}` }, log)
      submodules.push({ path, commit })
      queue.push({ url: found, commit, path })
    }
  }
  return submodules
}

type FetchOptions = {
  url: string
  commit: string
  ref?: string | undefined
  remote: SourceOptions['remote']
  what?: string
}

async function fetchCommit(
  git: GitOptions,
  { url, commit, ref, remote, what }: FetchOptions,
  log: BuildLog,
): Promise<void> {
  const source = git.local ? `file://${url}` : url
  const fetch = (...args: string[]) => runGit(['fetch', '-q', ...args], git, log, remote)
  const first = await fetch('--depth', '1', '--no-tags', source, commit)
  git.signal.throwIfAborted()
  if (first.ok) return
  const refusal = git.local ? null : refusalIn(first.lastOutput, remote?.hasAccess ?? false)
  if (refusal && refusal !== 'unreachable') throw refusalFailure(what ?? url, refusal)
  if (!git.local && !what && isUnreachable(first.lastOutput)) throw new HostUnreachable(hostIn(url))
  // Some hosts don't serve commits by hash, so fetch the whole history instead.
  const more = ref ? [`+${ref}:refs/remotes/request`] : []
  const { ok } = await fetch('--tags', source, '+refs/heads/*:refs/remotes/origin/*', ...more)
  git.signal.throwIfAborted()
  if (!ok) throw new BuildFailure('clone_failed', `The ${what ?? 'repository'} could not be cloned; the log says why.`)
}

/** `url` comes from the operator's template and may not be a URL. */
const hostIn = (url: string) => (URL.canParse(url) ? new URL(url).host : 'the repository host')

/** The project's access may cover repositories that the fork's author can't read. */
const submodulesOfFork = () =>
  new BuildFailure(
    'clone_failed',
    'The commit has submodules. For a fork, they are not fetched with the project’s access, which may exceed that of its author.',
  )

const tooMany = (what: string) => new BuildFailure('clone_failed', `The repository has more than ${what}.`)

/** Adds the files of a commit to `entries` and returns its submodules. */
export async function listTree(
  git: GitOptions,
  { path, commit }: { path: string; commit: string },
  entries: Map<string, TreeEntry>,
): Promise<{ path: string; commit: string }[]> {
  const submodules: { path: string; commit: string }[] = []
  let nameBytes = 0
  const start = Buffer.from(path === '' ? '' : `${path}/`, 'latin1')
  try {
    for await (const record of readRecords(['ls-tree', '-r', '-z', '--long', commit], git, maxRecordLength)) {
      const tab = record.indexOf(0x09)
      const [mode, , hash = '', size] = record.toString('latin1', 0, tab).split(/ +/)
      const name = Buffer.concat([start, record.subarray(tab + 1)])
      nameBytes += name.length
      if (nameBytes > maxNameBytes) throw tooMany(`${maxNameBytes >> 20} MB of names`)
      if (mode === '160000') submodules.push({ path: record.toString('latin1', tab + 1), commit: hash })
      else
        entries.set(name.toString('latin1'), {
          name,
          kind: mode === '120000' ? 'link' : 'file',
          hash,
          size: Number(size),
        })
      if (entries.size > maxEntries) throw tooMany(`${maxEntries} files`)
      if (submodules.length > maxSubmodules) throw tooMany(`${maxSubmodules} submodules`)
    }
  } catch (error) {
    git.signal.throwIfAborted()
    if (error instanceof BuildFailure) throw error
    const where = path === '' ? 'repository' : `repository of the submodule ${asText(path)}`
    throw new BuildFailure('clone_failed', `The commit ${commit.slice(0, 7)} is not in the ${where}.`)
  }
  return submodules
}
