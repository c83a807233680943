// How busy this process is, as its row among the nodes tells.

export type Load = {
  /** Processors that it used on average since the last heartbeat. */
  cpu: number
  memoryBytes: number
  /** What is under way, by what it is: jobs of a worker, servers of a runner, requests of an API. */
  work: Record<string, number>
}

export type LoadMeter = {
  /** Adds a count of what is under way. Returns what removes it. */
  add(what: string, count: () => number): () => void
  /** Adds what other processes of the node have measured. */
  include(loads: () => readonly Load[]): void
  /** Measures since the last call. */
  read(): Load
}

export function createLoadMeter(): LoadMeter {
  const counts = new Map<string, () => number>()
  let others: () => readonly Load[] = () => []
  let before = { usage: process.cpuUsage(), atMs: performance.now() }
  return {
    add(what, count) {
      counts.set(what, count)
      return () => void counts.delete(what)
    },
    include(loads) {
      others = loads
    },
    read() {
      const now = { usage: process.cpuUsage(), atMs: performance.now() }
      const usedMs = (now.usage.user - before.usage.user + now.usage.system - before.usage.system) / 1000
      const cpu = usedMs / Math.max(1, now.atMs - before.atMs)
      before = now
      const work = Object.fromEntries([...counts].map(([what, count]) => [what, count()]))
      const all = { cpu, memoryBytes: process.memoryUsage.rss(), work }
      for (const other of others()) {
        all.cpu += other.cpu
        all.memoryBytes += other.memoryBytes
        for (const [what, count] of Object.entries(other.work)) work[what] = (work[what] ?? 0) + count
      }
      return { ...all, cpu: Math.round(all.cpu * 100) / 100 }
    },
  }
}
