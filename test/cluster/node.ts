// One program on one machine, which can be killed with all that it has started, or lost together with its machine.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { below } from '../prove/host.ts'
import type { Machine } from './network.ts'

/** `kill`: by -9, and the system closes its connections. `loss`: the cable is pulled first, so that nobody is told. */
export type End = 'kill' | 'loss'

export type Node = {
  name: string
  role: string
  address: string
  start(): Promise<void>
  isUp(): Promise<boolean>
  end(how: End): Promise<void>
  stop(): Promise<void>
  log(): string
}

export type NodeOptions = {
  role: string
  command: string[]
  env: Record<string, string>
  logFile: string
  isUp(): Promise<boolean>
}

export function createNode(machine: Machine, { role, command, env, logFile, isUp }: NodeOptions): Node {
  let child: ChildProcess | null = null
  let gone: Promise<unknown> = Promise.resolve()

  return {
    name: machine.name,
    role,
    address: machine.address,
    async start() {
      await machine.plug()
      const log = openSync(logFile, 'a')
      const [program, args] = machine.command(...command)
      const started = spawn(program, args, { env, stdio: ['ignore', log, log] })
      closeSync(log)
      child = started
      gone = once(started, 'exit').then(() => {
        child = null
      })
    },
    isUp: async () => child !== null && (await isUp()),
    async end(how) {
      const pid = child?.pid
      if (pid === undefined) throw new Error(`${machine.name} does not run:\n${this.log()}`)
      if (how === 'loss') await machine.pull()
      for (const one of [pid, ...below(pid).map((process) => process.pid)]) {
        try {
          process.kill(one, 'SIGKILL')
        } catch {
          // It ended with its parent.
        }
      }
      await gone
    },
    async stop() {
      await machine.plug()
      child?.kill('SIGTERM')
      const late = setTimeout(() => child?.kill('SIGKILL'), 20_000)
      await gone
      clearTimeout(late)
    },
    log: () => readFileSync(logFile, 'utf8').slice(-3_000),
  }
}
