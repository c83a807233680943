// Processes of this machine, as /proc shows them: whose they are, and which of them are left behind.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export type Process = { pid: number; parent: number; name: string; command: string }

function quietly(read: () => string): string {
  try {
    return read()
  } catch {
    // The process ended meanwhile, or is not ours to look at.
    return ''
  }
}

/** Zombies are gone already. */
export function processes(): Process[] {
  const found: Process[] = []
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = quietly(() => readFileSync(`/proc/${entry}/stat`, 'utf8'))
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (!state || state === 'Z' || state === 'X') continue
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
    const command = quietly(() => readFileSync(`/proc/${entry}/cmdline`, 'utf8')).replaceAll('\0', ' ')
    found.push({ pid: Number(entry), parent: Number(parent), name, command })
  }
  return found
}

export function below(pid: number, all = processes()): Process[] {
  const found = new Set([pid])
  for (let before = 0; before < found.size; ) {
    before = found.size
    for (const one of all) if (found.has(one.parent)) found.add(one.pid)
  }
  return all.filter((one) => one.pid !== pid && found.has(one.pid))
}

/** Processes that have the text in their command, their environment or their directory. */
export function marked(mark: string): Process[] {
  return processes().filter(({ pid, command }) => {
    if (pid === process.pid) return false
    const environment = () => quietly(() => readFileSync(`/proc/${pid}/environ`, 'utf8'))
    return (
      command.includes(mark) ||
      environment().includes(mark) ||
      quietly(() => readlinkSync(`/proc/${pid}/cwd`)).includes(mark)
    )
  })
}
