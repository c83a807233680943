// Sandboxes for the tests, and ways to see what a run left on the host.
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { accessSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'vitest'
import {
  createSandbox,
  type Exit,
  type Network,
  type Sandbox,
  type SandboxedCommand,
  type SandboxOptions,
} from '../../src/sandbox/sandbox.ts'

export const searchPath = process.env.PATH ?? ''

const installed = searchPath.split(delimiter).some((directory) => {
  try {
    accessSync(join(directory, 'bwrap'))
    return true
  } catch {
    return false
  }
})

/** Skipped where bubblewrap is absent, unless its absence is an error. */
export const bubblewrapTest = test.skipIf(!installed && process.env.BERTH_REQUIRE_PEERS !== '1')

const opened: { close(): Promise<void> }[] = []

/** A sandbox whose run directory the test can look into. */
export async function openSandbox(
  mode: 'bubblewrap' | 'none',
  more: Partial<SandboxOptions> = {},
): Promise<{ sandbox: Sandbox; runDirectory: string }> {
  const runDirectory = await directory()
  const sandbox = await createSandbox(mode, { searchPath, runDirectory, ...more })
  opened.push(sandbox)
  return { sandbox, runDirectory }
}

/** One for the tests of a file that do not end it. */
let shared: Promise<Sandbox> | undefined
export function bubblewrap(): Promise<Sandbox> {
  shared ??= openSandbox('bubblewrap').then(({ sandbox }) => sandbox)
  return shared
}

const directories: string[] = []

export async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'berth-test-'))
  directories.push(path)
  await chmod(path, 0o711)
  await give(path)
  return path
}

/** Makes it writable for commands, as `makeDirectory` of a sandbox does. */
export async function give(path: string): Promise<void> {
  if (process.getuid?.() === 0) await chown(path, 61_000, 61_000)
}

export async function cleanUp(): Promise<void> {
  shared = undefined
  for (const one of opened.splice(0)) await one.close()
  for (const path of directories.splice(0)) await rm(path, { recursive: true, force: true })
}

export type Result = Exit & { stdout: string; stderr: string }

export const internet: Network = { reach: 'public', private: [] }

export const limits = { memoryMb: 512, processes: 128, timeoutMs: 15_000 }

/** The command with defaults that most tests share; a string is for the shell. */
export async function command(
  argv: string | string[],
  more: Partial<SandboxedCommand> = {},
): Promise<SandboxedCommand & { output: { stdout: string; stderr: string } }> {
  const output = { stdout: '', stderr: '' }
  return {
    argv: typeof argv === 'string' ? ['/bin/sh', '-c', argv] : argv,
    workTree: more.workTree ?? (await directory()),
    environment: {},
    limits,
    onOutput: (stream, chunk) => {
      output[stream] += chunk
    },
    output,
    ...more,
  }
}

export async function run(
  sandbox: Sandbox,
  argv: string | string[],
  more: Partial<SandboxedCommand> = {},
): Promise<Result> {
  const asked = await command(argv, more)
  const exit = await sandbox.run(asked).exited
  return { ...exit, ...asked.output }
}

/** Processes of the host whose command line has the text in it. */
export function processesWith(text: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text)
    } catch {
      return false
    }
  })
}

/** A sleep that no other process of the machine sleeps. */
export function uniqueSleep(): string {
  // All of one length: none is the beginning of another.
  return `sleep ${randomInt(1e9, 2e9)}`
}

/** Control groups of the sandboxes of one process, the groups of their runs included or alone. */
export function controlGroups(pid: number): { all: string[]; runs: string[] } {
  const found = execFileSync('find', ['/sys/fs/cgroup', '-type', 'd', '-path', `*/berth-${pid}-*`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const all = found.split('\n').filter(Boolean)
  return { all, runs: all.filter((path) => /berth-[^/]+\/[^/]+$/.test(path)) }
}

/**
 * Limits all runs of this process together: for a run, that is a machine with so much memory. False: there are no groups.
 */
export function limitRuns(megabytes: number): boolean {
  const { all, runs } = controlGroups(process.pid)
  const files = all
    .filter((path) => !runs.includes(path))
    .flatMap((path) => [join(path, 'memory.max'), join(path, 'memory.limit_in_bytes')])
    .filter((path) => existsSync(path))
  for (const file of files) writeFileSync(file, String(megabytes * 1024 * 1024))
  return files.length > 0
}
