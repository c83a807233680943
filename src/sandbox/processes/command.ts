// The interface of a sandbox, the same for every driver.
import type { OnReadOpts, Socket } from 'node:net'
import type { Readable } from 'node:stream'

export type Sandbox = {
  readonly driver: 'bubblewrap' | 'none'
  /** What this machine can't enforce, for the log; null if everything is enforced. */
  readonly warning: string | null
  /** Whether running out of memory can be distinguished from other kills. */
  readonly tellsOutOfMemory: boolean
  run(command: SandboxedCommand): SandboxedProcess
  /** Creates an empty directory that commands may write to, in an existing directory of the host. */
  makeDirectory(path: string): Promise<void>
  /** Kills all commands and removes every file and control group of this sandbox. */
  close(): Promise<void>
}

export type SandboxedCommand = {
  /** The program and its arguments, e.g. ['/bin/sh', '-c', 'npm run build']. */
  argv: string[]
  /**
   * Mounted at /build. Only sandboxes read what a command left in it; the host opens no path below it. If writable, it
   * must come from `makeDirectory`.
   */
  workTree: string
  /** Whether the command may write to the work tree; default true. */
  writable?: boolean
  /** Relative to the work tree. */
  cwd?: string
  /** The whole environment, plus PATH and HOME if absent, PWD, and what `network` and `listen` need. */
  environment: Record<string, string>
  /** Further host paths, never writable. */
  readOnly?: { host: string; inside: string }[]
  /** Read-only programs that take precedence over this machine's. */
  programs?: MountedProgram[]
  /** Further writable mounts from `makeDirectory`, outside of trees that sandboxed commands can write to. */
  caches?: Cache[]
  /** The whole standard input. The sandbox opens before it resolves. */
  input?: Promise<string>
  limits: Limits
  /** What is reachable; null or absent: no network at all. */
  network?: Network | null
  /** For servers: the command gets PORT and listens there, and the host uses `connect`. */
  listen?: { port?: number } | null
  onOutput(stream: 'stdout' | 'stderr', chunk: Buffer): void
  /** Receives standard output instead of `onOutput`, with backpressure. */
  readStdout?(stdout: Readable): void
}

/** A directory with programs in the folder `bin`. */
export type MountedProgram = { host: string; inside: string; bin: string }

export type Cache = {
  host: string
  inside: string
  /** Whether it is empty, so that its size needn't be measured before the run. */
  empty?: boolean
}

export type Limits = {
  memoryMb: number
  /** Includes threads, as in Linux's own limits. A Node process has eleven. */
  processes: number
  cpus?: number
  /** Limit for the whole work tree plus what a run adds to its caches. */
  diskMb?: number
  /** Infinity for servers. */
  timeoutMs: number
}

export type Network = {
  /**
   * `public`: the internet over TCP and UDP without internal addresses, or through an HTTP proxy if this machine doesn't
   * support that. `registry`: only the listed hosts, through an HTTP proxy that npm, git and curl use. Node's own fetch
   * needs NODE_USE_ENV_PROXY=1, which costs every Node process 60 ms at startup.
   */
  reach: 'public' | 'registry'
  /**
   * Each `host:port` (without a port: 80 and 443) that may have private addresses: this installation's package registry
   * and repository host. With `public`, npm and git reach them through the proxy.
   */
  private: string[]
}

/**
 * Connects to the port where a command listens. Rejects like Node's own connections, with ECONNREFUSED if nothing
 * listens; behind a forwarder, the connection is accepted and then closed instead. Data arrives through Node's `onread`
 * or as `data` events.
 */
export type Connect = (options?: { onread?: OnReadOpts }) => Promise<Socket>

export type StopReason = 'timeout' | 'memory' | 'killed' | 'disk'

/** A shell's 128 + n is reported as code and as signal n. `code` is null if the command didn't exit on its own. */
export type Exit = { code: number | null; signal: NodeJS.Signals | null; reason: 'exit' | StopReason }

export type SandboxedProcess = {
  /**
   * Settles when the last process is gone. Rejects with SandboxError if the command could not be started, and with
   * SandboxLost if the machine killed it.
   */
  exited: Promise<Exit>
  /** Null without `listen`, or if the command exited immediately. Resolves before the command listens. */
  connect: Promise<Connect | null>
  /** Sends SIGTERM to the command, and SIGKILL to everything a second later; resolves when the last process is gone. */
  kill(): Promise<void>
}

/** The sandbox failed, not the command in it. */
export class SandboxError extends Error {
  override name = 'SandboxError'
}

/** The command was ended by something other than itself or its limits. */
export class SandboxLost extends SandboxError {
  override name = 'SandboxLost'
}

/** The time between SIGTERM and SIGKILL. */
export const GRACE_MS = 1000

/** The default PORT of servers, as in most templates. */
export const DEFAULT_PORT = 3000
