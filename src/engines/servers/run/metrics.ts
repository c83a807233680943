// Metrics of the servers in this process.
import { Counter, Gauge, Registry } from 'prom-client'

export type ServerMetrics = { started(): void; crashed(): void }

export function createServerMetrics(registry: Registry = new Registry(), running: () => number): ServerMetrics {
  const registers = [registry]
  new Gauge({
    name: 'berth_servers_running',
    help: 'Servers of server projects that run and are healthy.',
    registers,
    collect() {
      this.set(running())
    },
  })
  const starts = new Counter({ name: 'berth_server_starts_total', help: 'Servers that became healthy.', registers })
  const crashes = new Counter({
    name: 'berth_server_restarts_total',
    help: 'Servers that ended by themselves after they were healthy, and have to be started again.',
    registers,
  })
  return { started: () => starts.inc(), crashed: () => crashes.inc() }
}
