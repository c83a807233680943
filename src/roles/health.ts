// The container's health check: requests /healthz of this server, over the scheme it serves.
import { loadConfig, readEnvironment } from '../config.ts'

const { port, tls, managedTlsHost } = loadConfig(readEnvironment())
if (tls || managedTlsHost) {
  // The certificate is for the public name, not for loopback.
  const { get } = await import('node:https')
  get({ host: '127.0.0.1', port, path: '/healthz', rejectUnauthorized: false }, (response) => {
    process.exit(response.statusCode === 200 ? 0 : 1)
  }).on('error', () => process.exit(1))
} else {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)
  process.exit(answer?.ok ? 0 : 1)
}
