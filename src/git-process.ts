// A git process of the host. It reads what strangers wrote: it ends with all its helpers, and what it may use is bounded.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'

export type GitProcess = {
  args: string[]
  searchPath: string
  /** As in GIT_ALLOW_PROTOCOL. */
  protocols: string
  settings?: Record<string, string>
  /** Ends it at once, with its helpers. */
  signal: AbortSignal
}

// Of each file that it writes, of its address space, and of the processor's time. A pack of a megabyte can ask for any
// amount of memory, and a tree of a few objects for any amount of time.
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
  // A host that sends next to nothing for a minute is away.
  'http.lowSpeedLimit': '100',
  'http.lowSpeedTime': '60',
  'transfer.fsckObjects': 'true',
}

/** Without the server's environment: no prompt, no helper, no configuration of a user. */
export function spawnGit({
  args,
  searchPath,
  protocols,
  settings,
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
    },
    // A group of its own: git leaves the transfer to helpers, which would outlive it.
    detached: true,
  })
  const end = () => killGroup(child.pid)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  child.on('close', () => signal.removeEventListener('abort', end))
  child.stdin.on('error', () => {})
  return child
}

export function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // Nobody is there any more.
  }
}
