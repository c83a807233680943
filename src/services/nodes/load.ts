// Measures the load of this process for its node row.

export type Load = {
  /** Average number of CPUs used since the last heartbeat. */
  cpu: number
  memoryBytes: number
  /** Work in progress by kind: jobs of a worker, servers of a runner, requests of an API. */
  work: Record<string, number>
}

export type LoadMeter = {
  /** Adds a count of work in progress. Returns a function that removes it. */
  add(kind: string, count: () => number): () => void
  /** Adds the loads of the node's other processes. */
  include(loads: () => readonly Load[]): void
  /** Measures since the last call. */
  read(): Load
}

export function createLoadMeter(): LoadMeter {
  const counts = new Map<string, () => number>()
  let others: () => readonly Load[] = () => []
  let before = { usage: process.cpuUsage(), atMs: performance.now() }
  return {
    add(kind, count) {
      counts.set(kind, count)
      return () => void counts.delete(kind)
    },
    include(loads) {
      others = loads
    },
    read() {
      const now = { usage: process.cpuUsage(), atMs: performance.now() }
      const usedMs = (now.usage.user - before.usage.user + now.usage.system - before.usage.system) / 1000
      const cpu = usedMs / Math.max(1, now.atMs - before.atMs)
      before = now
      const work = Object.fromEntries([...counts].map(([kind, count]) => [kind, count()]))
      const all = { cpu, memoryBytes: process.memoryUsage.rss(), work }
      for (const other of others()) {
        all.cpu += other.cpu
        all.memoryBytes += other.memoryBytes
        for (const [kind, count] of Object.entries(other.work)) work[kind] = (work[kind] ?? 0) + count
      }
      return { ...all, cpu: Math.round(all.cpu * 100) / 100 }
    },
  }
}
