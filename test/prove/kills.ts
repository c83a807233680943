// Kills by -9 of any process of the platform, at random: roles, PostgreSQL and its backends, and builds.
import { setTimeout as sleep } from 'node:timers/promises'
import { below, marked } from './host.ts'
import type { Platform } from './processes.ts'

export const victims = ['api', 'worker', 'edge', 'nameserver', 'PostgreSQL', 'backend', 'build'] as const
export type Victim = (typeof victims)[number]

export type KillOptions = {
  platform: Platform
  mark: string
  random: () => number
  /** How many; as many as fit into the time, if left out. */
  kills: number
  durationMs: number
  /** Whom to hit, one after the other; any at random, if left out. */
  inTurn?: readonly Victim[]
  /** Before each kill: what there is to be seen of the victims. */
  look(): void
  killed?(victim: Victim): Promise<void>
  signal?: AbortSignal | undefined
}

/** Returns how many of each were killed. */
export async function killAtRandom(options: KillOptions): Promise<Map<Victim, number>> {
  const { random, kills, durationMs, inTurn } = options
  const counts = new Map<Victim, number>((inTurn ?? victims).map((victim) => [victim, 0]))
  const startMs = performance.now()
  for (let done = 0; done < kills; ) {
    const dueMs = startMs + ((done + random()) * durationMs) / kills
    await sleep(Math.max(0, dueMs - performance.now()), undefined, { signal: options.signal })
    options.look()
    const victim = inTurn?.[done % inTurn.length] ?? choose(random, done, counts)
    if (!(await strike(victim, options))) {
      // No such process at this moment: another victim instead.
      await sleep(20)
      continue
    }
    counts.set(victim, counts.get(victim)! + 1)
    done++
    await options.killed?.(victim)
  }
  return counts
}

/** Any of them. A build runs only now and then, so one is hit whenever it is there until builds have had their share. */
function choose(random: () => number, done: number, counts: Map<Victim, number>): Victim {
  if (counts.get('build')! < done / victims.length && random() < 0.5) return 'build'
  return victims[Math.floor(random() * victims.length)]!
}

async function strike(victim: Victim, { platform, mark, random }: KillOptions): Promise<boolean> {
  const one = <T>(list: T[]): T | undefined => list[Math.floor(random() * list.length)]
  if (victim === 'PostgreSQL') return end(platform.postgresPid)
  if (victim === 'backend') return end(one(below(platform.postgresPid))?.pid)
  if (victim === 'build') {
    const worker = platform.roles.find(({ role }) => role === 'worker')?.pid
    const own = new Set(worker === undefined ? [] : below(worker).map(({ pid }) => pid))
    return end(one(marked(mark).filter(({ pid, command }) => own.has(pid) && command.includes(mark)))?.pid)
  }
  const same = platform.roles.filter(({ role }) => role === victim)
  const chosen = one(same)
  // Where one stands in for another, the last that answers is let live: visitors of a platform without an edge see nothing.
  const others = await Promise.all(same.filter((other) => other !== chosen).map((other) => other.isUp()))
  return (same.length === 1 || others.includes(true)) && end(chosen?.pid)
}

function end(pid: number | undefined): boolean {
  try {
    return pid !== undefined && pid > 1 && process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
    return false
  }
}
