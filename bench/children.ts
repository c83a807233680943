// Child processes of a benchmark: plain Node, controlled by messages, and stopped with the benchmark.
import { type ChildProcess, fork } from 'node:child_process'
import { openSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { allocator, heapFlags } from '../src/commands/memory.ts'
import type { Role } from '../src/roles/run.ts'
import { quotaNames, quotaVariable } from '../src/schemas/quotas.ts'

export type Child = {
  pid: number
  /** Sends a request and resolves with the response; a child handles one at a time. */
  ask<T>(question: unknown): Promise<T>
  stop(): Promise<void>
}

/** The environment of a server without limits for its clients, so that its capacity is measured. */
export const withoutLimits: Record<string, string> = Object.fromEntries(
  ['RATE_LIMIT_PER_MINUTE', ...quotaNames.map(quotaVariable)].map((name) => [
    name,
    // A deployment of Next.js alone takes a third of a gigabyte.
    name.includes('BYTES') ? '1000000000000' : '1000000000',
  ]),
)

/**
 * Runs a TypeScript file in a child process and waits until it reports ready. Node strips the types, because tsx would
 * wrap every closure to keep its name, unlike production code.
 */
export async function startChild(file: string, env: Record<string, string>, logFile?: string): Promise<Child> {
  const child = fork(file, {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    execArgv: (env.NODE_ARGS ?? '').split(' ').filter((arg) => arg !== ''),
    stdio: ['ignore', logFile === undefined ? 'inherit' : openSync(logFile, 'a'), 'inherit', 'ipc'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await message(child, exited, file)
  return {
    pid: child.pid!,
    ask<T>(question: unknown) {
      const answer = message(child, exited, file)
      child.send(question as object)
      return answer as Promise<T>
    },
    async stop() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** A child that runs roles of the platform, with the memory settings of `berth serve`. */
export function startPlatform(roles: Role[], env: Record<string, string>, logFile?: string): Promise<Child> {
  // For a profile: BENCH_NODE_ARGS='--cpu-prof --cpu-prof-dir=profiles'.
  const nodeArgs = [...heapFlags, process.env.BENCH_NODE_ARGS ?? ''].join(' ')
  const platform = { ...allocator, ...env, BENCH_ROLES: roles.join(','), NODE_ARGS: nodeArgs }
  return startChild(join(import.meta.dirname, 'server.ts'), platform, logFile)
}

function message(child: ChildProcess, exited: Promise<void>, file: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    exited.then(() => reject(new Error(`${file} ended before it answered`)))
  })
}

/** Responds to the parent; `close` runs when the parent disconnects. */
export function answerParent<Q, A>(answer: (question: Q) => A | Promise<A>, close: () => Promise<unknown>): void {
  process.on('message', async (question) => process.send!(await answer(question as Q)))
  process.on('disconnect', async () => {
    await close()
    process.exit()
  })
  // Ctrl-C reaches the whole group; the parent decides when to exit.
  process.on('SIGINT', () => {})
  process.send!('ready')
}

export type Usage = { cpuMs: number; residentBytes: number }

/** The CPU time of this process since its start, and its current memory. */
export function usage(): Usage {
  const { user, system } = process.cpuUsage()
  return { cpuMs: (user + system) / 1000, residentBytes: process.memoryUsage.rss() }
}

export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
