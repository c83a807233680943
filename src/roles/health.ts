// The container's health check, for any role: whether the process runs and all its roles have started.
import { loadConfig, readEnvironment } from '../config.ts'

const { host, metricsPort } = loadConfig(readEnvironment())
// A process that listens on all addresses is queried on loopback.
const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
// Not whether it is ready: a process that drains or has lost its database must not be restarted for that.
const report = await fetch(`http://${address.includes(':') ? `[${address}]` : address}:${metricsPort}/readyz`)
  .then((answer) => answer.json() as Promise<{ checks: object }>)
  .catch(() => null)
process.exit(report && !('start' in report.checks) ? 0 : 1)
