// Watches a sandbox's memory if no control group limits it.
import { readdir, readFile } from 'node:fs/promises'
import { clearTimeout, setTimeout } from 'node:timers'

const TICK_MS = 250

/**
 * Limits per process don't work: RLIMIT_AS and RLIMIT_DATA count memory that V8 reserves and never uses, so Node fails
 * at startup. All processes of a sandbox descend from its first one, which adopts orphans.
 */
export function watchMemory(init: () => number | undefined, limitMb: number, onExceeded: () => void): { stop(): void } {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  async function tick(): Promise<void> {
    const first = init()
    if (first !== undefined && (await usedKb(first)) > limitMb * 1024 && !stopped) return onExceeded()
    if (!stopped) timer = setTimeout(() => void tick().catch(() => {}), TICK_MS).unref()
  }
  void tick().catch(() => {})
  return {
    stop() {
      stopped = true
      clearTimeout(timer)
    },
  }
}

async function usedKb(init: number): Promise<number> {
  const children = new Map<string, string[]>()
  for (const pid of await readdir('/proc')) {
    if (!/^\d/.test(pid)) continue
    // The process name, in parentheses, may contain anything.
    const parent = /.*\) \S (\d+)/s.exec(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''))?.[1]
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid])
  }
  let sum = 0
  const below = [String(init)]
  for (const pid of below) {
    below.push(...(children.get(pid) ?? []))
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    for (const [, kb] of status.matchAll(/^Rss(?:Anon|Shmem):\s*(\d+)/gm)) sum += Number(kb)
  }
  return sum
}
