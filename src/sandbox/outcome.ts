// Follows a started sandbox to its end and tells what ended it.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { clearTimeout, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import { type Exit, GRACE_MS, SandboxError, type SandboxedCommand, type StopReason } from './command.ts'
import type { ControlGroup } from './control-groups.ts'
import type { DiskWatch } from './disk.ts'
import type { Launched } from './launcher.ts'
import { watchMemory } from './memory.ts'

/** Ends it when it must end; resolves when its last process is gone. */
export async function outcome(
  launched: Launched,
  command: SandboxedCommand,
  stop: AbortController,
  group: ControlGroup | undefined,
  disk: DiskWatch | undefined,
): Promise<Exit> {
  const { child } = launched
  const closed = once(child, 'close') as Promise<[number | null]>
  let complaint = ''
  if (command.readStdout) command.readStdout(child.stdout)
  else child.stdout.on('data', (chunk: Buffer) => command.onOutput('stdout', chunk))
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString('latin1')).slice(-1000)
    command.onOutput('stderr', chunk)
  })
  const memory = group ? undefined : watchMemory(launched.init, command.limits.memoryMb, () => stop.abort('memory'))
  let grace: NodeJS.Timeout | undefined
  let forced = false
  const end = () => {
    const kill = () => {
      forced = true
      signal(launched.init(), 'SIGKILL')
      signal(child.pid && -child.pid, 'SIGKILL')
    }
    const init = launched.init()
    if (stop.signal.reason !== 'killed' || init === undefined) return kill()
    // Bubblewrap's first process leads the command's group and is deaf to this signal.
    signal(-init, 'SIGTERM')
    grace = setTimeout(kill, GRACE_MS)
  }
  stop.signal.addEventListener('abort', end)
  if (stop.signal.aborted) end()
  try {
    await closed
    await gone(launched.init())
    // Bubblewrap may have lived to tell of a death that was our doing.
    const code = forced ? null : (launched.exitCode() ?? null)
    if (stop.signal.aborted) return exit(code, stop.signal.reason)
    if (code !== 0 && (await group?.ranOutOfMemory())) return exit(code, 'memory')
    if (code === null) throw new SandboxError(`The sandbox could not be started: ${complaint.trim() || 'no output'}`)
    if (code !== 0 && (await disk?.exceeded())) return exit(code, 'disk')
    return exit(code, 'exit')
  } finally {
    disk?.stop()
    memory?.stop()
    clearTimeout(grace)
    stop.signal.removeEventListener('abort', end)
  }
}

const signalNames = Object.entries(constants.signals) as [NodeJS.Signals, number][]

/** From a code as a shell tells it, 128 + n for a signal; null for what we ended by SIGKILL. */
export function exit(code: number | null, reason: 'exit' | StopReason): Exit {
  const number = code === null ? constants.signals.SIGKILL : code - 128
  return { code, signal: signalNames.find(([, value]) => value === number)?.[0] ?? null, reason }
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch {
    // Nobody is there any more.
  }
}

/** The first process of a sandbox dies with bubblewrap, but a moment later, and all others before it. */
async function gone(init: number | undefined): Promise<void> {
  for (let tries = 0; init !== undefined && tries < 500; tries++) {
    const state = await readFile(`/proc/${init}/stat`, 'utf8').catch(() => ') Z')
    if (/\) [ZX]/.test(state)) return
    await delay(4)
  }
}
