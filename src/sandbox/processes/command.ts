// The interface of a sandbox, the same for every driver.
import type { OnReadOpts, Socket } from 'node:net'
import type { Readable } from 'node:stream'

export type Sandbox = {
  readonly driver: 'bubblewrap' | 'none'
  /** What this machine cannot enforce, one sentence each, for the log; null when everything is enforced. */
  readonly warning: string | null
  /** Whether a command that had no memory left is told from one that was killed. */
  readonly tellsOutOfMemory: boolean
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
   * Mounted at /build. Only sandboxes read what a command left in it: the host opens no path below it. If it is
   * writable, it must be made by `makeDirectory`.
   */
  workTree: string
  /** Whether the command may write to the work tree; default true. */
  writable?: boolean
  /** Relative to the work tree. */
  cwd?: string
  /** The whole environment. Added are only PATH and HOME if absent, PWD, and what network or listen need. */
  environment: Record<string, string>
  /** Further host paths, never writable. */
  readOnly?: { host: string; inside: string }[]
  /** Their programs go before those of this machine; never writable. */
  programs?: MountedProgram[]
  /** Further writable mounts, made by `makeDirectory`, outside of trees that sandboxed commands can write to. */
  caches?: Cache[]
  /** The whole standard input; empty without it. The sandbox opens before it is known. */
  input?: Promise<string>
  limits: Limits
  /** What is reachable; null or absent: no network at all. */
  network?: Network | null
  /** For servers: the command gets PORT and listens there; the host reaches it by `connect`. */
  listen?: { port?: number } | null
  onOutput(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Receives standard output instead of `onOutput`, with backpressure. */
  readStdout?(stdout: Readable): void
}

/** A directory with programs in its folder `bin`, which need not be called that. */
export type MountedProgram = { host: string; inside: string; bin: string }

export type Cache = {
  host: string
  inside: string
  /** Nothing is in it yet, so its size need not be measured before the run. */
  empty?: boolean
}

export type Limits = {
  memoryMb: number
  /** Threads count too, as in Linux's own limits: a Node process has eleven. */
  processes: number
  cpus?: number
  /** Limit for the whole work tree plus what a run adds to its caches. */
  diskMb?: number
  /** Infinity for servers. */
  timeoutMs: number
}

export type Network = {
  /**
   * `public`: the internet over TCP and UDP, but no internal address; if this machine cannot make such a network, only
   * by an HTTP proxy. `registry`: only the listed hosts, by an HTTP proxy that npm, git and curl use; Node's own fetch
   * uses it with NODE_USE_ENV_PROXY=1, which costs every Node process 60 ms at its start.
   */
  reach: 'public' | 'registry'
  /**
   * `host:port` (without a port: 80 and 443) that may have private addresses: the package registry and the repository
   * host of this installation. With `public`, npm and git reach them by the proxy.
   */
  private: string[]
}

/**
 * Opens a connection to the port where a command listens. Rejects as Node's own connections do, with ECONNREFUSED if
 * nothing listens; only behind a forwarder the connection is accepted first and then closed. What comes is read by
 * `onread`, as Node defines it, or by the event `data`.
 */
export type Connect = (options?: { onread?: OnReadOpts }) => Promise<Socket>

export type StopReason = 'timeout' | 'memory' | 'killed' | 'disk'

/** A shell's 128 + n is reported as code and as signal n; code is null if the command did not end by itself. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null; reason: 'exit' | StopReason }

export type SandboxedProcess = {
  /**
   * Settles when the last process is gone; rejects with SandboxError when the command could not be started, and with
   * SandboxLost when the machine ended it.
   */
  exited: Promise<Exit>
  /** Null without `listen`, or if the command ended at once. Known before the command listens. */
  connect: Promise<Connect | null>
  /** SIGTERM to the command, SIGKILL to all of it after a second; resolves when the last process is gone. */
  kill(): Promise<void>
}

/** The sandbox failed, not the command in it. */
export class SandboxError extends Error {
  override name = 'SandboxError'
}

/** The command ran, and ended by neither its own doing nor its limits. */
export class SandboxLost extends SandboxError {
  override name = 'SandboxLost'
}

/** Time between SIGTERM and SIGKILL. */
export const GRACE_MS = 1000

/** Where a server listens that is told no other port: that of most templates. */
export const DEFAULT_PORT = 3000
