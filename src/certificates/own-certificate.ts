// Keeps the certificate of one server of ours as the database has it: swapped while it runs, connections untouched.
import type { Server } from 'node:tls'
import type { Logger } from 'pino'
import { type CertificateStore, minVersion } from './store.ts'

/**
 * Before there is a certificate the server refuses every handshake, which is better than not to start: the certificate
 * may be on its way, got by this very process.
 */
export function keepOwnCertificate(
  server: Server,
  certificates: CertificateStore,
  host: string,
  log: Logger,
): () => void {
  let current: string | null = null
  function swap(): void {
    try {
      const pem = certificates.pemOf(host)
      // One that is gone from the database goes on until the next is there.
      if (!pem || pem.id === current) return
      server.setSecureContext({ cert: pem.cert, key: pem.key, minVersion })
      current = pem.id
      log.info({ host, certificateId: pem.id }, 'the server has a new certificate')
    } catch (err) {
      log.error({ err, host }, 'the certificate of the server cannot be used')
    }
  }
  swap()
  if (current === null) log.warn({ host }, 'no certificate yet: clients are refused until it is issued')
  return certificates.onChange(swap)
}
