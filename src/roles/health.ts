// The container's health check, for any role: asks /healthz on the metrics port of this configuration.
import { loadConfig, readEnvironment } from '../config.ts'

const { host, metricsPort } = loadConfig(readEnvironment())
// A process that listens on all addresses is asked on loopback.
const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
const answer = await fetch(`http://${address.includes(':') ? `[${address}]` : address}:${metricsPort}/healthz`).catch(
  () => null,
)
process.exit(answer?.ok ? 0 : 1)
