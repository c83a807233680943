// The metrics and readiness of a server with worker processes: sums of all processes, and the state of all.
import { AggregatorRegistry, Counter, Gauge, type Registry } from 'prom-client'
import type { Health, HealthReport } from '../../platform/observe/health.ts'
import type { Monitored } from '../../platform/observe/metrics.ts'
import { type Metrics, rolesOfWorkers } from '../opening/messages.ts'
import type { Workers } from './primary.ts'
import type { WorkerProcess } from './process.ts'

export type Monitoring = {
  monitored: Monitored
  /** Counts of an exited process stay in the sums, because a counter that falls looks like a restart. */
  noteEnd(process: WorkerProcess, unexpected: boolean): void
  watch(workers: Workers): void
}

export function createMonitoring(registry: Registry, health: Health): Monitoring {
  let workers: Workers | null = null
  let ended: Metrics = []
  const registers = [registry]
  const deaths = new Counter({
    name: 'berth_worker_deaths_total',
    help: 'Worker processes that exited unexpectedly and were restarted.',
    registers,
  })
  new Gauge({
    name: 'berth_workers',
    help: 'Worker processes of this server, by whether they serve.',
    labelNames: ['state'],
    registers,
    collect() {
      const ready = workers?.processes.filter(({ isReady }) => isReady).length ?? 0
      this.set({ state: 'ready' }, ready)
      this.set({ state: 'missing' }, (workers?.count ?? 0) - ready)
    },
  })

  async function metrics(): Promise<string> {
    const processes = [...(workers?.living ?? [])]
    const ofWorkers = processes.map(async (process) => (await process.query('metrics')) ?? process.metrics)
    const all = await Promise.all([registry.getMetricsAsJSON(), ...ofWorkers])
    return AggregatorRegistry.aggregate([...all, ended]).metrics()
  }

  async function check(role?: string): Promise<HealthReport> {
    const queried = role === undefined || rolesOfWorkers.includes(role) ? (workers?.processes ?? []) : []
    const [own, ...responses] = await Promise.all([
      health.check(role),
      ...queried.map((one) => one.query('health', role)),
    ])
    const reports = responses.filter((report) => report !== null)
    if (queried.length === 0) return own
    return merge([own, ...reports, missing(queried.length, reports.length)])
  }

  return {
    monitored: { registry: { contentType: registry.contentType, metrics }, health: { check } },
    noteEnd(process, unexpected) {
      if (unexpected) deaths.inc()
      const counted = process.metrics.filter(({ type }) => isCounted(String(type)))
      ended = jsonOf([ended, counted])
    },
    watch(started) {
      workers = started
    },
  }
}

// prom-client's JSON has the names of its types, its type declarations have their numbers.
const isCounted = (type: string) => type === 'counter' || type === 'histogram'

function jsonOf(lists: Metrics[]): Metrics {
  return AggregatorRegistry.aggregate(lists).getMetricsAsArray() as unknown as Metrics
}

/** Other workers serve while one is missing. */
function missing(count: number, ready: number): HealthReport {
  if (ready === count) return { status: 'ok', checks: { workers: 'ok' } }
  const workers = `${ready} of ${count} worker processes are ready.`
  return { status: ready === 0 ? 'unavailable' : 'degraded', checks: { workers } }
}

const statuses = ['ok', 'degraded', 'unavailable'] as const

/** The worst status, and for each check the first result that isn't ok. */
function merge(reports: HealthReport[]): HealthReport {
  const checks: Record<string, string> = {}
  for (const report of reports) {
    for (const [name, found] of Object.entries(report.checks)) {
      if ((checks[name] ?? 'ok') === 'ok') checks[name] = found
    }
  }
  const worst = Math.max(...reports.map(({ status }) => statuses.indexOf(status)))
  return { status: statuses[worst]!, checks }
}
