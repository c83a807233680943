// Metrics of builds in this process. The queue has its own metrics for waiting builds.
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** `failed` is the project's fault. `broken` is the platform's, or the worker stopped. */
export type BuildResult = 'ready' | 'failed' | 'canceled' | 'broken'

export type BuildMetrics = {
  /** Counts the start of a build. Call the returned function at its end. */
  start(waitedMs: number): (result: BuildResult) => void
}

const buckets = [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200]

export function createBuildMetrics(registry: Registry = new Registry()): BuildMetrics {
  const registers = [registry]
  const ended = new Counter({
    name: 'berth_builds_total',
    help: 'Builds that ended, by result: ready, failed by the project, canceled, or broken on our side.',
    labelNames: ['result'],
    registers,
  })
  const seconds = new Histogram({
    name: 'berth_build_duration_seconds',
    help: 'How long builds ran, by result.',
    labelNames: ['result'],
    buckets,
    registers,
  })
  const waited = new Histogram({
    name: 'berth_build_wait_seconds',
    help: 'Time from a deployment to the start of its build.',
    buckets,
    registers,
  })
  const running = new Gauge({ name: 'berth_builds_running', help: 'Builds under way in this process.', registers })
  for (const result of ['ready', 'failed', 'canceled', 'broken'] as const) ended.inc({ result }, 0)
  return {
    start(waitedMs) {
      const startedMs = performance.now()
      waited.observe(Math.max(0, waitedMs) / 1000)
      running.inc()
      return (result) => {
        running.dec()
        ended.inc({ result })
        seconds.observe({ result }, (performance.now() - startedMs) / 1000)
      }
    },
  }
}
