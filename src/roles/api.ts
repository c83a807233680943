// The API role: the REST server, with its own certificate if it serves HTTPS.
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:tls'
import { buildApp } from '../api/app.ts'
import { createDiscovery } from '../engines/discovery/index.ts'
import { createSelfRequest } from '../platform/http/self-request.ts'
import { refuseOnceReplaced } from '../platform/observe/draining.ts'
import { createZoneWork } from '../services/dns/index.ts'
import { continueLog } from '../services/events/index.ts'
import { openLimits } from '../services/limits/index.ts'
import { writeQuotaDefaults } from '../services/quotas/index.ts'
import { createTokenDirectory } from '../services/tokens/index.ts'
import { keepOwnCertificate } from '../tls/own-certificate.ts'
import { handshakeTimeoutMs, tlsPolicy } from '../tls/policy.ts'
import { createCertificateStore } from '../tls/store.ts'
import type { Closing } from './opening/closing.ts'
import type { Shared } from './opening/shared.ts'

/** A clean shutdown waits this long for requests in flight. */
const drainMs = 10_000

export async function openApi(shared: Shared, closing: Closing): Promise<void> {
  const { config, db, notifications, tickets, worker, log } = shared
  await Promise.all([writeQuotaDefaults(db, config.quotas), continueLog(db)])
  const tokenDirectory = createTokenDirectory(db, notifications)
  closing.add(() => tokenDirectory.close())
  // On connections that no request holds.
  const sharedLimits = await openLimits({ db: shared.workerDb, notifications, log }, { id: worker?.member })
  closing.add(() => sharedLimits.close())
  const zoneWork = createZoneWork(shared)
  closing.add(() => zoneWork.close())
  const files = config.tls && { cert: await readFile(config.tls.certFile), key: await readFile(config.tls.keyFile) }
  const tls =
    files || config.managedTlsHost ? { ...tlsPolicy, handshakeTimeout: handshakeTimeoutMs, ...files } : undefined
  const app = await buildApp(
    { ...shared, tokenDirectory, zoneWork, discover: createDiscovery(shared), sharedLimits },
    tls,
  )
  if (config.managedTlsHost) {
    const certificates = await createCertificateStore({ ...shared, platformOnly: true })
    closing.add(() => certificates.close())
    keepOwnCertificate(app.server as unknown as Server, certificates, config.managedTlsHost, log)
  }
  refuseOnceReplaced(app.server, shared.draining)
  shared.connectionShares.guard(app.server)
  await app.listen({ host: config.host, port: config.port })
  if (tls) closing.add(tickets.follow((key) => (app.server as unknown as Server).setTicketKeys(key)))
  const isAnswering = createSelfRequest(app.server, { encrypted: tls !== undefined })
  const silent = 'The API has not answered a request of its own yet.'
  shared.health.add('api', async () => ((await isAnswering()) ? null : silent), ['api'])
  closing.add(() => drained(app.close(), () => app.server.closeAllConnections()))
}

/** Waits for a server to finish its requests, and aborts those that take too long. */
async function drained(closing: Promise<unknown>, cutOff: () => void): Promise<void> {
  const timer = setTimeout(cutOff, drainMs)
  await closing
  clearTimeout(timer)
}
