// What is asked of a sandbox and what comes back; the same for every driver.
import type { Readable } from 'node:stream'

export type Sandbox = {
  readonly driver: 'bubblewrap' | 'none'
  /** What this machine cannot enforce, one sentence each, for the log; null when everything is enforced. */
  readonly warning: string | null
  run(command: SandboxedCommand): SandboxedProcess
  /** Makes an empty directory that commands may write to; its parents exist and are the host's own. */
  makeDirectory(path: string): Promise<void>
  /** Kills what still runs and removes every file and control group of this sandbox. */
  close(): Promise<void>
}

export type SandboxedCommand = {
  /** The program and its arguments, e.g. ['/bin/sh', '-c', 'npm run build']. */
  argv: string[]
  /**
   * Appears at /build. Whatever a command left in it is for sandboxes alone: the host opens no path below it. To be
   * written to, it was made by `makeDirectory`.
   */
  workTree: string
  /** Whether the command may write to the work tree; true unless told otherwise. */
  writable?: boolean
  /** Relative to the work tree. */
  cwd?: string
  /** All of it: only PATH and HOME where they are absent, PWD, and with network or listen what these need are added. */
  environment: Record<string, string>
  /** Further host paths, never writable. */
  readOnly?: { host: string; inside: string }[]
  /** Further writable mounts, made by `makeDirectory`; they lie in no tree that sandboxed commands can write. */
  caches?: { host: string; inside: string }[]
  limits: Limits
  /** What is reachable; null or absent: no network at all. */
  network?: Network | null
  /** For servers: the command is told PORT, listens there, and `address` says how the host reaches it. */
  listen?: { port?: number } | null
  onOutput(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Takes standard output in place of `onOutput`, at the pace at which it is read. */
  readStdout?(stdout: Readable): void
}

export type Limits = {
  memoryMb: number
  /** Threads count too, as in Linux's own limits: Node alone has eleven. */
  processes: number
  cpus?: number
  /** Of the work tree as a whole and of what a run adds to its caches. */
  diskMb?: number
  /** Infinity for servers. */
  timeoutMs: number
}

export type Network = {
  /**
   * `public`: the internet over TCP and UDP by name, and nothing inward; where this machine cannot make such a network,
   * what an HTTP proxy reaches of it. `registry`: the listed hosts alone, by an HTTP proxy that npm, git and curl take;
   * Node's own fetch takes it with NODE_USE_ENV_PROXY=1, which costs every Node process 60 ms at its start.
   */
  reach: 'public' | 'registry'
  /**
   * `host:port`, without a port 80 and 443, that may have private addresses: the package registry and the repository
   * host of this installation. With `public`, npm and git reach such a one by the proxy.
   */
  private: string[]
}

export type Address = { socketPath: string } | { host: string; port: number }

export type StopReason = 'timeout' | 'memory' | 'killed' | 'disk'

/** A shell's 128 + n is told as code and as signal n; code is null when the command did not end by itself. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null; reason: 'exit' | StopReason }

export type SandboxedProcess = {
  /** Settles when the last process is gone; rejects with SandboxError when the command could not be started. */
  exited: Promise<Exit>
  /** Spread into http.request or net.connect; null without `listen`. Known before the command listens. */
  address: Promise<Address | null>
  /** SIGTERM to the command, SIGKILL to all of it after a second; resolves when the last process is gone. */
  kill(): Promise<void>
}

/** The sandbox failed, not the command in it. */
export class SandboxError extends Error {
  override name = 'SandboxError'
}

/** Time between SIGTERM and SIGKILL. */
export const GRACE_MS = 1000
