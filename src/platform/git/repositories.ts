// Source repositories: how to reach one, and what it says about a ref, a push and its branches.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createReach, type Reach } from '../http/checked-lookup.ts'
import {
  type Branches,
  createGit,
  hasLocalCommit,
  hasRemoteCommit,
  localBranches,
  type Resolved,
  remoteBranches,
  resolveLocal,
  resolveRemote,
} from './git-refs.ts'
import { type GitRemote, openRemote, type Refusal, RemoteRefused, type RepositoryAccess } from './git-remote.ts'
import { type RepositoryAddress, readAddress } from './repository-address.ts'

export { isRefName } from './git-refs.ts'

export type Resolution = Resolved | 'not_found' | Refusal

/**
 * What the repository says about a push. `commit` is unknown if the host doesn't respond or doesn't say, so that only a
 * fetch can show it.
 */
export type PushCheck = { commit: 'present' | 'missing' | 'unknown'; isReached: boolean; defaultBranch: string | null }

export type Repositories = {
  /** The repository's own URL or the template's; null if the operator's template isn't a URL that we parse. */
  addressOf(repo: string): RepositoryAddress | null
  /** What to clone from. Throws `RemoteRefused`. */
  open(repo: string, access: RepositoryAccess | null): Promise<GitRemote>
  /** The full hash of a branch, tag, commit or `HEAD`. Takes at most `timeoutMs`. */
  resolve(repo: string, ref: string, timeoutMs: number, access?: RepositoryAccess | null): Promise<Resolution>
  /** Some branches; null if the host doesn't respond within `timeoutMs`. */
  branches(repo: string, timeoutMs: number, access?: RepositoryAccess | null): Promise<Branches | null>
  /** Sends up to three requests, each of at most `timeoutMs`. */
  checkPush(repo: string, push: Pushed, timeoutMs: number, access?: RepositoryAccess | null): Promise<PushCheck>
}

export type Pushed = { branch: string; commit: string }

// A host with several machines may announce a push before all of them have it.
const recheckMs = 1_000

const publicOnly = createReach({ webhookAllowPrivate: false, dnsResolvers: [] })

/** `localRoot` is null in production, where only the template is used. `reach` applies to hosts that customers name. */
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

  /** Runs `query` on the remote, or `refused` if we may not contact it. */
  async function ask<T, R>(
    repo: string,
    access: RepositoryAccess | null,
    question: (remote: GitRemote) => Promise<T>,
    refused: (refusal: Refusal) => R,
  ): Promise<T | R> {
    try {
      const remote = await open(repo, access)
      return await question(remote).finally(remote.close)
    } catch (error) {
      if (error instanceof RemoteRefused) return refused(error.refusal)
      throw error
    }
  }

  const resolveOver = (repo: string, ref: string, timeoutMs: number, access: RepositoryAccess | null) =>
    ask(
      repo,
      access,
      (remote) => resolveRemote(git, remote, ref, timeoutMs),
      (refusal) => refusal,
    )

  async function checkRemotePush(
    repo: string,
    { branch, commit }: Pushed,
    timeoutMs: number,
    access: RepositoryAccess | null,
  ): Promise<PushCheck> {
    const tip = await resolveOver(repo, branch, timeoutMs, access)
    const isReached = typeof tip === 'object' || tip === 'not_found'
    const defaultBranch = typeof tip === 'object' ? tip.defaultBranch : null
    if (!isReached) return { commit: 'unknown', isReached, defaultBranch }
    if (typeof tip === 'object' && tip.found === commit) return { commit: 'present', isReached, defaultBranch }
    const has = () =>
      ask(
        repo,
        access,
        (remote) => hasRemoteCommit(git, remote, commit, timeoutMs),
        () => null,
      )
    let found = await has()
    if (found === false) found = await sleep(recheckMs).then(has)
    const known = found === null ? 'unknown' : found ? 'present' : 'missing'
    return { commit: known, isReached, defaultBranch }
  }

  return {
    addressOf: (repo) => readAddress(repo) ?? templateAddress(urlTemplate.replace('{repo}', repo)),
    open,
    async resolve(repo, ref, timeoutMs, access = null) {
      const local = localPath(repo)
      return local ? resolveLocal(git, local, ref, timeoutMs) : resolveOver(repo, ref, timeoutMs, access)
    },
    async branches(repo, timeoutMs, access = null) {
      const local = localPath(repo)
      if (local) return localBranches(git, local, timeoutMs)
      return ask(
        repo,
        access,
        (remote) => remoteBranches(git, remote, timeoutMs),
        () => null,
      )
    },
    async checkPush(repo, push, timeoutMs, access = null) {
      const local = localPath(repo)
      if (!local) return checkRemotePush(repo, push, timeoutMs, access)
      const head = await resolveLocal(git, local, 'HEAD', timeoutMs)
      const commit = (await hasLocalCommit(git, local, push.commit, timeoutMs)) ? 'present' : 'missing'
      return { commit, isReached: true, defaultBranch: typeof head === 'object' ? head.defaultBranch : null }
    },
  }
}

/** The operator may use forms that customers may not. Those are cloned without credentials. */
function templateAddress(url: string): RepositoryAddress | null {
  return url.startsWith('/') ? null : readAddress(url)
}

/** The host of a repository, for messages. */
export function hostOf(repositories: Pick<Repositories, 'addressOf'>, repo: string): string {
  const address = repositories.addressOf(repo)
  if (!address) return `the host of ${repo}`
  return address.port ? `${address.hostname}:${address.port}` : address.hostname
}
