// The source of a build: exactly one commit, fetched by git without prompts, hooks, submodules or foreign protocols.
import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { isRefName, type Repositories } from '../../repositories.ts'
import { BuildFailure } from './failure.ts'
import type { BuildLog } from './log.ts'

// A repository host that is away for a moment must not fail a build: five tries within half a minute.
const resolveDelaysMs = [1_000, 3_000, 8_000, 15_000]
const resolveTimeoutMs = 10_000

export async function resolveCommit(
  repositories: Repositories,
  repo: string,
  ref: string,
  signal: AbortSignal,
): Promise<string> {
  for (const delayMs of [...resolveDelaysMs, null]) {
    const resolution = isRefName(ref) ? await repositories.resolve(repo, ref, resolveTimeoutMs) : 'not_found'
    if (resolution === 'not_found')
      throw new BuildFailure('ref_not_found', `${repo} has no branch, tag or commit ${ref}.`)
    if (resolution !== 'unreachable') return resolution.found
    if (delayMs !== null) await sleep(delayMs, undefined, { signal })
  }
  throw new BuildFailure('repository_unreachable', `The host of ${repo} does not answer.`)
}

export async function fetchCommit(
  options: { url: string; commit: string; tree: string; searchPath: string; signal: AbortSignal },
  log: BuildLog,
): Promise<void> {
  const { url, commit, tree, signal } = options
  await mkdir(tree, { recursive: true })
  const local = url.startsWith('/')
  const git = (...args: string[]) => runGit(args, { ...options, local }, log)
  // Without the sample hooks, which would be written and removed for every build.
  await git('init', '-q', '--template=')
  // A host may refuse to serve a commit by its hash; then the whole history is fetched and looked through.
  const source = local ? `file://${url}` : url
  const fetched = await git('fetch', '-q', '--depth', '1', '--no-tags', source, commit)
  if (!fetched && !(await git('fetch', '-q', '--tags', source, '+refs/heads/*:refs/remotes/origin/*'))) {
    signal.throwIfAborted()
    throw new BuildFailure('clone_failed', 'The repository could not be cloned; the log tells why.')
  }
  if (!(await git('-c', 'advice.detachedHead=false', 'checkout', '-q', '--force', commit))) {
    signal.throwIfAborted()
    throw new BuildFailure('clone_failed', `The commit ${commit.slice(0, 7)} is not in the repository.`)
  }
}

function runGit(
  args: string[],
  options: { tree: string; searchPath: string; signal: AbortSignal; local: boolean },
  log: BuildLog,
): Promise<boolean> {
  const settings = {
    'core.hooksPath': '/dev/null',
    'core.fsmonitor': 'false',
    'submodule.recurse': 'false',
    'fetch.recurseSubmodules': 'false',
    'protocol.version': '2',
    'safe.directory': '*',
    'http.followRedirects': 'initial',
    'transfer.fsckObjects': 'true',
    // The repository lives for one build.
    'gc.auto': '0',
    'maintenance.auto': 'false',
  }
  const entries = Object.entries(settings)
  const child = spawn('git', ['-C', options.tree, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: options.searchPath,
      GIT_TERMINAL_PROMPT: '0',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_ALLOW_PROTOCOL: options.local ? 'file' : 'http:https',
      GIT_LFS_SKIP_SMUDGE: '1',
      GIT_CONFIG_COUNT: String(entries.length),
      ...Object.fromEntries(entries.map(([key], index) => [`GIT_CONFIG_KEY_${index}`, key])),
      ...Object.fromEntries(entries.map(([, value], index) => [`GIT_CONFIG_VALUE_${index}`, value])),
    },
    signal: options.signal,
    killSignal: 'SIGKILL',
  })
  child.stdout.on('data', (chunk) => log.output('stdout', chunk))
  child.stderr.on('data', (chunk) => log.output('stderr', chunk))
  return new Promise((resolve) => {
    child.on('error', () => resolve(false))
    child.on('close', (code) => {
      log.endCommand()
      resolve(code === 0)
    })
  })
}
