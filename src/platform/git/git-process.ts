// Runs git on the host. Git reads untrusted data, so its resources are limited and its helpers end with it.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { onAbort } from '../abort.ts'

export type GitProcess = {
  args: string[]
  searchPath: string
  /** The value of GIT_ALLOW_PROTOCOL. */
  protocols: string
  settings?: Record<string, string>
  environment?: Record<string, string>
  /** Kills it at once, with its helpers. */
  signal: AbortSignal
}

// Limits of file size, address space and CPU time. A pack of a megabyte can require any amount of memory, and a tree of a
// few objects any amount of time.
const limits = `ulimit -f ${(4 * 1024 ** 3) / 512}; ulimit -v ${3 * 1024 ** 2}; ulimit -t 600`

const always = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.packedGitWindowSize': '64m',
  'core.packedGitLimit': '512m',
  'pack.threads': '1',
  'submodule.recurse': 'false',
  'fetch.recurseSubmodules': 'false',
  'protocol.version': '2',
  'safe.directory': '*',
  'http.followRedirects': 'initial',
  // A host that sends almost nothing for a minute counts as down.
  'http.lowSpeedLimit': '100',
  'http.lowSpeedTime': '60',
  'transfer.fsckObjects': 'true',
}

/** Runs without the server's environment: no prompt, no credential helper, no user configuration. */
export function spawnGit({
  args,
  searchPath,
  protocols,
  settings,
  environment,
  signal,
}: GitProcess): ChildProcessWithoutNullStreams {
  const entries = Object.entries({ ...always, ...settings })
  const child = spawn('/bin/sh', ['-c', `${limits}; exec git "$@"`, 'git', ...args], {
    env: {
      PATH: searchPath,
      GIT_TERMINAL_PROMPT: '0',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_ALLOW_PROTOCOL: protocols,
      GIT_LFS_SKIP_SMUDGE: '1',
      GIT_CONFIG_COUNT: String(entries.length),
      ...Object.fromEntries(entries.map(([key], index) => [`GIT_CONFIG_KEY_${index}`, key])),
      ...Object.fromEntries(entries.map(([, value], index) => [`GIT_CONFIG_VALUE_${index}`, value])),
      ...environment,
    },
    // A process group of its own: git starts transfer helpers, which could outlive it.
    detached: true,
  })
  const unlisten = onAbort(signal, () => killGroup(child.pid))
  child.on('close', unlisten)
  child.stdin.on('error', () => {})
  return child
}

export function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has ended.
  }
}
