// Waits until a sandbox ends, and reports why.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { clearTimeout, setTimeout } from 'node:timers'
import { setTimeout as delay } from 'node:timers/promises'
import { onAbort } from '../platform/abort.ts'
import type { Launched } from './launcher.ts'
import {
  type Exit,
  GRACE_MS,
  SandboxError,
  type SandboxedCommand,
  SandboxLost,
  type StopReason,
} from './processes/command.ts'
import type { ControlGroup } from './processes/control-groups.ts'
import type { DiskWatch } from './processes/disk.ts'
import { hear } from './processes/listening.ts'
import { watchMemory } from './processes/memory.ts'

/** Stops the sandbox on demand; resolves when its last process is gone. */
export async function outcome(
  launched: Launched,
  command: SandboxedCommand,
  stop: AbortController,
  { group, disk }: { group: ControlGroup | undefined; disk: DiskWatch | undefined },
): Promise<Exit> {
  const { child } = launched
  const closed = once(child, 'close') as Promise<[number | null]>
  let errorOutput = ''
  if (command.readStdout) command.readStdout(child.stdout)
  else hear(child.stdout, (chunk) => command.onOutput('stdout', chunk))
  hear(child.stderr, (chunk) => {
    errorOutput = (errorOutput + chunk.toString('latin1')).slice(-1000)
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
    // Bubblewrap's first process leads the command's group and ignores this signal.
    signal(-init, 'SIGTERM')
    grace = setTimeout(kill, GRACE_MS)
  }
  const unlisten = onAbort(stop.signal, end)
  try {
    await closed
    await gone(launched.init())
    // After our SIGKILL, ignore an exit code that bubblewrap may still report.
    const code = forced ? null : (launched.exitCode() ?? null)
    if (stop.signal.aborted) return exit(code, stop.signal.reason)
    const out = code === 0 ? null : await group?.outOfMemory()
    if (out === 'machine') throw new SandboxLost('the machine ran out of memory')
    if (out === 'group') return exit(code, 'memory')
    // Nobody inside the sandbox can do that.
    if (code === null && child.signalCode === 'SIGKILL') throw new SandboxLost('its sandbox was killed from outside')
    if (code === null) throw new SandboxError(`The sandbox could not be started: ${errorOutput.trim() || 'no output'}`)
    if (code !== 0 && (await disk?.exceeded())) return exit(code, 'disk')
    return exit(code, 'exit')
  } finally {
    disk?.stop()
    memory?.stop()
    clearTimeout(grace)
    unlisten()
  }
}

const signalNames = Object.entries(constants.signals) as [NodeJS.Signals, number][]

/** `code` follows the shell's convention of 128 + n for signals; null if we killed the command. */
export function exit(code: number | null, reason: 'exit' | StopReason): Exit {
  const number = code === null ? constants.signals.SIGKILL : code - 128
  return { code, signal: signalNames.find(([, value]) => value === number)?.[0] ?? null, reason }
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch {
    // The process has ended.
  }
}

/** A sandbox's first process dies shortly after bubblewrap, and after all others in the sandbox. */
async function gone(init: number | undefined): Promise<void> {
  for (let tries = 0; init !== undefined && tries < 500; tries++) {
    const state = await readFile(`/proc/${init}/stat`, 'utf8').catch(() => ') Z')
    if (/\) [ZX]/.test(state)) return
    await delay(4)
  }
}
